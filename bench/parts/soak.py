"""Half an hour of steady mixed load, during which nothing may grow.

    python -m bench.parts.soak [--minutes 30] [--load 0.5] [--url URL --key KEY … [--pid PID]]

Clients run a realistic mix of actions (`bench.load.mix`). Each pauses between two actions so that all of them
together keep the given share of the converters busy; a slow machine is not overloaded but serves less. Eight use a
server with an embedded database and a local store; four more use a fleet beside it (`bench.load.fleet`): two its
gateway, whose jobs all go through the queue, and two a server that converts and hands over what is too much for it.

In the meantime, memory, processes, threads, descriptors, connections, files, tasks and messages are sampled;
`bench.measure.watch` and `bench.measure.watch_fleet` define by how much each may grow. Afterwards nothing may be in
progress, the logs must be free of defects, and ledger, jobs and store must agree (`geomill audit`).

Results expire after half a minute, so that deletion has as much to do as conversion. On a server that is given by its
URL, there is no fleet, and only the figures from `--pid` and /metrics are judged.

Exits with status 1 and a sentence for everything that grew or failed. Figures go to bench/results/soak.json.
"""

import argparse
import asyncio
import os
import subprocess
import sys
import time
from collections import Counter
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack, ExitStack, asynccontextmanager
from pathlib import Path

import httpx
import msgspec

from bench.load.fleet import BenchFleet, small_fleet
from bench.load.load import OK
from bench.load.mix import TIMEOUT_SECONDS, act, rows_for
from bench.load.site import Site, add_site_arguments, open_site
from bench.load.visitor import Visitor
from bench.measure.meter import load_average
from bench.measure.watch import QUARTERS, WATCHED, FigureVerdict, Sample, judge, look
from bench.measure.watch_fleet import MEMORY_SECONDS, WATCHED_IN_FLEET, FleetWatch
from bench.report.results import DIRECTORY, commit, write_json
from service.db.pool import Database, open_pool
from service.postgres_embedded import embedded_postgres
from tests.support.server import Server

RESULTS = DIRECTORY / "soak.json"
CLIENTS = 8
CLIENTS_OF_EACH_ENTRANCE = 2
"""Of a fleet: its gateway, and the server that hands over."""
SAMPLES = 360
"""The maximum number of samples; there is at most one a second."""
REST_SECONDS = 20.0
"""The longest pause of a client."""
SETTLE_SECONDS = 30.0
EXPIRE_SECONDS = 5.0
DEFECTS = (
    "request.failed",
    "job.defect",
    "job.left",
    "job.poisonous",
    "delivery.failed",
    "delivery.forged",
    "directory.left",
    "upkeep.failed",
    "storage.failed",
    "worker.paused",
)
"""Log events that no load may cause."""

_EXPIRE = """
UPDATE job SET expires_at = now() - interval '2 minutes'
 WHERE status = 'Completed' AND completed_at < now() - interval '30 seconds' AND expires_at > now()
"""


