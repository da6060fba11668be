"""Put load on a server and measure.

    python -m bench [SCENARIO …] [--url URL --key KEY …] [--pid PID]

Without names the standard set runs. Without --url a server is started for the run. Each round runs every scenario
once, so that slow minutes of the machine fall on all of them; figures are medians over the rounds.
"""

import argparse
import runpy
import sys
from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path

from bench.load.runner import Runner
from bench.load.scenarios import SCENARIOS, STANDARD
from bench.load.site import Site, given_site, own_site
from bench.measure.baselines import BASELINES
from bench.measure.meter import load_average
from bench.report.results import LATEST, new_results, read_parts, read_results, write_results
from bench.report.table import changes, goals, heading, line

PARTS: dict[str, str] = {
    "admissions": "admissions and settlements per second",
    "analyze": "the analysis of large GeoJSON beside its conversion",
    "history": "jobs and admission with a million rows",
    "launchers": "each way of starting a converter",
    "replacements": "whether replacing a fork server ever costs a run",
    "sizes": "how large a file may be where a format needs memory",
    "soak": "half an hour of a steady mixed load, after which nothing may have grown",
    "targets": "what a large document takes on its way to every target",
    "uploads": "receiving large uploads",
}
"""Programs of their own in `bench.parts`, which measure one part each."""


def main() -> None:
    """Run what the command line asks for."""
    if len(sys.argv) > 1 and sys.argv[1] in PARTS:
        name = sys.argv.pop(1)
        runpy.run_module(f"bench.parts.{name}", run_name="__main__")
    else:
        _run(_arguments())


def _run(options: argparse.Namespace) -> None:
    names = _chosen(options.scenarios)
    with _site(options) as site:
        if left_out := [name for name in names if name in SCENARIOS and not SCENARIOS[name].can_run(site)]:
            print(f"Left out for want of accounts (more --key, or a server of its own): {', '.join(left_out)}")
        names = [name for name in names if name not in left_out]
        results = new_results(options.url or "its own", options.rounds, options.seconds)
        runner = Runner(site, options.seconds)
        before = load_average()
        runner.warm_up()
        print(heading())
        for name, figures in runner.run(names, options.rounds):
            results.scenarios[name] = figures
            print(line(name, figures), flush=True)
        results.load_average = (before, load_average())
    write_results(results, options.output)
    print(*goals(results, read_parts(PARTS)), sep="\n")
    if options.compare:
        print(*changes(results, read_results(options.compare)), sep="\n")
    print(f"load average {before} before, {results.load_average[1]} after; figures in {options.output}")


def _chosen(names: Sequence[str]) -> list[str]:
    return list(names) if names else [*BASELINES, *STANDARD]


def _site(options: argparse.Namespace) -> AbstractContextManager[Site]:
    if options.url:
        return nullcontext(given_site(options.url, tuple(options.key), options.pid))
    return own_site(dict(setting.split("=", 1) for setting in options.setting))


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="just bench", description="Put load on a server and measure.", epilog=_catalogue(),
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )  # fmt: skip
    parser.add_argument("scenarios", nargs="*", metavar="SCENARIO", help="default: all of them")
    parser.add_argument("--url", default="", help="address of a running server; default: one is started")
    parser.add_argument("--key", action="append", default=[], help="API key; repeat it for scenarios of many accounts")
    parser.add_argument("--pid", type=int, help="process of that server on this host, to measure what it uses")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=2.0, help="length of a scenario in each round")
    parser.add_argument("--output", type=Path, default=LATEST, help="where the results go; default: %(default)s")
    parser.add_argument("--compare", type=Path, help="results of an earlier run; say what has changed since")
    parser.add_argument(
        "--setting", action="append", default=[], metavar="GEOMILL_NAME=VALUE", help="setting of the started server"
    )
    options = parser.parse_args()
    if options.url and not options.key:
        parser.error("--url needs --key")
    if unknown := set(options.scenarios) - set(SCENARIOS) - set(BASELINES):
        parser.error(f"there is no scenario {', '.join(sorted(unknown))}; --help lists them")
    return options


def _catalogue() -> str:
    rows = {name: scenario.about for name, scenario in SCENARIOS.items()}
    rows |= {name: baseline.about for name, baseline in BASELINES.items()} | PARTS
    return "\n".join(f"  {name:16} {about}" for name, about in rows.items())


if __name__ == "__main__":
    main()
