"""Runs scenarios and baselines on a site, in rounds."""

import asyncio
import resource
from collections.abc import Iterator, Sequence
from contextlib import nullcontext

import msgspec

from bench.load.client import connect, get
from bench.load.load import Load, LoadTally, put_load
from bench.load.paths import JOBS
from bench.load.scenarios import SCENARIOS
from bench.load.site import Site
from bench.measure.baselines import BASELINES, run_baseline
from bench.measure.figures import Figures, Round, figures_of
from bench.measure.lag import read_lag
from bench.measure.meter import Usage

WARM_UP_REQUESTS = 128
WARM_UP = "burst-8"
CALIBRATION_SECONDS = 2.0
CALIBRATION = "burst-64"
COMPARABLE = frozenset({"burst-1", "burst-8", "burst-64", "burst-256"})
"""Scenarios whose rate is one of small conversions, served as fast as they can be."""


class Runner:
    """The runs of one site."""

    def __init__(self, site: Site, seconds: float) -> None:
        """Let a scenario last `seconds` in each round, unless it is a number of requests."""
        self._site = site
        self._seconds = seconds
        self._best_rate = 0.0

    def warm_up(self) -> None:
        """Let the server open what it opens at first use, and make the jobs that polling asks for."""
        load = SCENARIOS[WARM_UP].load(self._site, 0.0, 0.0)
        tally = asyncio.run(put_load(self._site.address, msgspec.structs.replace(load, count=WARM_UP_REQUESTS)))
        if tally.errors:
            raise SystemExit(f"The server does not convert: {tally.errors}")
        self._site = msgspec.structs.replace(self._site, jobs=asyncio.run(_recent_jobs(self._site)))

    def run(self, names: Sequence[str], rounds: int) -> Iterator[tuple[str, Figures]]:
        """Run every scenario once in each round; yield the figures of each after the last round."""
        taken: dict[str, list[Round]] = {name: [] for name in names}
        for _ in range(rounds - 1):
            for name in names:
                taken[name].append(self.one(name))
        for name in names:
            taken[name].append(self.one(name))
            about = BASELINES[name].about if name in BASELINES else SCENARIOS[name].about
            yield name, figures_of(about, taken[name])

    def one(self, name: str) -> Round:
        """Run a scenario or a baseline once."""
        if name in BASELINES:
            tally, usage = run_baseline(BASELINES[name])
            return Round(tally=tally, usage=usage, generator_seconds=0.0)
        scenario = SCENARIOS[name]
        if scenario.times_best and not self._best_rate:
            calibration = self._measure(SCENARIOS[CALIBRATION].load(self._site, CALIBRATION_SECONDS, 0.0), None)
            self._best_rate = calibration.rate
        beside = SCENARIOS[scenario.beside].load(self._site, 0.0, 0.0) if scenario.beside else None
        one = self._measure(scenario.load(self._site, self._seconds, self._best_rate), beside)
        if name in COMPARABLE:
            self._best_rate = max(self._best_rate, one.rate)
        return one

    def _measure(self, load: Load, beside: Load | None) -> Round:
        meter, site = self._site.meter, self._site
        earlier = asyncio.run(read_lag(site.address, site.prefix))
        with meter.measuring(settled=load.count > 0) if meter is not None else nullcontext(Usage()) as usage:
            before = _own_seconds()
            tally, companion = asyncio.run(_put_both(self._site, load, beside))
            spent = _own_seconds() - before
        later = asyncio.run(read_lag(site.address, site.prefix))
        return Round(
            tally=tally,
            usage=usage if meter else None,
            generator_seconds=spent,
            beside=companion,
            lag=later.since(earlier) if later is not None and earlier is not None else None,
        )


async def _put_both(site: Site, load: Load, beside: Load | None) -> tuple[LoadTally, LoadTally | None]:
    if beside is None:
        return await put_load(site.address, load), None
    over = asyncio.Event()
    async with asyncio.TaskGroup() as tasks:
        companion = tasks.create_task(put_load(site.address, beside, over))
        tally = await put_load(site.address, load)
        over.set()
    return tally, companion.result()


async def _recent_jobs(site: Site) -> tuple[str, ...]:
    connection = await connect(site.address)
    request = get(site.address, f"{site.prefix}{JOBS}?limit=20", {"X-API-Key": site.key})
    answer = await connection.request(request)
    connection.close()
    return tuple(job["jobId"] for job in msgspec.json.decode(answer.body)["jobs"])


def _own_seconds() -> float:
    usage = resource.getrusage(resource.RUSAGE_SELF)
    return usage.ru_utime + usage.ru_stime
