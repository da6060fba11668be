"""The cost of analyzing a large GeoJSON document, compared with converting it.

    python -m bench.parts.analyze [--megabytes 100] [--rounds 5]

Scans and converts the same generated files in turn, each in a process of its own: points with eight properties, the
same with letters beyond ASCII, and polygons. Goal: the scan takes at most a quarter of bare ogr2ogr's CPU time and at
most 140 MB. Figures are medians; they go to bench/results/analyze.json too.
"""

import argparse
import json
import math
import os
import random
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping
from itertools import count
from pathlib import Path
from typing import Any

from bench.measure.figures import medians
from bench.measure.meter import MEGABYTE
from bench.report.results import DIRECTORY, write_json

RESULTS = DIRECTORY / "analyze.json"
CPU_GOAL = 0.25
MEMORY_GOAL_MB = 140
CORNERS = 120
LATIN = ("Place", "lorem ipsum dolor sit amet ")
MIXED = ("Örtchen", "Straße am Görlitzer Ufer 東京 ")

Figures = dict[str, float]


def points(words: tuple[str, str]) -> Iterator[dict[str, Any]]:
    """Points with eight properties of all types."""
    generator = random.Random(1)
    title, filler = words
    for number in count():
        yield _feature(
            {
                "id_number": number,
                "name": f"{title} {number}",
                "category": generator.choice(("shop", "school", "hospital", "park")),
                "population_2020": generator.randrange(10**6),
                "height": round(generator.random() * 100, 3),
                "active": generator.random() < 1 / 2,
                "opened": f"20{generator.randrange(10, 24)}-0{generator.randrange(1, 9)}-1{generator.randrange(9)}",
                "remarks": filler * generator.randrange(4),
            },
            {"type": "Point", "coordinates": _position(generator)},
        )


def polygons() -> Iterator[dict[str, Any]]:
    """Polygons of many corners with two properties."""
    generator = random.Random(1)
    for number in count():
        x, y = _position(generator)
        turns = [2 * math.pi * corner / CORNERS for corner in range(CORNERS)]
        ring = [[round(x + math.cos(turn) / 10, 6), round(y + math.sin(turn) / 10, 6)] for turn in turns]
        properties = {"id_number": number, "name": f"Area {number}"}
        yield _feature(properties, {"type": "Polygon", "coordinates": [[*ring, ring[0]]]})


DOCUMENTS: Mapping[str, Callable[[], Iterator[dict[str, Any]]]] = {
    "points": lambda: points(LATIN),
    "pointsBeyondAscii": lambda: points(MIXED),
    "polygons": polygons,
}


def _feature(properties: dict[str, Any], geometry: dict[str, Any]) -> dict[str, Any]:
    return {"type": "Feature", "properties": properties, "geometry": geometry}


def _position(generator: random.Random) -> list[float]:
    return [round(generator.uniform(-179, 179), 6), round(generator.uniform(-85, 85), 6)]


def write_document(path: Path, features: Iterator[dict[str, Any]], size_bytes: int) -> None:
    """Write a collection of `features` of about `size_bytes`."""
    with path.open("w", encoding="utf-8") as file:
        file.write('{"type": "FeatureCollection", "features": [\n')
        written = file.write(json.dumps(next(features)))
        while written < size_bytes:
            written += file.write(",\n" + json.dumps(next(features), ensure_ascii=False))
        file.write("\n]}\n")


def measure(command: list[str]) -> Figures:
    """Run a command to its end: its CPU seconds and its peak of memory."""
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise SystemExit(f"{command[0]} ended with {process.returncode}")
    return {"cpuSeconds": usage.ru_utime + usage.ru_stime, "peakMb": usage.ru_maxrss * 1024 / MEGABYTE}


def commands(document: Path, round_number: int) -> dict[str, list[str]]:
    """The analysis of `document`, and its conversion as anybody would run it."""
    shapefile = document.with_name(f"{document.stem}{round_number}.shp")
    return {
        "analysis": [sys.executable, "-m", "service.geojson.scan", str(document), str(document.with_suffix(".scan"))],
        "ogr2ogr": ["ogr2ogr", "-f", "ESRI Shapefile", "-lco", "ENCODING=UTF-8", str(shapefile), str(document)],
    }


def compare(document: Path, rounds: int) -> dict[str, Figures]:
    """Medians of both, taken in turn."""
    taken: dict[str, list[Figures]] = {"analysis": [], "ogr2ogr": []}
    for number in range(rounds):
        for name, command in commands(document, number).items():
            taken[name].append(measure(command))
        for file in document.parent.glob(f"{document.stem}{number}.*"):
            file.unlink()
    return {name: medians(figures, 3) for name, figures in taken.items()}


def main() -> None:
    """Compare on each document and write the figures."""
    arguments = argparse.ArgumentParser(description="What the analysis of a large GeoJSON costs.")
    arguments.add_argument("--megabytes", type=int, default=100)
    arguments.add_argument("--rounds", type=int, default=5)
    options = arguments.parse_args()
    results: dict[str, Any] = {"megabytes": options.megabytes, "rounds": options.rounds}
    with tempfile.TemporaryDirectory() as folder:
        for name, features in DOCUMENTS.items():
            document = Path(folder) / f"{name}.geojson"
            write_document(document, features(), options.megabytes * MEGABYTE)
            figures = compare(document, options.rounds)
            document.unlink()
            ratio = round(figures["analysis"]["cpuSeconds"] / figures["ogr2ogr"]["cpuSeconds"], 3)
            met = ratio <= CPU_GOAL and figures["analysis"]["peakMb"] <= MEMORY_GOAL_MB
            results[name] = {**figures, "cpuRatio": ratio, "goalMet": met}
            print(name, json.dumps(results[name]))
    write_json(results, RESULTS)


if __name__ == "__main__":
    main()
