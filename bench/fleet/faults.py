"""What breaks a fleet while clients use it: kills of gateways and workers, and of the servers that they rely on."""

import asyncio
import random
import time
from collections import Counter, defaultdict
from collections.abc import Callable
from contextlib import suppress

from bench.fleet.hosts import Host
from service.errors import DatabaseUnavailable
from tests.fleet.site import Site
from tests.support.server import Server

START_SECONDS = 600.0
"""How long a process may need to run again, whatever else is away."""
_IN_A_CONVERTER = """
SELECT id::text, worker_id::text FROM job
 WHERE status = 'Processing' AND completed_at IS NULL AND worker_id IS NOT NULL
"""


class Kills:
    """Kills processes of a fleet one after the other, and starts each again on the same host and directory."""

    def __init__(self, site: Site, hosts: Callable[[str], Host], seed: int) -> None:
        self.count: Counter[str] = Counter()
        self.suspected: defaultdict[str, set[str]] = defaultdict(set)
        """The workers that have had a job in a converter when one of them was killed, by job."""
        self.over = asyncio.Event()
        """Set it to end all this; what is down is started again."""
        self._site = site
        self._hosts = hosts
        self._random = random.Random(seed)
        self._down: set[str] = set()

    def gateways(self) -> list[str]:
        """The URLs of the gateways that run."""
        return [server.url for server in self._site.gateways if server.data_dir.name not in self._down]

    async def keep_killing(self, servers: list[Server], command: tuple[str, ...], seconds: float) -> None:
        """Kill one of `servers` again and again, so many seconds after all of them run, until it is over."""
        while not await self.is_over_after(seconds):
            await self.kill_one(servers, command)

    async def kill_one(self, servers: list[Server], command: tuple[str, ...]) -> None:
        """Kill one of `servers`, and wait until its successor runs."""
        victim = self._random.choice(servers)
        self._down.add(victim.data_dir.name)
        self.count[command[-1]] += 1
        victim.process.kill()
        await asyncio.to_thread(self._note_suspects)
        await asyncio.to_thread(self._replace, servers, victim, command)

    async def is_over_after(self, seconds: float) -> bool:
        """Wait for so long, or until it is over."""
        with suppress(TimeoutError):
            await asyncio.wait_for(self.over.wait(), seconds)
        return self.over.is_set()

    def _note_suspects(self) -> None:
        try:
            found = self._site.rows(_IN_A_CONVERTER)
        except DatabaseUnavailable:
            return
        for row in found:
            self.suspected[row["id"]].add(row["worker_id"])

    def _replace(self, servers: list[Server], victim: Server, command: tuple[str, ...]) -> None:
        name = victim.data_dir.name
        victim.process.wait()
        give_up_at = time.monotonic() + START_SECONDS
        while True:
            try:
                started = self._site.start(name, command, self._hosts(name))
            except AssertionError:  # the database or the queue is away at the moment
                if time.monotonic() > give_up_at:
                    raise
                continue
            break
        servers[servers.index(victim)] = started
        self._down.discard(name)
