"""Checks that ledger, jobs, store and queue agree (interface 6), and makes the others agree with the jobs again."""

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, nullcontext
from typing import TYPE_CHECKING
from uuid import UUID, uuid4

import msgspec

from service.db.pool import Database
from service.errors import ForeignStore, ObjectsLeft, QueueUnavailable, StorageUnavailable
from service.ids import JobId, ServerId
from service.jobs import outputs
from service.jobs.handovers import HandOvers
from service.metering.audit import audit_books
from service.storage.bucket_config import HOME
from service.storage.port import ObjectKey, Storage, region_of
from service.usecases.own_store import OwnStore, place

if TYPE_CHECKING:  # loading the client of the queue is of no use without a fleet
    from service.jobs.queue_contents import QueueContents

_AT_ONCE = 500

OpenQueue = Callable[[], AbstractAsyncContextManager["QueueContents | None"]]
"""Opens the queue of a fleet; yields None if there is none."""


class StoreComparison(msgspec.Struct, frozen=True, kw_only=True):
    """The store beside the jobs."""

    regions: tuple[str, ...]
    """The regions that were compared."""
    orphans: tuple[ObjectKey, ...]
    """Stored outputs that belong to no job of any database."""
    missing: Mapping[JobId, str]
    """The keys of outputs that should be in the store and are not, by job."""
    without_input: tuple[JobId, ...] = ()
    """Open jobs that were handed over and whose input should be in the store and is not."""
    shared: Mapping[str, str] = {}
    """The regions that have outputs without a job, which may belong to another database: a sentence for each."""
    doubtful: Mapping[str, str] = {}
    """The regions in which outputs have no job, or jobs no output, and none belong together, and those of the original
    of this database: a sentence for each."""
    not_compared: Mapping[str, str] = {}
    """The other regions that were not compared, and why: a sentence for each."""
    out_of_reach: Mapping[JobId, str] = {}
    """The regions of outputs that are not set, so that it is unknown whether these are there; by job."""

    @property
    def sentences(self) -> list[str]:
        """What was not compared."""
        return [
            *self.shared.values(),
            *self.not_compared.values(),
            *(
                f"The store has {count} outputs in the region {region}, which is not set here, so they were not "
                "compared. Set it in GEOMILL_S3_REGIONS as for the service."
                for region, count in sorted(Counter(self.out_of_reach.values()).items())
            ),
        ]

    def without(self, regions: Collection[str]) -> "StoreComparison":
        """Return the comparison of the other regions."""
        return msgspec.structs.replace(
            self,
            orphans=tuple(key for key in self.orphans if region_of(key) not in regions),
            missing={job_id: key for job_id, key in self.missing.items() if region_of(key) not in regions},
        )


class QueueComparison(msgspec.Struct, frozen=True, kw_only=True):
    """The queue of a fleet beside the jobs."""

    known: int = 0
    """How many messages belong to a job, which may have ended: a worker removes them in their turn."""
    strays: tuple[str, ...] = ()
    """The subjects of messages that belong to no job."""
    missing: tuple[JobId, ...] = ()
    """Open jobs without a message that were handed over, that no living worker has, and whose gateway is gone."""
    problem: str = ""
    """Why the queue could not be compared, and what to do; empty if it was."""


class Mended(msgspec.Struct, kw_only=True, rename="camel"):
    """What has been changed so far to make jobs, store and queue agree: it is true at every moment of the change."""

    expired_jobs: list[UUID] = []
    deleted_outputs: list[ObjectKey] = []
    handed_over_jobs: list[UUID] = []
    deleted_messages: list[str] = []


async def audit(database: Database, storage: Storage, open_queue: OpenQueue = nullcontext) -> list[str]:
    """Return a sentence for each difference; the list must be empty. A region or queue that is away is a difference.

    Takes about 100 bytes of memory per stored output, and about 300 per message.
    """
    books, compared = await audit_books(database), await compare_store(database, storage)
    waiting = await compare_queue(database, open_queue)
    return [
        *books,
        *compared.doubtful.values(),
        *(f"The stored output {key} belongs to no job." for key in compared.orphans),
        *(f"The output of job {job_id} is not in the store." for job_id in compared.missing),
        *(f"The input of job {job_id} is not in the store." for job_id in compared.without_input),
        *compared.sentences,
        *(f"The message {subject} in the queue belongs to no job." for subject in waiting.strays),
        *(f"The job {job_id} waits for a worker, but has no message in the queue." for job_id in waiting.missing),
        *([waiting.problem] if waiting.problem else []),
    ]


