"""The three changes of a reservation, each in one round trip to PostgreSQL: admit, settle, release (interface 6)."""

from collections.abc import Collection, Sequence
from datetime import datetime
from typing import Any

import msgspec

from service.clock import Clock
from service.db.batching import Batcher, BatcherByKey
from service.db.connection_share import ConnectionShare
from service.db.pool import Database
from service.db.queries import load
from service.errors import GeomillError, IdempotencyKeyInUse, LimitRefusal
from service.ids import AccountId, JobId, ServerId
from service.metering.balance import Balance, balance_from
from service.metering.durability import DurabilityTracker
from service.metering.limits import SeenValues, refusal
from service.metering.plans import PLANS, WALLET_RETENTION_HOURS
from service.metering.pricing import Pricing

_SQL = load("metering")

MOST_ADMISSIONS = 64
MOST_SETTLEMENTS = 64
ACCOUNTS_AT_ONCE = 4
"""For how many accounts files are admitted at a time: half of the connections to the database."""
_KEY_TAKEN_OVER = "key"
"""The result of `admit_uploads` for a file whose idempotency key no longer names its job."""


class AdmissionRequest(msgspec.Struct, frozen=True, kw_only=True):
    """A request to admit a file; `size_bytes` is the size of the upload as received.

    Its output will be stored as `object_name` in the account's region. A file with an idempotency `key` is admitted
    only while that key names its job. A `durable` admission survives a crash of the database from the moment it is
    returned; a crash may undo any other until `Ledger.is_durable` returns.
    """

    job_id: JobId
    account_id: AccountId
    server_id: ServerId
    file_name: str
    input_format: str
    output_format: str
    size_bytes: int
    object_name: str
    durable: bool = False
    key: str | None = None


class Admission(msgspec.Struct, frozen=True, kw_only=True):
    """An admitted file: the time of admission, the retention of its output in hours, and its key in the store."""

    admitted_at: datetime
    retention_hours: int
    object_key: str


class Settlement(msgspec.Struct, frozen=True, kw_only=True):
    """The success of one attempt of a job, to be charged and published together."""

    job_id: JobId
    attempt: int
    retention_hours: int
    processing_time_ms: int
    feature_count: int
    geometry_type: str
    output_size_bytes: int
    download_name: str
    media_type: str
    details: dict[str, Any]


class Settled(msgspec.Struct, frozen=True):
    """When a job was completed, until when its output is kept, and the balance at that time."""

    completed_at: datetime
    expires_at: datetime
    balance: Balance


class Release(msgspec.Struct, frozen=True, kw_only=True):
    """The failure of one attempt of a job: nothing is charged.

    `object_key` names an output that may still be in the store. `interrupted` says that the service caused the failure,
    so that a repeat with the same idempotency key converts the file again. `spares_handed_over` leaves the job open if
    it has been handed over, and so outlives its process.
    """

    job_id: JobId
    attempt: int
    error_message: str
    details: dict[str, Any] = {}
    feature_count: int | None = None
    geometry_type: str | None = None
    processing_time_ms: int | None = None
    object_key: str | None = None
    interrupted: bool = False
    spares_handed_over: bool = False


