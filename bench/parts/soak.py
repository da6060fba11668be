"""Half an hour of steady mixed load, during which nothing may grow.

    python -m bench.parts.soak [--minutes 30] [--load 0.5] [--url URL --key KEY … [--pid PID]]

Eight clients run a realistic mix of actions (`bench.load.mix`). Each pauses between two actions so that all of them
together keep the given share of the converters busy; a slow machine is not overloaded but serves less. In the meantime,
memory, processes, threads, descriptors, connections, files and tasks are sampled; `bench.measure.watch` defines by how
much each may grow. Afterwards nothing may be in progress, the log must be free of defects, and ledger, jobs and store
must agree (`geomill audit`).

On a server that was started for the run, results expire after half a minute, so that deletion has as much to do as
conversion. On any other server, only the figures from `--pid` and /metrics are judged.

Exits with status 1 and a sentence for everything that grew or failed. Figures go to bench/results/soak.json.
"""

import argparse
import asyncio
import os
import subprocess
import sys
import time
from collections import Counter
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

import httpx
import msgspec

from bench.load.load import OK
from bench.load.mix import TIMEOUT_SECONDS, act, rows_for
from bench.load.site import Site, add_site_arguments, open_site
from bench.load.visitor import Visitor
from bench.measure.meter import load_average
from bench.measure.watch import QUARTERS, Sample, Verdict, judge, look
from bench.report.results import DIRECTORY, commit, write_json
from service.db.pool import Database, open_pool
from service.postgres_embedded import embedded_postgres
from tests.support.server import Server

RESULTS = DIRECTORY / "soak.json"
CLIENTS = 8
SAMPLES = 360
"""The maximum number of samples; there is at most one a second."""
REST_SECONDS = 20.0
"""The longest pause of a client."""
SETTLE_SECONDS = 30.0
EXPIRE_SECONDS = 5.0
DEFECTS = ("request.failed", "job.defect", "job.left", "directory.left", "upkeep.failed", "storage.failed")
"""Log events that no load may cause."""

_EXPIRE = """
UPDATE job SET expires_at = now() - interval '2 minutes'
 WHERE status = 'Completed' AND completed_at < now() - interval '30 seconds' AND expires_at > now()
"""