async def compare_store(
    database: Database, storage: Storage, regions: Collection[str] | None = None, *, is_forced: bool = False
) -> StoreComparison:
    """Compare the store, or some of its regions, with the jobs, while the service runs.

    Leaves out regions of another database, unless `is_forced`, and those that are away.
    """
    # A job records the key of its output before the output exists, and becomes Completed only after it exists. Objects
    # listed first are therefore no orphans, and the outputs of jobs completed before the listing are in it. So
    # are the inputs of jobs that were handed over before it, for as long as these are open.
    began, inputs = await outputs.time_of(database), await outputs.recorded_inputs(database)
    known_regions = {HOME, *storage.regions}
    own_store = OwnStore(database, storage)
    stored: set[str] = set()
    not_compared: dict[str, str] = {}
    others: dict[str, list[str]] = {}
    for region in sorted(known_regions if regions is None else regions):
        try:
            if not is_forced:
                await own_store.require(region)
            found = await _keys(storage, region)
            others[region] = await own_store.other_marks(region)  # after what others have stored
            stored |= found
        except StorageUnavailable as error:
            not_compared[region] = _not_compared(region, error)
    orphans = set(await outputs.unknown_keys(database, sorted(stored)))
    matching = set(map(region_of, stored - orphans))
    for region in set(map(region_of, orphans)):  # unless they were removed since the listing
        orphans -= {key for key in orphans if region_of(key) == region} - await _keys(storage, region)
    lost = await outputs.missing(database, stored, began)
    missing = {job_id: key for job_id, key in lost.items() if region_of(key) in others}
    lost_inputs = [job for key, job in inputs.items() if key not in stored and region_of(key) in others]
    unknown = Counter(map(region_of, orphans))
    shared = {region for region in unknown if others[region]}
    lacking = Counter(map(region_of, missing.values()))
    return StoreComparison(
        regions=tuple(others),
        orphans=tuple(ObjectKey(key) for key in sorted(orphans) if region_of(key) not in shared),
        missing=missing,
        without_input=tuple(await outputs.still_open(database, lost_inputs)),
        shared={region: _shared(region, unknown[region], others[region]) for region in sorted(shared)},
        doubtful={
            region: _doubtful(region, unknown[region], lacking[region])
            for region in sorted({*unknown, *lacking} - matching)
        }
        | await _copied(own_store, others),
        not_compared=not_compared,
        out_of_reach={}
        if regions is not None
        else {job_id: region_of(key) for job_id, key in lost.items() if region_of(key) not in known_regions},
    )


async def _keys(storage: Storage, region: str) -> set[str]:
    return {str(entry.key) async for entry in storage.objects(region)}


def _not_compared(region: str, error: StorageUnavailable) -> str:
    advice = "Check the settings of the store, and of the database."
    if isinstance(error, ForeignStore):
        advice += f" If its results really are lost, `geomill reconcile {_option(region)}--force` gives them up."
    return f"{place(region).capitalize()} was not compared ({error.fault}: {error.detail}). {advice}"


def _shared(region: str, count: int, marks: Sequence[str]) -> str:
    return (
        f"{place(region).capitalize()} has {count} outputs that belong to no job here, but may belong to another "
        f"database that shares it. If none does any longer, delete the object {' and '.join(marks)} from the store."
    )


def _doubtful(region: str, orphans: int, missing: int) -> str:
    return (
        f"No output in {place(region)} belongs to a job: {orphans} outputs have no job, {missing} jobs have no "
        "output. It may be the store of another database; check the settings of both. If the outputs really are lost, "
        f"run `geomill reconcile {_option(region)}--force`."
    )


async def _copied(own_store: OwnStore, regions: Iterable[str]) -> dict[str, str]:
    """Return a sentence for each of the regions that belong to the original of this database."""
    copied = {}
    for region in regions:
        try:
            await own_store.require_original(region)
        except ForeignStore as error:
            copied[region] = (
                f"Nothing in {place(region)} is deleted: {error.detail}. If it has taken the place of its "
                f"original, run `geomill reconcile {_option(region)}--force`; otherwise give it a store of its own."
            )
    return copied


def _option(region: str) -> str:
    return f"--region {region or 'home'} "