class SoakReport(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """The result of a soak. `wrong` has a sentence for everything that grew or failed."""

    commit: str
    server: str
    cores: int
    minutes: float
    load: float
    load_average: tuple[float, float]
    done: dict[str, int]
    per_second: float
    handed_over: int
    """Jobs that a fleet's queue brought to who converted them."""
    figures: dict[str, FigureVerdict]
    wrong: list[str]
    samples: list[Sample]


class Soak:
    """One run of the load, its samples and outcomes."""

    def __init__(self, site: Site, minutes: float, load: float, fleet: BenchFleet | None = None) -> None:
        self.samples: list[Sample] = []
        self.done: Counter[str] = Counter()
        self.unexpected: Counter[str] = Counter()
        self.handed_over = 0
        self._site = site
        self._fleet = fleet
        self._rows = rows_for(site)
        self._seconds = minutes * 60
        self._load = load

    async def run(self) -> None:
        """Put the load on the site for its duration, and wait for the requests in progress at its end."""
        async with AsyncExitStack() as stack:
            client = await stack.enter_async_context(_client(self._site))
            databases = [await stack.enter_async_context(each) for each in _databases(self._site, self._fleet)]
            visitors = [Visitor(self._site, client, seed) for seed in range(CLIENTS)]
            for site in self._fleet.entrances if self._fleet is not None else ():
                own = await stack.enter_async_context(_client(site))
                visitors += [Visitor(site, own, len(visitors) + seed) for seed in range(CLIENTS_OF_EACH_ENTRANCE)]
            await self._warm_up(visitors)
            since = time.monotonic()
            async with asyncio.TaskGroup() as tasks:
                for visitor in visitors:
                    tasks.create_task(self._visit(visitor, since + self._seconds, self._load / len(visitors)))
                tasks.create_task(self._watch(client, databases, since))
                for database in databases:
                    tasks.create_task(self._expire(database, since + self._seconds))

    async def _warm_up(self, visitors: Sequence[Visitor]) -> None:
        """Do each action once, so that everything that is loaded on first use is there before sampling starts.

        In a fleet, only a conversion if the run is too short for its memory to be judged.
        """
        await visitors[0].prepare()
        for visitor in visitors:
            visitor.files = visitors[0].files
        _, *of_fleet = {visitor.site.address: visitor for visitor in visitors}.values()
        some = self._rows if self._seconds >= MEMORY_SECONDS else ("small conversion",)
        await asyncio.gather(self._do_each(self._rows, visitors[0]), *(self._do_each(some, one) for one in of_fleet))

    async def _do_each(self, names: Iterable[str], visitor: Visitor) -> None:
        for name in names:
            if (verdict := await act(visitor, name)) != OK:
                raise SystemExit(f"The server fails before there is any load: {name}: {verdict}")

    async def _visit(self, visitor: Visitor, until: float, share: float) -> None:
        busy = share * (os.cpu_count() or 1)
        while (began := time.monotonic()) < until:
            [name] = visitor.random.choices(tuple(self._rows), tuple(self._rows.values()))
            verdict = await act(visitor, name)
            if verdict == OK:
                self.done[name] += 1
            else:
                self.unexpected[f"{name}: {verdict}"] += 1
            took = time.monotonic() - began
            await asyncio.sleep(min(took * max(0.0, 1 / busy - 1), REST_SECONDS, max(0.0, until - time.monotonic())))

    async def _watch(self, client: httpx.AsyncClient, databases: Sequence[Database], since: float) -> None:
        every = max(1.0, self._seconds / SAMPLES)
        of_fleet = FleetWatch(self._fleet) if self._fleet is not None else None
        while (at := time.monotonic() - since) < self._seconds:
            seen = await look(self._site, client, databases[0] if databases else None)
            if of_fleet is not None:
                seen |= await of_fleet.look(client, databases[1])
            self.samples.append(Sample(at=round(at, 1), values=seen))
            await asyncio.sleep(every)
        if of_fleet is not None:
            self.handed_over = await of_fleet.delivered(client)

    async def _expire(self, database: Database, until: float) -> None:
        while time.monotonic() < until:
            await database.execute(_EXPIRE)
            await asyncio.sleep(EXPIRE_SECONDS)


def _client(site: Site) -> httpx.AsyncClient:
    return httpx.AsyncClient(base_url=site.address.url, timeout=TIMEOUT_SECONDS)


def _databases(site: Site, fleet: BenchFleet | None) -> Iterable[AbstractAsyncContextManager[Database]]:
    """The databases that may be looked into: that of a server of our own, then that of the fleet."""
    if site.server is not None:
        yield _embedded(site.server.data_dir)
    if fleet is not None:
        yield open_pool(fleet.dsn, max_size=1)


@asynccontextmanager
async def _embedded(data_dir: Path) -> AsyncIterator[Database]:
    async with embedded_postgres(data_dir) as dsn, open_pool(dsn, max_size=1) as database:
        yield database


def problems(
    soak: Soak, figures: dict[str, FigureVerdict], server: Server | None, fleet: BenchFleet | None = None
) -> list[str]:
    """Return a sentence for everything that grew or failed."""
    wrong = [f"{count} times {what}" for what, count in soak.unexpected.items()]
    wrong += [
        f"The {figure.about} grew from {figure.quarters[1]:g} to {figure.quarters[-1]:g} {figure.unit}".rstrip()
        + f"; up to {figure.allowed:g} more would be flat."
        for figure in figures.values()
        if figure.flat is False
    ]
    if server is not None:
        wrong += _left(server, {"GEOMILL_DATA_DIR": str(server.data_dir)})
    if fleet is not None:
        entrance, *others = fleet.members.values()
        wrong += _left(entrance, {**fleet.settings, "GEOMILL_DATABASE_URL": fleet.dsn}, *others)
        if not soak.handed_over:
            wrong.append("No job went through the fleet's queue.")
    return wrong


def _left(server: Server, settings: Mapping[str, str], *others: Server) -> list[str]:
    """Return what an installation of our own has left behind after everything has ended."""
    wrong = []
    for each in (server, *others):
        if left := each.wait_until_idle(SETTLE_SECONDS):
            wrong.append(f"{len(left)} files of uploads or jobs remain in the work directory.")
        wrong += [
            f"The log has {len(found)} times {name}, first: {found[0]}"
            for name in DEFECTS
            if (found := each.events(name))
        ]
    command = [sys.executable, "-m", "service", "audit"]
    audit = subprocess.run(command, env={**os.environ, **settings}, capture_output=True, text=True, check=False)
    if audit.returncode:
        wrong.append(f"The audit found differences: {(audit.stdout or audit.stderr).strip()}")
    return wrong


def table(report: SoakReport) -> str:
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
    lines.append(f"jobs that went through the fleet's queue: {report.handed_over}")
    return "\n".join(lines)


def soak(site: Site, options: argparse.Namespace, fleet: BenchFleet | None = None) -> SoakReport:
    """Run the soak and judge its figures."""
    before = load_average()
    run = Soak(site, options.minutes, options.load, fleet)
    asyncio.run(run.run())
    figures = judge(run.samples, {**WATCHED, **WATCHED_IN_FLEET})
    return SoakReport(
        commit=commit(),
        server=options.url or "its own",
        cores=os.cpu_count() or 1,
        minutes=options.minutes,
        load=options.load,
        load_average=(before, load_average()),
        done=dict(run.done),
        per_second=round(run.done.total() / (options.minutes * 60), 2),
        handed_over=run.handed_over,
        figures=figures,
        wrong=problems(run, figures, site.server, fleet),
        samples=run.samples,
    )


def main() -> None:
    """Run the soak, print and write the figures, and exit with 1 if anything grew or failed."""
    options = _arguments()
    with ExitStack() as stack:
        site = stack.enter_context(open_site(options))
        fleet = stack.enter_context(small_fleet()) if site.server is not None else None
        report = soak(site, options, fleet)
    write_json(report, options.output)
    print(table(report))
    print(f"load average {report.load_average[0]} before, {report.load_average[1]} after; figures in {options.output}")
    if report.wrong:
        raise SystemExit("\n".join(["The soak failed:", *report.wrong]))
    agreement = "" if options.url else ", and each ledger agrees with jobs and store"
    print(f"Nothing grew, every response was as expected{agreement}.")


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="just soak",
        description="Put a steady mixed load on a server and a fleet, and report whether anything grows.",
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
