"""Small conversions by Geomill, by ogre and by bare `ogr2ogr`, in turn on one host.

    python -m bench.parts.ogre --ogre http://127.0.0.1:3000 [--ogre-pid PID] [--rounds 5] [--seconds 10]

ogre is another service around `ogr2ogr`, without accounts, isolation or a store; start it before. All convert the same
small GeoJSON to Shapefile. ogre's response is the result, so that `delivery` is the scenario to compare it with;
`burst` responds with a link.
"""

import argparse

from bench.load.runner import Runner
from bench.load.scenarios import OF_OGRE, SCENARIOS
from bench.load.site import given_site, own_site
from bench.measure.baselines import BASELINES
from bench.measure.figures import Round, figures_of
from bench.measure.meter import load_average
from bench.report.results import DIRECTORY, write_json
from bench.report.table import heading, line

RESULTS = DIRECTORY / "ogre.json"
NAMES = ("ogr2ogr-1", "burst-1", "delivery-1", "ogre-1", "ogr2ogr-2", "burst-8", "delivery-8", "ogre-8")


def main() -> None:
    """Run all of them once in each round, and print medians."""
    options = _arguments()
    taken: dict[str, list[Round]] = {name: [] for name in NAMES}
    before = load_average()
    with own_site({}) as site:
        geomill = Runner(site, options.seconds)
        geomill.warm_up()
        ogre = Runner(given_site(options.ogre, ("",), options.ogre_pid), options.seconds)
        for _ in range(options.rounds):
            for name in NAMES:
                taken[name].append((ogre if name in OF_OGRE else geomill).one(name))
    figures = {name: figures_of((SCENARIOS | BASELINES)[name].about, rounds) for name, rounds in taken.items()}
    write_json(figures, RESULTS)
    print(heading(), *(line(name, each) for name, each in figures.items()), sep="\n")
    print(f"load average {before} before, {load_average()} after; figures in {RESULTS}")


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="just bench ogre", description="Compare Geomill with ogre.")
    parser.add_argument("--ogre", required=True, help="URL of a running ogre")
    parser.add_argument("--ogre-pid", type=int, help="its process on this host, to measure what it uses")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=10.0)
    return parser.parse_args()


if __name__ == "__main__":
    main()
