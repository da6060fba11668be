"""What receiving large uploads costs.

    python -m bench.parts.uploads [--clients 8] [--megabytes 90] [--rounds 5]

Clients upload one file each, at the same time, to a server of its own that receives it as the service does or discards
it, with the service's connections or with those of plain Hypercorn. Goals: a gigabyte takes at most 1.5 s of CPU, and
the rate is at least 0.8 times that at which plain Hypercorn discards. The scenario `large-uploads` measures the memory
and the event loop of the service during such uploads. Figures are medians and go to bench/results/uploads.json.
"""

import argparse
import asyncio
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

from bench.load.client import Address, LoadResponse, upload
from bench.load.documents import document, small_document
from bench.load.load import OK, Load, put_load
from bench.measure.figures import medians
from bench.measure.meter import GATEWAY, MEGABYTE, Meter
from bench.parts.upload_server import PLAIN
from bench.report.results import DIRECTORY, write_json

RESULTS = DIRECTORY / "uploads.json"
ROWS = (
    ("plain /discard", "/discard", PLAIN),
    ("/discard", "/discard", ""),
    ("/intake", "/intake", ""),
    ("/intake?digest", "/intake?digest", ""),
)
"""Name of each measurement, its path, and the argument of the server."""

Figures = dict[str, float]


@contextmanager
def own_server(argument: str) -> Iterator[tuple[Address, Meter]]:
    """Run `bench.parts.upload_server`; it ends when its standard input is closed, which `Popen` does on exit."""
    command = [sys.executable, "-m", "bench.parts.upload_server", argument]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as server:
        port = server.stdout.readline().strip() if server.stdout else ""
        yield Address("127.0.0.1", int(port), tls=False), Meter(server.pid, None)


def received(answer: LoadResponse) -> str:
    """Every upload must be received."""
    return OK if b'"received"' in answer.body else f"status {answer.status}"


def put_uploads(address: Address, path: str, clients: int, content: bytes) -> float:
    """Upload `content` once per client, all at the same time; return the seconds until the last response.

    Raises:
        SystemExit: an upload failed.
    """
    request = upload(address, path, {}, name="places.geojson", content=content, copy=False)
    load = Load(requests=[request], judge=received, clients=clients, count=clients)
    tally = asyncio.run(put_load(address, load))
    if tally.errors:
        raise SystemExit(f"{path}: {tally.errors}")
    return tally.elapsed_seconds


def measure(path: str, argument: str, clients: int, content: bytes) -> Figures:
    """Return the figures of one round of uploads to a new server."""
    with own_server(argument) as (address, meter):
        put_uploads(address, path, 1, small_document())
        with meter.measuring(settled=False) as usage:
            seconds = put_uploads(address, path, clients, content)
    sent = clients * len(content)
    return {
        "mbPerSecond": sent / MEGABYTE / seconds,
        "cpuSecondsPerGb": usage.cpu_seconds[GATEWAY] / (sent / 1e9),
        "rssGrowthMb": usage.gateway_peak_mb - usage.gateway_before_mb,
    }


def main() -> None:
    """Measure, print, and write the results."""
    parser = argparse.ArgumentParser(prog="just bench uploads")
    parser.add_argument("--clients", type=int, default=8)
    parser.add_argument("--megabytes", type=int, default=90)
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()
    content = document(options.megabytes * MEGABYTE)
    rounds: dict[str, list[Figures]] = {name: [] for name, _, _ in ROWS}
    for _ in range(options.rounds):
        for name, path, argument in ROWS:
            rounds[name].append(measure(path, argument, options.clients, content))
    results = {name: medians(taken) for name, taken in rounds.items()}
    for name, figures in results.items():
        print(f"{name:22}", "  ".join(f"{figure} {value:.2f}" for figure, value in figures.items()))
    write_json(results, RESULTS)


if __name__ == "__main__":
    main()