async def compare_queue(database: Database, open_queue: OpenQueue) -> QueueComparison:
    """Compare the queue with the jobs, while the service runs. Of a queue that is away, only the problem is known."""
    try:
        async with open_queue() as queue:
            return await _compare_messages(database, queue) if queue is not None else QueueComparison()
    except QueueUnavailable as error:
        return QueueComparison(problem=f"The queue could not be compared with the jobs: {_remedy(error)}")


async def _compare_messages(database: Database, queue: "QueueContents") -> QueueComparison:
    # A job that waits keeps its message until it has ended, so what was waiting before the queue was looked at, and
    # waits after that, should be there.
    handovers = _handovers(database, queue)
    waiting = {message.job_id async for message in handovers.all_unclaimed(_AT_ONCE)}
    jobs = await queue.jobs()
    unknown = await outputs.unknown_jobs(database, [job_id for job_id in jobs.values() if job_id is not None])
    strays = {subject for subject, job_id in jobs.items() if job_id is None or job_id in unknown}
    known = len(jobs) - len(strays)
    missing = waiting.difference(jobs.values())
    if strays or missing:  # unless they were removed, or handed over again, meanwhile
        missing &= {message.job_id async for message in handovers.all_unclaimed(_AT_ONCE)}
        jobs = await queue.jobs()
        strays, missing = strays & jobs.keys(), missing.difference(jobs.values())
    return QueueComparison(known=known, strays=tuple(sorted(strays)), missing=tuple(sorted(missing)))


async def reconcile(
    database: Database, storage: Storage, compared: StoreComparison, mended: Mended, *, is_forced: bool = False
) -> list[str]:
    """Make the jobs and the store agree: jobs without their output become Expired, outputs without a job are deleted.

    What was charged stays charged. Notes in `mended` what is done, also if the rest fails; jobs that ended in the
    meantime do not become Expired. Leaves doubtful regions and those that are not set as they are, unless `is_forced`.
    Returns a sentence for each region that it leaves.

    Raises:
        StorageUnavailable: the store failed; what is left to do is found by another comparison.
    """
    left = compared.sentences
    if is_forced:
        await _adopt(OwnStore(database, storage), compared.regions)
        expired = (*compared.missing, *compared.out_of_reach)
    else:
        left += compared.doubtful.values()
        compared = compared.without(compared.doubtful)
        expired = tuple(compared.missing)
    for start in range(0, len(expired), _AT_ONCE):
        mended.expired_jobs += await outputs.expire(database, expired[start : start + _AT_ONCE])
    failure: ObjectsLeft | None = None
    for start in range(0, len(compared.orphans), _AT_ONCE):
        orphans = compared.orphans[start : start + _AT_ONCE]
        try:
            await storage.delete(orphans)
        except ObjectsLeft as error:
            failure, orphans = error, tuple(key for key in orphans if key not in error.reasons)
        mended.deleted_outputs += orphans
    if failure is not None:
        raise failure
    return left


async def _adopt(own_store: OwnStore, regions: Collection[str]) -> None:
    for region in regions:
        try:
            await own_store.require(region)
            await own_store.require_original(region)
        except ForeignStore:
            await own_store.adopt(region)


async def reconcile_queue(
    database: Database, open_queue: OpenQueue, compared: QueueComparison, mended: Mended
) -> list[str]:
    """Make the queue agree with the jobs: remove messages that belong to none, and hand over again what it lacks.

    Notes in `mended` what is done, also if the rest fails. Returns a sentence if the queue was, or is, away: what is
    left to do is found by another comparison.
    """
    if compared.problem:
        return [compared.problem]
    if not compared.strays and not compared.missing:
        return []
    try:
        async with open_queue() as queue:
            if queue is not None:
                await _mend_queue(database, queue, compared, mended)
    except QueueUnavailable as error:
        return [f"The queue could not be made to agree with the jobs: {_remedy(error)}"]
    return []


async def _mend_queue(database: Database, queue: "QueueContents", compared: QueueComparison, mended: Mended) -> None:
    for subject in compared.strays:
        await queue.remove(subject)
        mended.deleted_messages.append(subject)
    missing = frozenset(compared.missing)
    if missing:
        everything = _handovers(database, queue).all_unclaimed(_AT_ONCE)
        still_missing = [message async for message in everything if message.job_id in missing]
        await queue.complete()
        for message in still_missing:
            await queue.offer(message)
            mended.handed_over_jobs.append(message.job_id)


def _remedy(error: QueueUnavailable) -> str:
    return f"{error.message} Then run this command again."


def _handovers(database: Database, queue: "QueueContents") -> HandOvers:
    return HandOvers(database, ServerId(uuid4()), queue.lease)