class Ledger:
    """Admission and settlement in one database, in as few statements as possible: see `service.db.batching`."""

    def __init__(
        self,
        database: Database,
        pricing: Pricing,
        regions: Collection[str] = (),
        *,
        hands_over: bool = False,
        worker: ServerId | None = None,
        confirmed: Clock | None = None,
    ) -> None:
        """Store outputs in any of `regions`; outputs of accounts in other regions go to the home region.

        `worker` is the process, if it claims jobs. The retention of outputs begins no earlier than `confirmed`.

        If the process `hands_over` all jobs that it admits, their admissions are flushed by whoever claims them, or by
        the record of where the input is stored.
        """
        self._database = database
        self._connections = ConnectionShare(database, ACCOUNTS_AT_ONCE)
        self._pricing = pricing
        self._regions = list(regions)
        self._hands_over = hands_over
        self._worker = worker
        self._confirmed = confirmed
        self._admissions = BatcherByKey(self._admit_all, MOST_ADMISSIONS)
        self._settlements = Batcher(self._settle_all, MOST_SETTLEMENTS)
        self._records = Batcher(self._flush_all, MOST_SETTLEMENTS)
        self._known = DurabilityTracker()

    async def admit(self, request: AdmissionRequest) -> Admission:
        """Reserve one conversion and insert its job as Pending.

        Raises:
            LimitRefusal: a limit, the first in the order of interface 6, refuses the file; nothing was written.
            IdempotencyKeyInUse: another request has taken over the file's idempotency key; nothing was written.
        """
        admitted = await self._admissions.submit(request.account_id, request)
        if isinstance(admitted, GeomillError):
            raise admitted
        return admitted

    @property
    def will_flush(self) -> bool:
        """Whether this process has a job whose settlement will flush what is written now, unless that job fails."""
        return bool(self._known)

    async def is_durable(self, job_id: JobId, attempt: int = 1) -> bool:
        """Wait until this attempt of the process is durable; return False if a crash of the database has undone it.

        The first attempt is the admission, and later ones are claims. It usually is durable already, because the
        settlement of another job has flushed it, or is about to.
        """
        await self._known.await_commit(job_id)
        return self._known.take(job_id) or await self._records.submit((job_id, attempt))

    def note_claim(self, job_id: JobId, attempt: int, *, is_durable: bool) -> None:
        """Note that this process has claimed a job, and whether a crash of the database may still undo that."""
        self._known.add(job_id, attempt, on_disk=is_durable)

    def forget(self, job_id: JobId) -> None:
        """Forget what is known of a job that another process continues."""
        self._known.take(job_id)

    async def settle(self, settlement: Settlement) -> Settled | None:
        """Complete a job and write its ledger row; None if this attempt no longer holds it."""
        return await self._settlements.submit(settlement)

    async def release(self, release: Release) -> datetime | None:
        """Fail a job, release its reservation and return the time; None if this attempt no longer holds the job.

        The end of the job is durable when this returns.
        """
        self._known.take(release.job_id)
        ended_at: datetime | None = await self._database.fetchval(_SQL["release"], *msgspec.structs.astuple(release))
        return ended_at

    async def balance(self, account_id: AccountId) -> Balance:
        """Return what the account has left in the current month by the database's clock."""
        row = await self._database.fetchrow(_SQL["balance"], account_id)
        if row is None:
            raise AssertionError("An authenticated account always exists")
        return balance_from(dict(row))

    async def reservations(self) -> int:
        """Return how many jobs of all processes currently hold a reservation."""
        return int(await self._database.fetchval(_SQL["reservations"]))

    async def _admit_all(
        self, requests: Sequence[AdmissionRequest]
    ) -> list[Admission | LimitRefusal | IdempotencyKeyInUse]:
        """Admit files of one account, in order of arrival.

        If no other job is open, the admission is made durable at once, because no other statement is expected to flush
        it, unless this process hands its jobs over.
        """
        first = requests[0]
        durable = not (self.will_flush or self._hands_over) or any(request.durable for request in requests)
        keys = [request.key for request in requests]
        prices = [self._pricing.price_cents(request.size_bytes) for request in requests]
        async with self._connections.connection() as connection:
            row = await connection.fetchrow(
                _SQL["admit"],
                first.account_id,
                first.server_id,
                durable,
                self._regions,
                [request.job_id for request in requests],
                [request.file_name for request in requests],
                [request.input_format for request in requests],
                [request.output_format for request in requests],
                [request.size_bytes for request in requests],
                prices,
                [request.object_name for request in requests],
                keys if any(keys) else None,
            )
        if row is None:
            raise AssertionError("The statement `admit` always returns one row")
        answers: list[Admission | LimitRefusal | IdempotencyKeyInUse] = []
        for number, request in enumerate(requests):
            refused_by = row["refused_by"][number]
            if refused_by is None:
                self._known.add(request.job_id, 1, on_disk=durable)
                answers.append(_admission(row, request))
            elif refused_by == _KEY_TAKEN_OVER:
                answers.append(IdempotencyKeyInUse())
            else:
                answers.append(refusal(refused_by, _seen(row, number, request.size_bytes, prices[number])))
        return answers

    async def _settle_all(self, settlements: Sequence[Settlement]) -> list[Settled | None]:
        """Settle jobs, and flush admissions and claims that are not durable yet."""
        confirmed = self._confirmed() if self._confirmed is not None else None
        with self._known.committing() as attempts:
            rows = await self._database.fetch(_SQL["settle"], settlements, *self._looked_for(attempts), confirmed)
            settled = {row["id"]: _settled(row) for row in rows if row["settled"]}
            if settled:
                self._known.note(attempts, {row["id"] for row in rows if not row["settled"]})
        return [settled.pop(settlement.job_id, None) for settlement in settlements]

    async def _flush_all(self, attempts: Sequence[tuple[JobId, int]]) -> list[bool]:
        rows = await self._database.fetch(_SQL["flush_attempts"], *self._looked_for(attempts))
        found = {row["id"] for row in rows}
        return [job_id in found for job_id, _ in attempts]

    def _looked_for(self, attempts: Sequence[tuple[JobId, int]]) -> tuple[list[JobId], list[int], ServerId | None]:
        return [job_id for job_id, _ in attempts], [attempt for _, attempt in attempts], self._worker


async def publish_plans(database: Database) -> None:
    """Write the plans of `metering.plans` to the database, where admission reads them."""
    async with database.connection() as connection:
        for plan in PLANS:
            await connection.execute(_SQL["publish_plan"], msgspec.structs.asdict(plan))


def _settled(row: Any) -> Settled:
    return Settled(row["completed_at"], row["expires_at"], balance_from(dict(row)))


def _admission(row: Any, request: AdmissionRequest) -> Admission:
    return Admission(
        admitted_at=row["admitted_at"],
        retention_hours=row["retention_hours"] or WALLET_RETENTION_HOURS,
        object_key=row["folder"] + request.object_name,
    )


def _seen(row: Any, number: int, size_bytes: int, price_cents: int) -> SeenValues:
    return SeenValues(
        size_bytes=size_bytes,
        price_cents=price_cents,
        terms=row["seen_terms"] or {},
        used_bytes=row["found_bytes"][number],
        wallet_cents=row["found_cents"][number] or 0,
    )
