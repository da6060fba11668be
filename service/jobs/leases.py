"""Tracks which process holds which jobs, and which jobs no process holds any more.

Every serving process sends a heartbeat every few seconds. A job is abandoned if its process has sent no heartbeat for
longer than the lease, or if its own living process does not hold it; `usecases.maintenance` ends both. A job that was
handed over is claimed by a worker, for as long as that sends heartbeats, and by another one after that. Leases are
measured by the clock of the database alone.
"""

import math
import time
from collections.abc import Callable, Iterable, Sequence
from datetime import timedelta
from typing import Literal, NamedTuple

import msgspec
import structlog

from service.clock import DatabaseClock
from service.db.batching import Batcher
from service.db.pool import Database
from service.db.queries import load
from service.formats.offer import Availability
from service.ids import AccountId, JobId, ServerId
from service.jobs.handover import READS
from service.jobs.seals import Proof
from service.telemetry import events

_SQL = load("jobs")
_log = structlog.get_logger()

BEATS_PER_LEASE = 6
SETTLED = timedelta(hours=1)
"""After a jump of the clock, nothing is deleted for being old before so long: it may be set right again."""
MOST_DEATHS = 3
"""After so many workers have died while they converted a file, it is not tried again."""
POISON = (
    "Three processes ended while converting the file, so it is not tried again. Nothing was counted; the file may be "
    "damaged in a way that the converter cannot handle."
)
_AT_ONCE = 500
_CLAIMED_AT_ONCE = 64


class HeldJob(msgspec.Struct, frozen=True):
    """An open job of one process, and the key that its output may have."""

    id: JobId
    attempt: int
    object_key: str | None


class Claim(msgspec.Struct, frozen=True, kw_only=True):
    """What came of claiming a job; only a job that was `claimed` has an attempt, the key of its output and its secret.

    `input` is the key of its input if that is in the store. With the `secret`, what is told of the job is sealed. A
    process has died with a job that `is_doubtful`, so the start of its converter must be recorded before it. One that
    `is_suspect` must run alone: if another process dies while it converts the job, the job is `given up`, and has
    failed. A crash of the database may undo a claim that is not `is_durable`.
    """

    verdict: Literal["claimed", "held", "ended", "given up", "forged"]
    attempt: int | None = None
    output: str | None = None
    input: str | None = None
    is_doubtful: bool = False
    is_suspect: bool = False
    secret: str | None = None
    is_durable: bool = True


class FleetSize(NamedTuple):
    """How many converters all living workers have, how many of these have paused, and how many hand over to them."""

    converters: int
    paused: int
    gateways: int


class _Wanted(NamedTuple):
    """A job to claim, for the account and from the gateway that its message names."""

    job_id: JobId
    account_id: AccountId
    gateway: ServerId
    new_name: str
    digest: bytes | None
    seal: bytes | None
    durable: bool