class Report(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """The result of a soak. `wrong` has a sentence for everything that grew or failed."""

    commit: str
    server: str
    cores: int
    minutes: float
    load: float
    load_average: tuple[float, float]
    done: dict[str, int]
    per_second: float
    figures: dict[str, Verdict]
    wrong: list[str]
    samples: list[Sample]


class Soak:
    """One run of the load, its samples and outcomes."""

    def __init__(self, site: Site, minutes: float, load: float) -> None:
        self.samples: list[Sample] = []
        self.done: Counter[str] = Counter()
        self.unexpected: Counter[str] = Counter()
        self._site = site
        self._rows = rows_for(site)
        self._seconds = minutes * 60
        self._load = load

    async def run(self) -> None:
        """Put the load on the site for its duration, and wait for the requests in progress at its end."""
        async with _client(self._site) as client, _database(self._site) as database:
            visitors = [Visitor(self._site, client, seed) for seed in range(CLIENTS)]
            await self._warm_up(visitors)
            since = time.monotonic()
            async with asyncio.TaskGroup() as tasks:
                for visitor in visitors:
                    tasks.create_task(self._visit(visitor, since + self._seconds))
                tasks.create_task(self._watch(client, database, since))
                if database is not None:
                    tasks.create_task(self._expire(database, since + self._seconds))

    async def _warm_up(self, visitors: Sequence[Visitor]) -> None:
        """Do each action once, so that everything that is loaded on first use is present when sampling starts."""
        await visitors[0].prepare()
        for visitor in visitors[1:]:
            visitor.files = visitors[0].files
        for name in self._rows:
            if (verdict := await act(visitors[0], name)) != OK:
                raise SystemExit(f"The server fails before there is any load: {name}: {verdict}")

    async def _visit(self, visitor: Visitor, until: float) -> None:
        busy = self._load * (os.cpu_count() or 1) / CLIENTS
        while (began := time.monotonic()) < until:
            [name] = visitor.random.choices(tuple(self._rows), tuple(self._rows.values()))
            verdict = await act(visitor, name)
            if verdict == OK:
                self.done[name] += 1
            else:
                self.unexpected[f"{name}: {verdict}"] += 1
            took = time.monotonic() - began
            await asyncio.sleep(min(took * max(0.0, 1 / busy - 1), REST_SECONDS, max(0.0, until - time.monotonic())))

    async def _watch(self, client: httpx.AsyncClient, database: Database | None, since: float) -> None:
        every = max(1.0, self._seconds / SAMPLES)
        while (at := time.monotonic() - since) < self._seconds:
            self.samples.append(Sample(at=round(at, 1), values=await look(self._site, client, database)))
            await asyncio.sleep(every)

    async def _expire(self, database: Database, until: float) -> None:
        while time.monotonic() < until:
            async with database.connection() as connection:
                await connection.execute(_EXPIRE)
            await asyncio.sleep(EXPIRE_SECONDS)


def _client(site: Site) -> httpx.AsyncClient:
    scheme = "https" if site.address.tls else "http"
    base_url = f"{scheme}://{site.address.host}:{site.address.port}"
    return httpx.AsyncClient(base_url=base_url, timeout=TIMEOUT_SECONDS)


@asynccontextmanager
async def _database(site: Site) -> AsyncIterator[Database | None]:
    if site.server is None:
        yield None
        return
    async with embedded_postgres(site.server.data_dir) as dsn, open_pool(dsn, max_size=1) as database:
        yield database


def problems(soak: Soak, figures: dict[str, Verdict], server: Server | None) -> list[str]:
    """Return a sentence for everything that grew or failed."""
    wrong = [f"{count} times {what}" for what, count in soak.unexpected.items()]
    wrong += [
        f"The {figure.about} grew from {figure.quarters[1]:g} to {figure.quarters[-1]:g} {figure.unit}".rstrip()
        + f"; up to {figure.allowed:g} more would be flat."
        for figure in figures.values()
        if figure.flat is False
    ]
    return [*wrong, *(_left(server) if server is not None else ())]


def _left(server: Server) -> list[str]:
    """Return what a server of our own has left behind after everything has ended."""
    wrong = []
    if left := server.wait_until_idle(SETTLE_SECONDS):
        wrong.append(f"{len(left)} files of uploads or jobs remain in the work directory.")
    wrong += [f"The log has {len(found)} times {name}." for name in DEFECTS if (found := server.events(name))]
    command = [sys.executable, "-m", "service", "audit"]
    environment = {**os.environ, "GEOMILL_DATA_DIR": str(server.data_dir)}
    audit = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    if audit.returncode:
        wrong.append(f"The audit found differences: {(audit.stdout or audit.stderr).strip()}")
    return wrong


def table(report: Report) -> str:
    """Return the figures as lines for a terminal."""
    heading = f"{'':46}" + "".join(f"{name:>11}" for name in ("1st", "2nd", "3rd", "4th", "growth", "allowed"))
    lines = [
        f"medians by quarter of {report.minutes:g} minutes; clients did {report.per_second:.1f} actions a second",
        heading,
    ]
    for figure in report.figures.values():
        cells = (*figure.quarters, figure.growth, figure.allowed)
        name = f"{figure.about} ({figure.unit})" if figure.unit else figure.about
        verdict = {True: "", False: "  GREW", None: "  not judged"}[figure.flat]
        lines.append(f"{name:46}" + "".join(f"{cell:11.1f}" for cell in cells) + verdict)
    lines.append("done: " + ", ".join(f"{count} x {name}" for name, count in sorted(report.done.items())))
    return "\n".join(lines)


def soak(site: Site, options: argparse.Namespace) -> Report:
    """Run the soak and judge its figures."""
    before = load_average()
    run = Soak(site, options.minutes, options.load)
    asyncio.run(run.run())
    figures = judge(run.samples)
    return Report(
        commit=commit(),
        server=options.url or "its own",
        cores=os.cpu_count() or 1,
        minutes=options.minutes,
        load=options.load,
        load_average=(before, load_average()),
        done=dict(run.done),
        per_second=round(run.done.total() / (options.minutes * 60), 2),
        figures=figures,
        wrong=problems(run, figures, site.server),
        samples=run.samples,
    )


def main() -> None:
    """Run the soak, print and write the figures, and exit with 1 if anything grew or failed."""
    options = _arguments()
    with open_site(options) as site:
        report = soak(site, options)
    write_json(report, options.output)
    print(table(report))
    print(f"load average {report.load_average[0]} before, {report.load_average[1]} after; figures in {options.output}")
    if report.wrong:
        raise SystemExit("\n".join(["The soak failed:", *report.wrong]))
    agreement = "" if options.url else ", and the ledger agrees with jobs and store"
    print(f"Nothing grew, every response was as expected{agreement}.")


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="just soak", description="Put a steady mixed load on a server and report whether anything grows."
    )
    parser.add_argument("--minutes", type=float, default=30.0)
    parser.add_argument("--load", type=float, default=0.5, help="share of the converters to keep busy")
    add_site_arguments(parser)
    parser.add_argument("--output", type=Path, default=RESULTS, help="where the figures go; default: %(default)s")
    options = parser.parse_args()
    if options.minutes * 60 < 2 * QUARTERS:
        parser.error(f"a soak needs at least {2 * QUARTERS} seconds")
    return options


if __name__ == "__main__":
    main()
