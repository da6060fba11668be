"""Break a fleet and see what comes of it.

python -m bench.fleet [PART …] [--jobs N] [--seconds S] [--backlog N] [--seed N]
"""

import argparse
import signal
import sys

from bench.fleet import backlog, cost, drain, large, losses, partitions
from bench.measure.meter import load_average

PARTS = {
    "losses": losses.run,
    "partitions": partitions.run,
    "drain": drain.run,
    "backlog": backlog.run,
    "cost": cost.run,
    "large": large.run,
}
"""Each returns whether nothing was wrong."""


def main() -> None:
    """Run what the command line selects."""
    parser = argparse.ArgumentParser(prog="just fleet-test", description="Break a fleet and see what comes of it.")
    parser.add_argument("parts", nargs="*", metavar="PART", help=f"any of {', '.join(PARTS)}; default: all")
    parser.add_argument("--jobs", type=int, default=1000, help="requests of clients; default: %(default)s")
    parser.add_argument(
        "--seconds", type=float, default=3600.0, help="the most that clients may take; default: %(default).0f"
    )
    parser.add_argument("--backlog", type=int, default=100_000, help="jobs that wait; default: %(default)s")
    parser.add_argument("--seed", type=int, default=1, help="of all that is chosen by chance; default: %(default)s")
    options = parser.parse_args()
    if unknown := set(options.parts) - set(PARTS):
        parser.error(f"there is no part {', '.join(sorted(unknown))}")
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # and leave no host behind
    results = []
    for name in options.parts or PARTS:
        before = load_average()
        results.append(PARTS[name](options))
        print(f"{name}: load average {before} before, {load_average()} after", flush=True)
    sys.exit(0 if all(results) else 1)


if __name__ == "__main__":
    main()
