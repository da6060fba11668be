"""A fleet and one process that does everything, side by side: the same files, in turn, on the same cores.

Whatever else the machine does slows both of them down. CPU, which is shown beside every rate, hardly depends on that.
"""

import shutil
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from statistics import median
from typing import NamedTuple

from bench.fleet.conversions import verdict
from bench.fleet.hosts import Host
from bench.fleet.site import WholeFleet, whole_fleet
from bench.fleet.spent import spent
from bench.load.client import Address, LoadRequest
from bench.load.load import Load, put_load
from bench.load.scenarios import converted
from bench.load.site import address_of
from tests.integration.storage.servers import S3Server

CONVERTERS = 2
LEASE_SECONDS = 30
USUAL_JOBS = 1000


def share_of(jobs: int) -> float:
    """Which share of the usual work is to be done: with fewer jobs, a quick run that shows CPU rather than rates."""
    return min(1.0, jobs / USUAL_JOBS)


class Rates(NamedTuple):
    """How rates are compared: clients send so many files in each round, to the one side and then to the other."""

    about: str
    request: Callable[[Address], LoadRequest]
    clients: int
    files: int
    rounds: int
    goal: float
    by_cpu: bool = False
    """Whether the goal is one of the CPU of all parts but the S3 server, which at a real site is another host."""


class Side(NamedTuple):
    """What is measured: its address, and the ids of its processes by what they are."""

    address: Address
    pids: Mapping[str, int]


@contextmanager
def both_sides(store: type[S3Server] = S3Server) -> Iterator[tuple[WholeFleet, dict[str, Side]]]:
    """Start a gateway and a worker, and beside them a process that does everything."""
    settings = {"GEOMILL_CONVERTERS": str(CONVERTERS), "GEOMILL_LEASE_SECONDS": str(LEASE_SECONDS)}
    with whole_fleet(executed, 1, 1, settings, store) as fleet:
        site = fleet.site
        alone = site.start("alone", ("serve",), executed("alone"), settings={"GEOMILL_NATS_URL": ""})
        both = {"PostgreSQL": fleet.postgres.pid, "S3": site.s3.pid}
        yield (
            fleet,
            {
                "alone": Side(address_of(alone.url), {"process": alone.process.pid, **both}),
                "fleet": Side(
                    address_of(site.gateway.url),
                    {
                        "gateway": site.gateway.process.pid,
                        "worker": site.workers[0].process.pid,
                        "NATS": site.nats.pid,
                        **both,
                    },
                ),
            },
        )


def executed(name: str) -> Host:
    """This host; its processes are not forked from one that has imported the service."""
    return Host(name, prefix=(str(shutil.which("env")),))


async def compare_rates(sides: Mapping[str, Side], rates: Rates) -> bool:
    """Have many files converted at a time, by each side in turn; compare medians of the rounds."""
    seconds: dict[str, list[float]] = {name: [] for name in sides}
    cpu: dict[str, dict[str, float]] = {name: {} for name in sides}
    for number in range(1 + rates.rounds):
        for name, side in sorted(sides.items(), reverse=number % 2 == 1):
            before, own = used(side), time.process_time()
            load = Load(
                requests=[rates.request(side.address)], judge=converted, clients=rates.clients, count=rates.files
            )
            tally = await put_load(side.address, load)
            assert not tally.errors, tally.errors
            if number:  # the first round warms up
                seconds[name].append(tally.elapsed_seconds)
                _add(cpu[name], before, used(side))
                _add(cpu[name], {"client": own}, {"client": time.process_time()})
    jobs = rates.files * rates.rounds
    for name, times in seconds.items():
        each = {part: used / jobs * 1000 for part, used in cpu[name].items()}
        parts = ", ".join(f"{part} {used:.1f}" for part, used in each.items())
        rate = rates.files / median(times)
        print(f"{rates.about}, {name}: {rate:.1f}/s; CPU a job {sum(each.values()):.1f} ms: {parts}")
    ratio = median(alone / fleet for alone, fleet in zip(seconds["alone"], seconds["fleet"], strict=True))
    own = _ratio(cpu, without="S3")
    found = f"rate {ratio:.2f} x, by CPU {_ratio(cpu):.2f} x, {own:.2f} x without the S3 server"
    judged, its_name = (own, "the last of these") if rates.by_cpu else (ratio, "the rate")
    print(f"{rates.about}, fleet beside alone: {found}; {its_name}: {verdict(judged, rates.goal)}", flush=True)
    return judged >= rates.goal


def _ratio(cpu: Mapping[str, Mapping[str, float]], without: str = "") -> float:
    """Which share of the CPU that a fleet takes one process takes, for all parts but one."""
    alone, fleet = (sum(cpu[name].values()) - cpu[name].get(without, 0.0) for name in ("alone", "fleet"))
    return alone / fleet


def used(side: Side) -> dict[str, float]:
    """Return CPU by part, in seconds; that of converters is a part of its own."""
    parts = {"converters": 0.0}
    for name, pid in side.pids.items():
        found = spent(pid)
        if name in {"process", "gateway", "worker"}:
            parts[name] = found.own
            parts["converters"] += found.below
        else:
            parts[name] = found.all
    return parts


def _add(total: dict[str, float], before: Mapping[str, float], after: Mapping[str, float]) -> None:
    for part, seconds in after.items():
        total[part] = total.get(part, 0.0) + seconds - before[part]
