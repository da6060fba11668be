"""What a fleet costs, beside one process that does everything on the same cores, with the same database and store.

The two are measured in turn, in many rounds, so that whatever else the machine does slows both of them down. CPU, which
is shown beside every rate, hardly depends on that.
"""

import argparse
import asyncio
import math
import os
import shutil
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from statistics import median, quantiles
from typing import NamedTuple

from bench.fleet.conversions import conversion, is_right, verdict
from bench.fleet.hosts import Host
from bench.fleet.scaling import compare_hosts
from bench.fleet.site import WholeFleet, whole_fleet
from bench.fleet.spent import spent
from bench.load.client import Address, connect
from bench.load.documents import document, points, small_document
from bench.load.load import OK, Load, put_load
from bench.load.scenarios import converted
from bench.load.site import address_of

ADDED_P50_MS, ADDED_P99_MS = 10.0, 25.0
WARM_UP = 20
IDLE_SECONDS = 10.0
INLINE_POINTS = (20, 50, 100, 200, 350, 500, 700, 1000)
"""How many points the documents have that may be sent inside the message."""
JUDGED_MS = 35.0
"""How long one process takes for the document by which the delay is judged."""
TRIED = 15
CONVERTERS = 2
USUAL_JOBS = 1000
LEASE_SECONDS = 30


class Rates(NamedTuple):
    """How rates are compared: clients send so many files in each round, to the one side and then to the other."""

    about: str
    content: bytes
    clients: int
    files: int
    rounds: int
    goal: float


class Side(NamedTuple):
    """What is measured: its address, and the ids of its processes by what they are."""

    address: Address
    pids: Mapping[str, int]


