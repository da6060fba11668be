"""Figures that must not grow while a fleet runs: of each of its processes, of its queue, and of its store."""

import re
from collections.abc import Mapping
from typing import Final

import httpx
import msgspec
import psutil

from bench.load.fleet import GATEWAY, MEMBERS, OVERFLOW, WORKER, BenchFleet
from bench.measure.meter import MEGABYTE, Meter
from bench.measure.watch import WATCHED, Watched, held_by, of_store, shown
from service.db.pool import Database
from service.jobs.queue_state import look_at_queue
from tests.integration.storage.servers import BUCKET

MEMORY_SECONDS: Final = 60.0
"""Runs of less do not judge the memory of each process."""
_OF_EACH: Final[Mapping[str, Watched]] = {
    "gateway_mb": Watched(about="memory", unit="MB", share=0.05, least=8, seconds=MEMORY_SECONDS),
    "processes": Watched(about="processes", least=8),
    "threads": Watched(about="threads", least=4),
    "descriptors": Watched(about="descriptors", least=16),
    "connections": Watched(about="connections", least=8),
    "work_files": Watched(about="files of work", least=16),
    "tasks": Watched(about="asyncio tasks", least=24),
}
"""Figures of one process, by their names in what is seen of any server."""
_OF_STORE: Final = ("database_connections", "stray_files", "overdue_files", "stored_files")
MESSAGES: Final = "fleet: messages"
_DELIVERED: Final = re.compile(r"^geomill_fleet_deliveries_total\{.*\} (\S+)$", re.MULTILINE)
NATS_MB: Final = "fleet: memory of NATS"

WATCHED_IN_FLEET: Final[Mapping[str, Watched]] = {
    **{
        f"{member}: {name}": msgspec.structs.replace(watched, about=f"{member}: {watched.about}")
        for member in MEMBERS
        for name, watched in _OF_EACH.items()
    },
    **{
        f"fleet: {name}": msgspec.structs.replace(WATCHED[name], about=f"fleet: {WATCHED[name].about}")
        for name in (*_OF_STORE, "reservations")
    },
    MESSAGES: Watched(about="fleet: messages in the queue", least=16),
    NATS_MB: Watched(about=NATS_MB, unit="MB", share=0.25, least=16, seconds=600),
}
"""Each client may have a batch in the queue. NATS fills the buffers of its store during the first minutes."""


class FleetWatch:
    """Looks at one fleet again and again."""

    def __init__(self, fleet: BenchFleet) -> None:
        self._fleet = fleet
        self._meters = {name: Meter(server.process.pid, None) for name, server in fleet.members.items()}
        self._nats = psutil.Process(fleet.nats.pid)
        self._private_urls = {
            name: server.url if name == WORKER else server.private_url for name, server in fleet.members.items()
        }

    async def look(self, client: httpx.AsyncClient, database: Database) -> dict[str, float]:
        """Return every figure of the fleet now."""
        seen: dict[str, float] = {}
        for member, server in self._fleet.members.items():
            of_it = await held_by(self._meters[member])
            of_it |= await shown(client, f"{self._private_urls[member]}/metrics")
            of_it["work_files"] = len(server.work_files())
            seen |= {f"{member}: {name}": of_it[name] for name in _OF_EACH if name in of_it}
            if member == GATEWAY:
                seen["fleet: reservations"] = of_it["reservations"]
        of_store_now = await of_store(self._fleet.s3.directory / BUCKET, database)
        seen |= {f"fleet: {name}": of_store_now[name] for name in _OF_STORE}
        seen[MESSAGES] = (await look_at_queue(self._fleet.nats.url)).messages
        seen[NATS_MB] = round(self._nats.memory_info().rss / MEGABYTE, 2)
        return seen

    async def delivered(self, client: httpx.AsyncClient) -> int:
        """Return how many jobs the queue has brought to those who convert."""
        answers = [await client.get(f"{self._private_urls[name]}/metrics") for name in (WORKER, OVERFLOW)]
        return int(sum(float(count) for answer in answers for count in _DELIVERED.findall(answer.text)))
