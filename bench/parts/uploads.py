"""How much memory and event-loop time large uploads take from a server.

    python -m bench.parts.uploads                          intake alone, against the floor of discarding the body
    python -m bench.parts.uploads --url URL --key KEY --pid PID    the same clients against the running service

Goals (eight clients, 90 MB each, at once): memory grows by less than 40 MB, a gigabyte takes at most 1.5 s of CPU, the
rate is at least 0.8 of what Hypercorn as it is discards. Figures go to bench/results/uploads.json too.
"""

import argparse
import http.client
import json
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from statistics import median
from urllib.parse import urlsplit

from bench.parts.upload_server import PLAIN

MEGABYTE = 1_000_000
BOUNDARY = "----geomill-bench-7MA4YWxkTrZu0gW"
RESULTS = Path("bench/results/uploads.json")
HEADERS = {"Content-Type": f"multipart/form-data; boundary={BOUNDARY}"}

ROWS = (
    ("plain /discard", "/discard", True),
    ("/discard", "/discard", False),
    ("/intake", "/intake", False),
    ("/intake?digest", "/intake?digest", False),
)
"""What is measured, where, and whether with Hypercorn as it is."""

Figures = dict[str, float]


def form(size_bytes: int) -> bytes:
    """A form with a GeoJSON file of about `size_bytes`."""
    feature = (
        '{"type":"Feature","geometry":{"type":"Point","coordinates":[8.5417,47.3769]},'
        '"properties":{"name":"Zurich","population":421878,"note":"the quick brown fox jumps over the lazy dog"}},\n'
    )
    features = (feature * (size_bytes // len(feature)))[:-2]
    head = f'--{BOUNDARY}\r\nContent-Disposition: form-data; name="file"; filename="bench.geojson"\r\n\r\n'
    file = f'{{"type":"FeatureCollection","features":[\n{features}\n]}}'
    return f"{head}{file}\r\n--{BOUNDARY}--\r\n".encode()


def call(url: str, method: str, path: str, body: bytes | None = None, key: str = "") -> tuple[int, bytes]:
    """One request on a connection of its own; return its status and answer."""
    connection = http.client.HTTPConnection(urlsplit(url).netloc, timeout=300)
    try:
        connection.request(method, path, body, {**HEADERS, "X-API-Key": key})
        answer = connection.getresponse()
        return answer.status, answer.read()
    finally:
        connection.close()


def upload(url: str, path: str, body: bytes, key: str = "") -> None:
    """Upload once; anything but success ends the measurement."""
    status, answer = call(url, "POST", path, body, key)
    if status != http.client.OK:
        raise SystemExit(f"status {status}: {answer.decode(errors='replace')}")


def upload_at_once(clients: int, one: Callable[[], object]) -> float:
    """Run `one` in `clients` threads at once and return the seconds until the last is done."""
    start = time.perf_counter()
    with ThreadPoolExecutor(clients) as pool:
        for done in [pool.submit(one) for _ in range(clients)]:
            done.result()
    return time.perf_counter() - start


@contextmanager
def own_server(directory: str | None, *, plain: bool) -> Iterator[str]:
    """Run `bench.parts.upload_server` and yield its address; it ends when its input is closed, as `Popen` does here."""
    arguments = [*([PLAIN] if plain else []), *([directory] if directory else [])]
    command = [sys.executable, "-m", "bench.parts.upload_server", *arguments]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as server:
        port = server.stdout.readline().strip() if server.stdout else ""
        yield f"http://127.0.0.1:{port}"


def measure_own(directory: str | None, path: str, clients: int, body: bytes, *, plain: bool) -> Figures:
    """Figures of one round of uploads to `path` of a fresh server, as the service has it or `plain`."""
    with own_server(directory, plain=plain) as url:
        call(url, "POST", path, form(1000))
        before = json.loads(call(url, "POST", "/measure")[1])["rssMb"]
        seconds = upload_at_once(clients, partial(upload, url, path, body))
        figures: Figures = json.loads(call(url, "GET", "/measure")[1])
    sent = clients * len(body)
    return {
        "mbPerSecond": sent / MEGABYTE / seconds,
        "cpuSecondsPerGb": figures["cpuSeconds"] / (sent / 1e9),
        "rssGrowthMb": figures["peakRssMb"] - before,
        **{name: figures[name] for name in ("peakRssMb", "lagP50Ms", "lagP99Ms", "lagMaxMs")},
    }


def measure_service(url: str, key: str, pid: int, clients: int, body: bytes) -> Figures:
    """Figures of one round against the service: the lag is what GET /healthz takes meanwhile."""
    samples: list[float] = []
    before = resident_mb(pid, "VmRSS")
    Path(f"/proc/{pid}/clear_refs").write_text("5")

    with ThreadPoolExecutor(1) as prober, ThreadPoolExecutor(1) as crowd:
        uploads = crowd.submit(upload_at_once, clients, partial(upload, url, "/api/geo/convert/file", body, key))
        prober.submit(probe, url, uploads.done, samples).result()
        seconds = uploads.result()
    samples.sort()
    return {
        "mbPerSecond": clients * len(body) / MEGABYTE / seconds,
        "rssGrowthMb": resident_mb(pid, "VmHWM") - before,
        "healthP50Ms": samples[len(samples) // 2],
        "healthP99Ms": samples[len(samples) * 99 // 100],
        "healthMaxMs": samples[-1],
    }


def probe(url: str, done: Callable[[], bool], samples: list[float]) -> None:
    """Ask for the health until `done`, and note the milliseconds of each answer."""
    connection = http.client.HTTPConnection(urlsplit(url).netloc, timeout=60)
    while not done():
        start = time.perf_counter()
        connection.request("GET", "/healthz")
        connection.getresponse().read()
        samples.append(1000 * (time.perf_counter() - start))
        time.sleep(0.002)
    connection.close()


def resident_mb(pid: int, field: str) -> float:
    """A field of a process's status in megabytes."""
    return int(Path(f"/proc/{pid}/status").read_text().partition(f"{field}:")[2].split()[0]) / 1024


def medians(rounds: list[Figures]) -> Figures:
    """The median of each figure."""
    return {name: round(median(figures[name] for figures in rounds), 2) for name in rounds[0]}


def main() -> None:
    """Measure, print, and write the results."""
    parser = argparse.ArgumentParser(prog="python -m bench.parts.uploads")
    parser.add_argument("--clients", type=int, default=8)
    parser.add_argument("--megabytes", type=int, default=90)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--directory", help="where uploads are written; default: the temporary directory")
    parser.add_argument("--url", help="address of a running service, instead of intake alone")
    parser.add_argument("--key", default="", help="API key for that service")
    parser.add_argument("--pid", type=int, help="its process")
    options = parser.parse_args()
    body = form(options.megabytes * MEGABYTE)
    results: dict[str, Figures] = {}
    if options.url:
        rounds = [
            measure_service(options.url, options.key, options.pid, options.clients, body) for _ in range(options.rounds)
        ]
        results["service"] = medians(rounds)
    else:
        for name, path, plain in ROWS:
            for clients in (1, options.clients):
                rounds = [
                    measure_own(options.directory, path, clients, body, plain=plain) for _ in range(options.rounds)
                ]
                results[f"{name} x {clients}"] = medians(rounds)
    for name, figures in results.items():
        print(f"{name:22}", "  ".join(f"{figure} {value:.2f}" for figure, value in figures.items()))
    RESULTS.parent.mkdir(parents=True, exist_ok=True)
    RESULTS.write_text(json.dumps(results, indent=2) + "\n")


if __name__ == "__main__":
    main()
