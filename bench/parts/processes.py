"""What several serving processes cost, and what they gain: `python -m bench.parts.processes [--rounds 5]`.

First, servers with one and with two processes run side by side and convert in turn: the CPU of all processes for one
conversion. Then hosts with more cores are simulated: a core is a part of a real one, by quotas of control groups
(version 1, as root: in version 2, a group that has processes has no groups in it). No serving process gets more than a
core, and all processes of a server together get as many as the host has. A host of two cores has one process, and one
of four has two, as `--processes auto` decides.

The simulation needs idle cores: its quotas are upper bounds, and the load generator takes the rest of the real cores.
"""

import argparse
import asyncio
import statistics
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import msgspec

from bench.fleet.quotas import control_group, give
from bench.load.load import put_load
from bench.load.runner import Runner
from bench.load.scenarios import SCENARIOS
from bench.load.site import Site, own_site
from bench.measure.meter import GATEWAY, Seconds, is_member, load_average

PERIOD_MICROSECONDS = 20_000
LOAD = "many-accounts"


def main(options: argparse.Namespace) -> None:
    """Measure both, and print each figure with its ratio."""
    print(f"load average {load_average()}")
    with _site(1, converters=2) as one, _site(2, converters=2) as two:
        costs = [(_cpu_each(one, options.count), _cpu_each(two, options.count)) for _ in range(options.rounds)]
    for group in costs[0][0]:
        first, second = (statistics.median(pair[number][group] for pair in costs) for number in (0, 1))
        ratio = statistics.median(pair[1][group] / pair[0][group] for pair in costs)
        print(f"{group:10} {1000 * first:6.2f} ms per conversion with one process, {1000 * second:6.2f} ms with two")
        print(f"{'':10} two cost {ratio:.3f} x of one")
    rates: dict[int, list[float]] = {2: [], 4: []}
    with control_group() as whole:
        if whole is None or (whole / "cpu.max").exists():
            print("No simulation of more cores: it needs control groups of version 1, and root.")
            return
        for _ in range(options.rounds):
            for cores, found in rates.items():
                found.append(_rate(whole, cores, options))
    for cores, found in rates.items():
        print(f"{cores} cores of {options.core:g} each: {statistics.median(found):.1f} conversions/s")
    gain = statistics.median(four / two for two, four in zip(rates[2], rates[4], strict=True))
    print(f"four cores convert {gain:.2f} x of two; load average {load_average()}")


@contextmanager
def _site(processes: int, converters: int) -> Iterator[Site]:
    settings = {"GEOMILL_PROCESSES": str(processes), "GEOMILL_CONVERTERS": str(converters)}
    with own_site(settings) as site:
        Runner(site, 0.0).warm_up()
        yield site


def _cpu_each(site: Site, count: int) -> Seconds:
    """Seconds of CPU per conversion, 8 at a time, by group and of all processes."""
    load = msgspec.structs.replace(SCENARIOS[LOAD].load(site, 0.0, 0.0), clients=8, count=count)
    assert site.meter is not None
    with site.meter.measuring(settled=False) as usage:
        tally = asyncio.run(put_load(site.address, load))
    assert not tally.errors, tally.errors
    cpu = usage.cpu_seconds
    return {group: seconds / count for group, seconds in {**cpu, "all": sum(cpu.values())}.items()}


def _rate(whole: Path, cores: int, options: argparse.Namespace) -> float:
    """Conversions per second on a host of so many simulated cores, whose control group is `whole`."""
    processes = cores // 2
    with _site(processes, converters=cores) as site:
        assert site.meter is not None
        give(whole, cores * options.core, PERIOD_MICROSECONDS)
        for number, (group, process) in enumerate(site.meter.processes()):
            own = whole
            if group == GATEWAY and (processes == 1 or is_member(process)):
                own = whole / f"{cores}-{number}"
                own.mkdir(exist_ok=True)
                give(own, options.core, PERIOD_MICROSECONDS)
            with suppress(ProcessLookupError):
                (own / "cgroup.procs").write_text(str(process.pid))
        load = SCENARIOS[LOAD].load(site, options.seconds, 0.0)
        tally = asyncio.run(put_load(site.address, load))
        return len(tally.seconds_by_kind["ok"]) / tally.elapsed_seconds


def parse() -> argparse.Namespace:
    """Parse the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--count", type=int, default=300, help="conversions of each server in each round")
    parser.add_argument("--seconds", type=float, default=10.0, help="length of a simulation in each round")
    parser.add_argument("--core", type=float, default=0.35, help="a simulated core, as a part of a real one")
    return parser.parse_args()


if __name__ == "__main__":
    main(parse())
