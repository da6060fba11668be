"""What must be charged, worked out from what clients have sent and heard, next to the tables of the service."""

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC
from typing import Any
from uuid import UUID

import msgspec

MIB = 1 << 20
BASE_CENTS = 5

Row = Mapping[str, Any]


class Sent(msgspec.Struct, frozen=True, kw_only=True):
    """A file of a request, by a name that no other request has."""

    name: str
    content: bytes
    can_be_converted: bool = True


class Order(msgspec.Struct, kw_only=True):
    """What a client has asked for, once or repeatedly, and what it has heard."""

    account_id: UUID
    files: Sequence[Sent]
    key: str | None = None
    will_not_wait: bool = False
    told: list[list[dict[str, Any]]] = msgspec.field(default_factory=list)
    """The entries of each answer that had any, in their order."""
    is_unsure: bool = False
    """Whether an answer was lost, or was that the service does not know."""
    is_settled: bool = False
    """Whether the last entries are the answer of a repeat that nothing has disturbed."""


class Books(msgspec.Struct, frozen=True, kw_only=True):
    """The tables of the service."""

    jobs: Sequence[Row]
    ledger: Sequence[Row]
    usage: Sequence[Row]
    payers: Sequence[Row]
    credit: Sequence[Row]


def differences(orders: Sequence[Order], books: Books) -> Iterator[str]:
    """Yield a sentence for each difference between what clients must be charged and what they are."""
    jobs = {str(job["id"]): job for job in books.jobs}
    charges = {str(charge["job_id"]): charge for charge in books.ledger}
    by_file: dict[tuple[UUID, str], list[Row]] = defaultdict(list)
    for job_id, charge in charges.items():
        if job_id not in jobs:
            yield f"{job_id} is charged and is no job"
            continue
        by_file[charge["account_id"], jobs[job_id]["original_file_name"]].append(charge)
        yield from _of_charge(charge, jobs[job_id])
    for job_id, job in jobs.items():
        if (job["status"] in {"Completed", "Expired"}) != (job_id in charges):
            yield f"{job_id} is {job['status']}, and is charged: {job_id in charges}"
    yield from _of_keys(orders)
    for order in orders:
        for place, file in enumerate(order.files):
            entries = [told[place] for told in order.told if len(told) > place]
            yield from _of_file(order, file, entries, by_file.pop((order.account_id, file.name), []))
            lost = {entry["jobId"] for entry in entries} - jobs.keys()
            yield from (f"{file.name}: {job_id} was told and is no job" for job_id in lost)
    yield from (f"{file} was charged and never sent" for file in by_file)
    yield from _of_payers(books)


def _of_charge(charge: Row, job: Row) -> Iterator[str]:
    price = 0 if charge["conversions"] else BASE_CENTS + -(-charge["bytes"] // MIB)
    if charge["cents"] != price:
        yield f"{charge} should cost {price}"
    month = job["created_at"].astimezone(UTC).date().replace(day=1)
    if charge["conversions"] and charge["period"] != month:
        yield f"{charge} counts for another month than that of its admission, {month}"


def _of_keys(orders: Sequence[Order]) -> Iterator[str]:
    answered = Counter((order.account_id, order.key) for order in orders if order.key and order.told)
    yield from (f"several requests were answered under {key}" for key, count in answered.items() if count > 1)


def _of_file(order: Order, file: Sent, entries: Sequence[Row], charges: Sequence[Row]) -> Iterator[str]:
    if len(charges) > 1:
        yield f"{file.name} was charged {len(charges)} times: {charges}"
    if charges and not file.can_be_converted:
        yield f"{file.name} cannot be converted and was charged"
    if charges and not entries and not order.is_unsure:
        yield f"{file.name} was refused and charged"
    for charge in charges:
        if charge["bytes"] != len(file.content):
            yield f"{file.name} has {len(file.content)} bytes and was charged as {charge['bytes']}"
    charged = {str(charge["job_id"]) for charge in charges}
    succeeded = {entry["jobId"] for entry in entries if entry.get("success")}
    if succeeded - charged:
        yield f"{file.name} was told to have succeeded and was not charged: {succeeded - charged}"
    is_last_word = order.is_settled or (order.key is None and not order.will_not_wait)
    if charged and is_last_word and entries and entries[-1]["jobId"] not in charged:
        yield f"{file.name} was told to have failed and was charged: {entries[-1]}"


def _of_payers(books: Books) -> Iterator[str]:
    used: Counter[tuple[UUID, Any]] = Counter()
    sizes: Counter[tuple[UUID, Any]] = Counter()
    balances: Counter[UUID] = Counter()
    for charge in books.ledger:
        used[charge["payer_id"], charge["period"]] += charge["conversions"]
        sizes[charge["payer_id"], charge["period"]] += charge["bytes"] * charge["conversions"]
        balances[charge["payer_id"]] -= charge["cents"]
    for entry in books.credit:
        balances[entry["payer_id"]] += entry["cents"]
    for counter in books.usage:
        month = counter["payer_id"], counter["period"]
        if (counter["conversions"], counter["bytes"]) != (used.pop(month, 0), sizes[month]):
            yield f"{counter} is not what was charged"
    yield from (f"{month} has no counter of {count}" for month, count in used.items() if count)
    for payer in books.payers:
        if payer["wallet_cents"] is not None and payer["wallet_cents"] != balances[payer["id"]]:
            yield f"{payer} should have {balances[payer['id']]}"
