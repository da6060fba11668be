"""Figures that must not grow while a server runs: sampled periodically and compared with earlier values.

A figure is flat when its median over the last quarter of the time is at most `allowed` above its median over the second
one: the first is left to warming up, and medians forget the moments in which many files happen to be under way.
"""

import asyncio
import math
import os
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import median

import httpx
import msgspec

from bench.load.site import Site
from bench.measure.meter import Meter
from service.db.pool import Database

QUARTERS = 4

_CONNECTIONS = """
SELECT count(*) FROM pg_stat_activity
 WHERE backend_type = 'client backend' AND datname = current_database() AND pid <> pg_backend_pid()
"""
_KEPT = "SELECT count(object_key) + count(input_key) FROM job"
"""In a fleet, jobs have inputs in the store, too."""
_OVERDUE = "SELECT count(*) FROM job WHERE status = 'Completed' AND expires_at < now() - interval '5 minutes'"
"""The sweep comes once a minute and leaves results for a minute longer; a soak lets them expire two minutes ago."""
_SHOWN = {"tasks": "geomill_tasks", "requests": "geomill_requests_running", "reservations": "geomill_reservations"}


class Watched(msgspec.Struct, frozen=True, kw_only=True):
    """A figure that must stay flat: it may grow by `share` of its value, or by `least` if that is more.

    Runs of less than `seconds` do not judge it.
    """

    about: str
    unit: str = ""
    share: float = 0.0
    least: float
    seconds: float = 0.0

    def allowed(self, earlier: float) -> float:
        """The growth that is allowed."""
        return max(self.least, self.share * earlier)


WATCHED: dict[str, Watched] = {
    "gateway_mb": Watched(about="memory of the gateway", unit="MB", share=0.05, least=8),
    "anonymous_mb": Watched(about="memory that all processes asked for", unit="MB", share=0.10, least=25, seconds=60),
    "processes": Watched(about="processes", least=16),
    "threads": Watched(about="threads of the gateway", least=4),
    "descriptors": Watched(about="descriptors of the gateway", least=16),
    "connections": Watched(about="connections of the gateway", least=8),
    "database_connections": Watched(about="connections to the database", least=8),
    "work_files": Watched(about="files of uploads and jobs under way", least=16),
    "stray_files": Watched(about="files in the store that no job has", least=8),
    "overdue_files": Watched(about="files in the store that are past their time", least=8),
    "stored_files": Watched(about="files in the store", least=0, seconds=math.inf),
    "tasks": Watched(about="asyncio tasks of the gateway", least=24),
    "requests": Watched(about="requests under way", least=8),
    "reservations": Watched(about="open reservations", least=8),
}
"""Counts may grow by as much as the eight clients of a soak can have in progress at a time; a leak exceeds that within
minutes. Each client may need a converter, and a connection to the database, which is a process of PostgreSQL. In a
short run, one large conversion makes up half of a quarter. The number of results depends on the rate of conversions,
and so on the load of the machine: it is shown but not judged. Judged is that each result belongs to a job and is
deleted after its retention.
"""


class FigureVerdict(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """A figure's medians by quarter, and whether it is flat; None where the run was too short to tell."""

    about: str
    unit: str
    quarters: tuple[float, ...]
    allowed: float
    flat: bool | None

    @property
    def growth(self) -> float:
        """From the second quarter to the last."""
        return self.quarters[-1] - self.quarters[1]


class Sample(msgspec.Struct, frozen=True, kw_only=True):
    """What was seen at one moment, `at` seconds after the beginning; what could not be seen is missing."""

    at: float
    values: dict[str, float]


async def look(site: Site, client: httpx.AsyncClient, database: Database | None) -> dict[str, float]:
    """Return every figure that can be had of this site now."""
    seen: dict[str, float] = {}
    if site.meter is not None:
        seen |= await held_by(site.meter)
    if site.server is not None and database is not None:
        store = site.server.data_dir / "store"
        seen |= await of_store(store, database)
        seen["work_files"] = len(site.server.work_files())
    return seen | await shown(client, f"{site.prefix}/metrics")


async def held_by(meter: Meter) -> dict[str, float]:
    """Return what processes hold now."""
    snapshot = await asyncio.to_thread(meter.snapshot)
    return {name: round(value, 2) for name, value in msgspec.structs.asdict(snapshot).items() if value is not None}


async def of_store(directory: Path, database: Database) -> dict[str, float]:
    """Return what is in a store, which is a directory, and who is connected to its database."""
    stored = await asyncio.to_thread(_count_files, directory)
    async with database.connection() as connection:
        kept = await connection.fetchval(_KEPT)
        overdue = await connection.fetchval(_OVERDUE)
        connections = await connection.fetchval(_CONNECTIONS)
    return {
        "stored_files": stored,
        "stray_files": max(0, stored - kept),
        "overdue_files": overdue,
        "database_connections": connections,
    }


def _count_files(directory: Path) -> int:
    return sum(len(files) for _, _, files in os.walk(directory))


async def shown(client: httpx.AsyncClient, url: str) -> dict[str, float]:
    """Return the figures that a process shows in its metrics, if it shows them here."""
    answer = await client.get(url)
    if not answer.is_success:
        return {}
    found = {name: re.search(rf"^{metric} (\S+)$", answer.text, re.MULTILINE) for name, metric in _SHOWN.items()}
    return {name: float(value[1]) for name, value in found.items() if value is not None}


def judge(samples: Sequence[Sample], watched: Mapping[str, Watched] = WATCHED) -> dict[str, FigureVerdict]:
    """Judge every figure that all samples have."""
    names = [name for name in watched if samples and all(name in sample.values for sample in samples)]
    return {name: _judge(watched[name], samples, name) for name in names}


def _judge(watched: Watched, samples: Sequence[Sample], name: str) -> FigureVerdict:
    end = samples[-1].at
    quarters: list[float] = []
    for quarter in range(QUARTERS):
        low, high = end * quarter / QUARTERS, end * (quarter + 1) / QUARTERS
        values = [sample.values[name] for sample in samples if low <= sample.at <= high]
        quarters.append(round(median(values), 1) if values else quarters[-1] if quarters else 0.0)
    allowed = round(watched.allowed(quarters[1]), 1)
    flat = quarters[-1] - quarters[1] <= allowed if end >= watched.seconds else None
    return FigureVerdict(about=watched.about, unit=watched.unit, quarters=tuple(quarters), allowed=allowed, flat=flat)