def run(options: argparse.Namespace) -> bool:
    """Measure, and print what came of it; return whether every goal was reached and everything was charged once."""
    load = os.getloadavg()[0]
    with _both() as (fleet, sides):
        key = fleet.keys().good[0]
        _print_idle(sides)
        judged = asyncio.run(_find_points(sides["alone"], key))
        outcomes = [asyncio.run(_compare_delays(sides, key, options.jobs // 2, judged))]
        asyncio.run(_compare_delays(sides, key, options.jobs // 4, INLINE_POINTS[-1]))
        outcomes += [asyncio.run(_compare_rates(sides, key, rates)) for rates in _rates(options.jobs)]
        outcomes.append(is_right(fleet.site))
    outcomes.append(compare_hosts(_share(options.jobs)))
    print(f"load average {load:.1f} at the beginning, {os.getloadavg()[0]:.1f} at the end", flush=True)
    return all(outcomes)


def _rates(jobs: int) -> tuple[Rates, ...]:
    """`jobs` small ones, and a few of a second."""
    files, rounds = math.ceil(6 * _share(jobs)), math.ceil(3 * _share(jobs))
    return (
        Rates("small jobs", small_document(), clients=8, files=jobs // 5, rounds=5, goal=0.80),
        Rates("jobs of a second", document(24_000_000), clients=4, files=files, rounds=rounds, goal=0.95),
    )


def _share(jobs: int) -> float:
    """Which share of the usual work is to be done: with fewer jobs, a quick run that shows CPU rather than rates."""
    return min(1.0, jobs / USUAL_JOBS)


@contextmanager
def _both() -> Iterator[tuple[WholeFleet, dict[str, Side]]]:
    """Start a gateway and a worker, and beside them a process that does everything."""
    settings = {"GEOMILL_CONVERTERS": str(CONVERTERS), "GEOMILL_LEASE_SECONDS": str(LEASE_SECONDS)}
    with whole_fleet(_executed, 1, 1, settings) as fleet:
        site = fleet.site
        alone = site.start("alone", ("serve",), _executed("alone"), settings={"GEOMILL_NATS_URL": ""})
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


def _executed(name: str) -> Host:
    """This host; its processes are not forked from one that has imported the service."""
    return Host(name, prefix=(str(shutil.which("env")),))


def _print_idle(sides: Mapping[str, Side]) -> None:
    """Show what each part uses while there is nothing to do, which is a part of every later figure."""
    before = {name: _used(side) for name, side in sides.items()}
    time.sleep(IDLE_SECONDS)
    for name, side in sides.items():
        used = {part: seconds - before[name][part] for part, seconds in _used(side).items()}
        parts = ", ".join(f"{part} {seconds / IDLE_SECONDS * 1000:.1f}" for part, seconds in used.items())
        print(f"idle, {name}: CPU in ms a second: {parts}", flush=True)


async def _find_points(side: Side, key: str) -> int:
    """Return with how many points one file after the other takes closest to `JUDGED_MS`."""
    connection = await connect(side.address)
    medians: dict[int, float] = {}
    for number in INLINE_POINTS:
        request, taken = conversion(side.address, key, points(number)), list[float]()
        for _ in range(TRIED):
            since = time.perf_counter()
            answer = await connection.request(request)
            taken.append((time.perf_counter() - since) * 1000)
            assert converted(answer) == OK, answer
        medians[number] = median(taken[TRIED // 3 :])  # the first ones warm up
    connection.close()
    found = min(medians, key=lambda number: abs(medians[number] - JUDGED_MS))
    print(f"alone, {found} points take {medians[found]:.1f} ms: closest to {JUDGED_MS:.0f} ms", flush=True)
    return found


async def _compare_delays(sides: Mapping[str, Side], key: str, pairs: int, number_of_points: int) -> bool:
    """Have one file after the other converted, by each side in turn."""
    content = points(number_of_points)
    taken: dict[str, list[float]] = {name: [] for name in sides}
    connections = {name: await connect(side.address) for name, side in sides.items()}
    requests = {name: conversion(side.address, key, content) for name, side in sides.items()}
    for number in range(WARM_UP + pairs):
        for name in sorted(sides, reverse=number % 2 == 1):
            since = time.perf_counter()
            answer = await connections[name].request(requests[name])
            if number >= WARM_UP:
                taken[name].append((time.perf_counter() - since) * 1000)
            assert converted(answer) == OK, answer
    for connection in connections.values():
        connection.close()
    added = {}
    for name, times in taken.items():
        p50, p99 = median(times), quantiles(times, n=100)[98]
        added[name] = p50, p99
        print(f"delay, {len(content) // 1000} kB inside the message, {name}: p50 {p50:.1f} ms, p99 {p99:.1f} ms")
    p50, p99 = (added["fleet"][place] - added["alone"][place] for place in (0, 1))
    is_reached = p50 <= ADDED_P50_MS and p99 <= ADDED_P99_MS
    goals = f"goals {ADDED_P50_MS:.0f} and {ADDED_P99_MS:.0f}: {'reached' if is_reached else 'MISSED'}"
    print(f"delay that the fleet adds: p50 {p50:.1f} ms, p99 {p99:.1f} ms; {goals}", flush=True)
    return is_reached


async def _compare_rates(sides: Mapping[str, Side], key: str, rates: Rates) -> bool:
    """Have many files converted at a time, by each side in turn; compare medians of the rounds."""
    seconds: dict[str, list[float]] = {name: [] for name in sides}
    cpu: dict[str, dict[str, float]] = {name: {} for name in sides}
    for number in range(1 + rates.rounds):
        for name, side in sorted(sides.items(), reverse=number % 2 == 1):
            before, own = _used(side), time.process_time()
            request = conversion(side.address, key, rates.content)
            load = Load(requests=[request], judge=converted, clients=rates.clients, count=rates.files)
            tally = await put_load(side.address, load)
            assert not tally.errors, tally.errors
            if number:  # the first round warms up
                seconds[name].append(tally.elapsed_seconds)
                _add(cpu[name], before, _used(side))
                _add(cpu[name], {"client": own}, {"client": time.process_time()})
    jobs = rates.files * rates.rounds
    for name, times in seconds.items():
        each = {part: used / jobs * 1000 for part, used in cpu[name].items()}
        parts = ", ".join(f"{part} {used:.1f}" for part, used in each.items())
        rate = rates.files / median(times)
        print(f"{rates.about}, {name}: {rate:.1f}/s; CPU a job {sum(each.values()):.1f} ms: {parts}")
    ratio = median(alone / fleet for alone, fleet in zip(seconds["alone"], seconds["fleet"], strict=True))
    by_cpu = f"by CPU {_ratio(cpu):.2f} x, {_ratio(cpu, without='S3'):.2f} x without the S3 server"
    print(f"{rates.about}, fleet beside alone: rate {ratio:.2f} x, {by_cpu}; {verdict(ratio, rates.goal)}", flush=True)
    return ratio >= rates.goal


def _ratio(cpu: Mapping[str, Mapping[str, float]], without: str = "") -> float:
    """Which share of the CPU that a fleet takes one process takes, for all parts but one."""
    alone, fleet = (sum(cpu[name].values()) - cpu[name].get(without, 0.0) for name in ("alone", "fleet"))
    return alone / fleet


def _used(side: Side) -> dict[str, float]:
    """CPU by part, in seconds; that of converters is a part of its own."""
    used = {"converters": 0.0}
    for name, pid in side.pids.items():
        found = spent(pid)
        if name in {"process", "gateway", "worker"}:
            used[name] = found.own
            used["converters"] += found.below
        else:
            used[name] = found.all
    return used


def _add(total: dict[str, float], before: Mapping[str, float], after: Mapping[str, float]) -> None:
    for part, seconds in after.items():
        total[part] = total.get(part, 0.0) + seconds - before[part]
