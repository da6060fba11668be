"""Loads: a number of clients in a closed loop, or a rate of arrivals that does not depend on response times."""

import asyncio
import itertools
import time
from array import array
from collections import defaultdict
from collections.abc import Callable, Sequence

import msgspec

from bench.load.client import Address, LoadConnection, LoadRequest, LoadResponse, connect

OK = "ok"
GRACE_SECONDS = 300.0
"""How long answers may take after the last request was sent; what is missing then is an error."""
MOST_IDLE = 4000

Judge = Callable[[LoadResponse], str]
"""Names what an answer is: `OK`, or the kind of error."""


class LoadShape(msgspec.Struct, frozen=True, kw_only=True):
    """How requests come: by `clients` that each wait for their answer, or `rate` times a second.

    With `count`, a load lasts as long as so many requests take. Before that, a rate goes on for `lead_seconds` whose
    answers do not count as done: meanwhile the queues of the server fill. `bytes_per_second` slows every client down.
    """

    clients: int = 0
    rate: float = 0.0
    lead_seconds: float = 0.0
    count: int = 0
    bytes_per_second: float = 0.0


class Load(LoadShape, frozen=True, kw_only=True):
    """Requests in turn, each answer judged, for `seconds` unless there is a `count`."""

    requests: Sequence[LoadRequest]
    judge: Judge
    seconds: float = 0.0


class LoadTally:
    """What happened: seconds by kind of answer, and how late the generator itself was."""

    def __init__(self) -> None:
        self.seconds_by_kind: defaultdict[str, array[float]] = defaultdict(lambda: array("d"))
        self.late_seconds = array("d")
        self.elapsed_seconds = 0.0
        self.window_seconds = 0.0
        self.done_in_window = 0
        """What was done in the last `window_seconds` in which requests were being sent, where the load has a length."""

    def add(self, kind: str, seconds: float, *, in_window: bool = False) -> None:
        """Count one answer."""
        self.seconds_by_kind[kind].append(seconds)
        self.done_in_window += in_window and kind == OK

    @property
    def errors(self) -> dict[str, int]:
        """How many of each kind of error."""
        return {kind: len(seconds) for kind, seconds in sorted(self.seconds_by_kind.items()) if kind != OK}


async def put_load(address: Address, load: Load, stop: asyncio.Event | None = None) -> LoadTally:
    """Put the load on the server and return what happened. With `stop` it lasts until that is set."""
    tally = LoadTally()
    run = _Run(address, load, tally, stop)
    since = time.perf_counter()
    await (run.open_loop() if load.rate else run.closed_loop())
    tally.elapsed_seconds = time.perf_counter() - since
    return tally


class _Run:
    def __init__(self, address: Address, load: Load, tally: LoadTally, stop: asyncio.Event | None) -> None:
        self._address = address
        self._load = load
        self._tally = tally
        self._stop = stop
        self._left = load.count
        self._requests = itertools.cycle(load.requests)
        self._idle: list[LoadConnection] = []
        self._window = (0.0, 0.0)

    async def closed_loop(self) -> None:
        """Each client sends when it has its answer."""
        async with asyncio.TaskGroup() as tasks:
            until = time.perf_counter() + self._load.seconds
            for _ in range(self._load.clients):
                tasks.create_task(self._client(until))
        self._close_idle()

    async def open_loop(self) -> None:
        """Requests arrive at their times; a latency counts from the time at which its request was to be sent."""
        start = time.perf_counter()
        interval = 1 / self._load.rate
        counts_from = start + self._load.lead_seconds
        ends = counts_from + self._load.seconds
        if self._stop is None and not self._load.count:
            self._tally.window_seconds = self._load.seconds
            self._window = (counts_from, ends)
        async with asyncio.TaskGroup() as tasks:
            for number in itertools.count():
                due = start + number * interval
                if self._is_over(due, ends):
                    break
                if (wait := due - time.perf_counter()) > 0:
                    await asyncio.sleep(wait)
                tasks.create_task(self._arrival(due))
        self._close_idle()

    async def _client(self, until: float) -> None:
        while not self._is_over(time.perf_counter(), until):
            await self._exchange(time.perf_counter())

    async def _arrival(self, due: float) -> None:
        self._tally.late_seconds.append(time.perf_counter() - due)
        await self._exchange(due)

    def _is_over(self, now: float, until: float) -> bool:
        if self._load.count:
            self._left -= 1
            return self._left < 0
        return self._stop.is_set() if self._stop is not None else now >= until

    async def _exchange(self, due: float) -> None:
        """Send the next request and count its answer."""
        connection: LoadConnection | None = None
        try:
            async with asyncio.timeout(self._load.seconds + GRACE_SECONDS):
                connection = self._open_connection() or await connect(self._address)
                answer = await connection.request(next(self._requests), self._load.bytes_per_second)
        except (OSError, TimeoutError) as error:
            self._tally.add(type(error).__name__, time.perf_counter() - due)
            if connection is not None:
                connection.close()
        else:
            now = time.perf_counter()
            begins, ends = self._window
            self._tally.add(self._load.judge(answer), now - due, in_window=begins < now <= ends)
            self._keep(connection)

    def _open_connection(self) -> LoadConnection | None:
        """One that is idle, unless the server has closed it meanwhile."""
        while self._idle:
            if (connection := self._idle.pop()).is_idle:
                return connection
            connection.close()
        return None

    def _keep(self, connection: LoadConnection) -> None:
        if connection.is_open and len(self._idle) < MOST_IDLE:
            self._idle.append(connection)
        else:
            connection.close()

    def _close_idle(self) -> None:
        while self._idle:
            self._idle.pop().close()
