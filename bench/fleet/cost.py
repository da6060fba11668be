"""What a fleet costs, beside one process that does everything on the same cores, with the same database and store."""

import argparse
import asyncio
import time
from collections.abc import Mapping
from statistics import median, quantiles

from bench.fleet.comparing import Rates, Side, both_sides, compare_rates, share_of, used
from bench.fleet.conversions import conversion, is_right
from bench.fleet.scaling import compare_hosts
from bench.load.client import connect
from bench.load.documents import points, small_document
from bench.load.load import OK
from bench.load.scenarios import converted

ADDED_P50_MS, ADDED_P99_MS = 10.0, 25.0
WARM_UP = 20
IDLE_SECONDS = 10.0
INLINE_POINTS = (20, 50, 100, 200, 350, 500, 700, 1000)
"""How many points the documents have that may be sent inside the message."""
JUDGED_MS = 35.0
"""How long one process takes for the document by which the delay is judged."""
TRIED = 15


def run(options: argparse.Namespace) -> bool:
    """Measure, and print what came of it; return whether every goal was reached and everything was charged once."""
    with both_sides() as (fleet, sides):
        key = fleet.keys().good[0]
        _print_idle(sides)
        judged = asyncio.run(_find_points(sides["alone"], key))
        outcomes = [asyncio.run(_compare_delays(sides, key, options.jobs // 2, judged))]
        asyncio.run(_compare_delays(sides, key, options.jobs // 4, INLINE_POINTS[-1]))
        small = Rates(
            "small jobs",
            lambda address: conversion(address, key, small_document()),
            clients=8,
            files=options.jobs // 5,
            rounds=5,
            goal=0.80,
        )
        outcomes.append(asyncio.run(compare_rates(sides, small)))
        outcomes.append(is_right(fleet.site))
    outcomes.append(compare_hosts(share_of(options.jobs)))
    return all(outcomes)


def _print_idle(sides: Mapping[str, Side]) -> None:
    """Show what each part uses while there is nothing to do, which is a part of every later figure."""
    before = {name: used(side) for name, side in sides.items()}
    time.sleep(IDLE_SECONDS)
    for name, side in sides.items():
        spent = {part: seconds - before[name][part] for part, seconds in used(side).items()}
        parts = ", ".join(f"{part} {seconds / IDLE_SECONDS * 1000:.1f}" for part, seconds in spent.items())
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
