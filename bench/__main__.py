"""Put load on a server and measure.

    python -m bench [SCENARIO …] [--url URL --key KEY …] [--pid PID]

Without names, the standard set runs. Without --url, a server is started for the run. Each round runs every scenario
once, so that slow minutes of the machine affect all of them; figures are medians over the rounds.
"""

import argparse
import runpy
import sys
from pathlib import Path

from bench.load.runner import Runner
from bench.load.scenarios import SCENARIOS, STANDARD
from bench.load.site import add_site_arguments, open_site
from bench.measure.baselines import BASELINES
from bench.measure.meter import load_average
from bench.report.results import LATEST, OWN, new_results, read_parts, write_json
from bench.report.table import goals, heading, line

PARTS: dict[str, str] = {
    "admissions": "admissions and settlements per second",
    "analyze": "the analysis of large GeoJSON, relative to its conversion",
    "history": "reading jobs and admission with a million rows",
    "pairs": "the CPU and the runs of a conversion of every usual pair of formats, relative to bare ogr2ogr",
    "soak": "half an hour of mixed load, during which nothing may grow",
    "uploads": "receiving large uploads",
}
"""The programs in `bench.parts`, each of which measures one part."""


def main() -> None:
    """Run what the command line selects."""
    if len(sys.argv) > 1 and sys.argv[1] in PARTS:
        name = sys.argv.pop(1)
        runpy.run_module(f"bench.parts.{name}", run_name="__main__")
    else:
        _run(_arguments())


def _run(options: argparse.Namespace) -> None:
    names = list(options.scenarios) or [*BASELINES, *STANDARD]
    with open_site(options, dict(setting.split("=", 1) for setting in options.setting)) as site:
        if left_out := [name for name in names if name in SCENARIOS and not SCENARIOS[name].can_run(site)]:
            print(f"Skipped for lack of accounts (repeat --key, or omit --url): {', '.join(left_out)}")
        names = [name for name in names if name not in left_out]
        results = new_results(options.url or OWN, options.rounds, options.seconds)
        runner = Runner(site, options.seconds)
        before = load_average()
        runner.warm_up()
        print(heading())
        for name, figures in runner.run(names, options.rounds):
            results.scenarios[name] = figures
            print(line(name, figures), flush=True)
        results.load_average = (before, load_average())
    write_json(results, options.output)
    print(*goals(results, read_parts(PARTS)), sep="\n")
    print(f"load average {before} before, {results.load_average[1]} after; figures in {options.output}")


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="just bench", description="Put load on a server and measure.", epilog=_catalogue(),
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )  # fmt: skip
    parser.add_argument("scenarios", nargs="*", metavar="SCENARIO", help="default: all of them")
    add_site_arguments(parser)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=2.0, help="length of a scenario in each round")
    parser.add_argument("--output", type=Path, default=LATEST, help="where the results go; default: %(default)s")
    parser.add_argument(
        "--setting", action="append", default=[], metavar="GEOMILL_NAME=VALUE", help="setting of the started server"
    )
    options = parser.parse_args()
    if unknown := set(options.scenarios) - set(SCENARIOS) - set(BASELINES):
        parser.error(f"there is no scenario {', '.join(sorted(unknown))}; --help lists them")
    return options


def _catalogue() -> str:
    rows = {name: scenario.about for name, scenario in SCENARIOS.items()}
    rows |= {name: baseline.about for name, baseline in BASELINES.items()} | PARTS
    return "\n".join(f"  {name:16} {about}" for name, about in rows.items())


if __name__ == "__main__":
    main()