class Leases:
    """The lease of one serving process on its jobs."""

    def __init__(
        self,
        database: Database,
        server_id: ServerId,
        lease: timedelta,
        formats: Sequence[Availability] | None = None,
        *,
        converters: int | None = None,
        hands_over: bool = False,
        now: Callable[[], float] = time.monotonic,
        clock: DatabaseClock | None = None,
    ) -> None:
        """Treat a process without a heartbeat for `lease` as dead; `now` counts seconds, and heartbeats set `clock`.

        A worker tells others its `formats` and how many `converters` it has, and a gateway that it `hands_over`.
        """
        self._database = database
        self._lease = lease
        self._now = now
        self._formats, self._converters, self._hands_over = msgspec.to_builtins(formats), converters, hands_over
        self._reads = None if formats is None else READS
        self.takes_jobs: Callable[[], bool] = lambda: True
        """Whether this process, if it is a worker, takes jobs; while it does not, it tells of no converters."""
        self._clock = clock or DatabaseClock()
        self._beaten = -math.inf
        self._held_since = math.inf
        self._jumped_at = -math.inf
        self._claims = Batcher(self._claim_all, _CLAIMED_AT_ONCE)
        self.server_id = server_id

    @property
    def heartbeat(self) -> timedelta:
        """The interval between heartbeats."""
        return self._lease / BEATS_PER_LEASE

    @property
    def is_held(self) -> bool:
        """Whether the last heartbeat is younger than the lease, so that no other process may take over jobs."""
        return self._now() - self._beaten < self._lease.total_seconds()

    @property
    def may_judge(self) -> bool:
        """Whether heartbeats show who is alive: after a jump of the clock, all that live have sent new ones."""
        return self._clock.seconds() - self._jumped_at >= self._lease.total_seconds()

    @property
    def may_delete(self) -> bool:
        """Whether what is old by the clock may be deleted: it has not jumped lately, nor contradicts the host's."""
        has_settled = self._clock.seconds() - self._jumped_at >= SETTLED.total_seconds()
        return has_settled and not self._clock.is_doubtful

    async def beat(self) -> None:
        """Send a heartbeat, and set the clock by the response."""
        began, asked = self._now(), self._clock.seconds()
        converters = self._converters and (self._converters if self.takes_jobs() else 0)
        told = await self._database.fetchval(
            _SQL["heartbeat"], self.server_id, self._formats, converters, self._hands_over, self._reads
        )
        jump = self._clock.synchronize(told, asked)
        if abs(jump) > 2 * self.heartbeat:
            _log.error(events.DATABASE_CLOCK_JUMPED, seconds=round(jump.total_seconds()))
            self._jumped_at = self._clock.seconds()
        if not self.is_held:
            self._held_since = began
        self._beaten = began

    async def offers(self) -> list[tuple[Availability, ...]]:
        """Return the formats of each living worker."""
        rows = await self._database.fetch(_SQL["offers"], self._lease)
        return [msgspec.convert(row["formats"], tuple[Availability, ...]) for row in rows]

    async def size(self) -> FleetSize:
        """Return how large the living part of the fleet is."""
        row = await self._database.fetchrow(_SQL["size"], self._lease)
        return FleetSize(**dict(row)) if row else FleetSize(0, 0, 0)

    async def give_up(self) -> None:
        """End the lease; jobs that this process still holds are abandoned at once."""
        await self._database.execute(_SQL["unregister_server"], self.server_id)

    async def bring_back(self) -> None:
        """Let heartbeats of the future be sent now: the clock was set back, and the dead would seem alive."""
        await self._database.execute(_SQL["bring_back"])

    async def abandoned(self) -> list[HeldJob]:
        """Return open jobs whose process has ended or whose lease has expired, a few hundred at most."""
        return await self._held("abandoned", self._lease, _AT_ONCE)

    async def lead(self, chore: str) -> bool:
        """Take or renew the lease on a task that one process suffices for; return whether this process holds it."""
        return await self._database.fetchval(_SQL["lead"], chore, self.server_id, self._lease) is not None

    async def held(self) -> list[HeldJob]:
        """Return the open jobs that the database attributes to this process."""
        return await self._held("held", self.server_id, self._lease)

    async def claim(
        self,
        job_id: JobId,
        account_id: AccountId,
        gateway: ServerId,
        new_name: str,
        proof: Proof | None = None,
        *,
        durable: bool = True,
    ) -> Claim:
        """Claim a job for this process. A `durable` claim, and the job's admission, survive a crash of the database.

        A job that another process than `gateway` has admitted, or for another account, counts as ended.
        The output of any attempt but the first is to be stored as `new_name`. A job that this process knows from a
        message is forged without the right `proof`.
        """
        digest, seal = proof or (None, None)
        return await self._claims.submit(_Wanted(job_id, account_id, gateway, new_name, digest, seal, durable))

    async def _claim_all(self, wanted: Sequence[_Wanted]) -> list[Claim]:
        """Claim jobs; of several claims of one job, this process has made all, and the first one counts."""
        named = {one.job_id: one for one in reversed(wanted)}
        *columns, durable = zip(*named.values(), strict=True)
        is_durable = any(durable)
        rows = await self._database.fetch(
            _SQL["claim"], *columns, self.server_id, self._lease, MOST_DEATHS, POISON, is_durable
        )
        claims = {row["job_id"]: msgspec.convert({**row, "is_durable": is_durable}, Claim) for row in rows}
        ended, held = Claim(verdict="ended"), Claim(verdict="held")
        return [claims.get(one.job_id, ended) if named.pop(one.job_id, None) else held for one in wanted]

    async def claimed(self) -> list[HeldJob]:
        """Return the open jobs that this process has claimed."""
        return await self._held("claimed", self.server_id)

    async def unreadable(self, job_id: JobId, message: bytes, version: int, proof: Proof) -> HeldJob | None:
        """Return the open job that this message has handed over, if no living worker has it or reads its version."""
        found = await self._held("unreadable", job_id, message, version, self._lease, *proof)
        return found[0] if found else None

    async def _held(self, statement: str, *arguments: object) -> list[HeldJob]:
        rows = await self._database.fetch(_SQL[statement], *arguments)
        return [HeldJob(row["id"], row["attempt"], row["object_key"]) for row in rows]

    async def superseded(self, job_ids: Iterable[JobId]) -> list[JobId]:
        """Return those of these open jobs that another process has claimed meanwhile."""
        if not (asked := list(job_ids)):
            return []
        rows = await self._database.fetch(_SQL["superseded"], asked, self.server_id)
        return [JobId(row["id"]) for row in rows]

    async def give_back(self, job_id: JobId, attempt: int) -> bool:
        """Give up the claim on a job, so that another process can claim it; return whether there was one."""
        return await self._database.fetchval(_SQL["give_back"], job_id, attempt, self.server_id) is not None

    async def forget_silent(self) -> int:
        """Delete processes whose lease has expired and that hold no jobs; return how many of them were workers.

        Deletes none before this process has held its own lease for as long: if all were without the database, the
        others may send their next heartbeats only now. The same holds after a jump of the clock, also one that no
        heartbeat has shown yet.
        """
        has_held = self.is_held and self._now() - self._held_since >= self._lease.total_seconds()
        if not (has_held and self.may_judge):
            return 0
        rows = await self._database.fetch(_SQL["forget_servers"], self._lease, self._clock())
        return sum([row["is_worker"] for row in rows])
