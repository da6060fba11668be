"""Loads: a number of clients in a closed loop, or a rate of arrivals that does not depend on response times."""

import asyncio
import itertools
import time
from array import array
from collections import defaultdict
from collections.abc import Callable, Sequence
from functools import partial

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
    run = _Run(address, load, stop)
    since = time.perf_counter()
    await run.until_answered()
    run.tally.elapsed_seconds = time.perf_counter() - since
    return run.tally


class _Run:
    """Sends in a closed loop, in which each client sends when it has its answer, or in an open one.

    In an open loop, requests arrive at their times; a latency counts from the time at which its request was to be sent.
    """

    def __init__(self, address: Address, load: Load, stop: asyncio.Event | None) -> None:
        self.tally = LoadTally()
        self._address = address
        self._load = load
        self._stop = stop
        self._left = load.count
        self._requests = itertools.cycle(load.requests)
        self._idle: list[LoadConnection] = []
        self._busy: set[LoadConnection] = set()
        self._under_way = 0
        self._answered = asyncio.Event()
        self._loop = asyncio.get_running_loop()
        self._start = time.perf_counter()
        counts_from = self._start + load.lead_seconds
        self._ends = counts_from + load.seconds
        self._window = (0.0, 0.0)
        if load.rate and stop is None and not load.count:
            self.tally.window_seconds = load.seconds
            self._window = (counts_from, self._ends)
        self._is_over = False

    async def until_answered(self) -> None:
        """Send all, and wait until all is answered."""
        async with asyncio.TaskGroup() as self._tasks:
            if self._load.rate:
                self._send_due(0)
            for _ in range(self._load.clients):
                self._take_turn()
            await self._answered.wait()
        for connection in self._idle:
            connection.close()

    def _send_due(self, number: int) -> None:
        """Send what has become due, from this number on, and come again for the next."""
        now = time.perf_counter()
        while (due := self._start + number / self._load.rate) <= now:
            if not self._goes_on(due):
                return
            self.tally.late_seconds.append(now - due)
            self._exchange(due)
            number += 1
        self._loop.call_later(due - now, self._send_due, number)

    def _take_turn(self) -> None:
        """Send the next request of one client."""
        if self._goes_on(now := time.perf_counter()):
            self._exchange(now)

    def _goes_on(self, now: float) -> bool:
        """Whether one more request is to be sent; otherwise the load is over once all answers are there."""
        if self._load.count:
            self._left -= 1
            goes_on = self._left >= 0
        else:
            goes_on = now < self._ends if self._stop is None else not self._stop.is_set()
        if not goes_on and not self._is_over:
            self._is_over = True
            self._loop.call_later(GRACE_SECONDS, self._give_up)
            self._look_for_end()
        return goes_on

    def _exchange(self, due: float) -> None:
        """Send the next request, on a connection that is idle or a new one, and count its answer."""
        self._under_way += 1
        while self._idle:
            if (connection := self._idle.pop()).is_idle:
                self._send(connection, due)
                return
            connection.close()  # the server has closed it meanwhile
        self._tasks.create_task(self._connect(due))

    async def _connect(self, due: float) -> None:
        try:
            async with asyncio.timeout(GRACE_SECONDS):
                connection = await connect(self._address)
        except OSError as error:
            self._end(due, None, error)
        else:
            self._send(connection, due)

    def _send(self, connection: LoadConnection, due: float) -> None:
        self._busy.add(connection)
        connection.send(next(self._requests), partial(self._end, due, connection), self._load.bytes_per_second)

    def _end(self, due: float, connection: LoadConnection | None, outcome: LoadResponse | OSError) -> None:
        now = time.perf_counter()
        if connection is not None:
            self._busy.discard(connection)
        if isinstance(outcome, OSError):
            self.tally.add(type(outcome).__name__, now - due)
        else:
            begins, ends = self._window
            self.tally.add(self._load.judge(outcome), now - due, in_window=begins < now <= ends)
        if connection is not None:
            self._keep(connection)
        self._under_way -= 1
        if self._load.clients:
            self._take_turn()
        self._look_for_end()

    def _keep(self, connection: LoadConnection) -> None:
        if connection.is_open and len(self._idle) < MOST_IDLE:
            self._idle.append(connection)
        else:
            connection.close()

    def _look_for_end(self) -> None:
        if self._is_over and not self._under_way:
            self._answered.set()

    def _give_up(self) -> None:
        for connection in list(self._busy):
            connection.close(TimeoutError())
        self._answered.set()
