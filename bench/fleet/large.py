"""What a fleet costs for large files, each of a second of CPU or more, beside one process that does everything.

The store is one that takes little CPU, because that of a real site has cores of its own.
"""

import argparse
import asyncio
import math
import subprocess
import tempfile
from functools import partial
from pathlib import Path
from typing import NamedTuple

from bench.fleet.comparing import Rates, both_sides, compare_rates, share_of
from bench.fleet.conversions import conversion, is_right
from bench.fleet.object_server import ObjectServer
from bench.load.client import Address, LoadRequest
from bench.load.documents import document, write_document

GOAL = 0.95
CLIENTS = 4
FILES, ROUNDS = 6, 3


class LargeFile(NamedTuple):
    """Files that `ogr2ogr` makes of a document of so many bytes, and what they are converted to."""

    from_bytes: int
    extension: str
    target: str
    options: tuple[str, ...] = ()
    """Of `ogr2ogr`; none: the document itself."""
    source_epsg: str = ""


KINDS = (
    LargeFile(24_000_000, ".geojson", "Shapefile"),
    LargeFile(24_000_000, ".geojson", "GeoPackage"),
    LargeFile(26_000_000, ".gpkg", "GeoJson", ("-f", "GPKG")),
    LargeFile(29_000_000, ".csv", "FlatGeobuf", ("-f", "CSV", "-lco", "GEOMETRY=AS_WKT"), "4326"),
    LargeFile(9_500_000, ".gml", "Shapefile", ("-f", "GML")),
)
"""About a second each; no file and no result is sent in parts, which the store does not know."""


def run(options: argparse.Namespace) -> bool:
    """Measure each kind, and print what came of it; return whether all reached the goal and were charged once."""
    share = share_of(options.jobs)
    with both_sides(ObjectServer) as (fleet, sides):
        key = fleet.keys().good[0]
        outcomes = []
        for kind in KINDS:
            content = _file(kind)
            about = f"{len(content) / 1e6:.0f} MB of {kind.extension} to {kind.target}"
            request = partial(_request, key=key, content=content, kind=kind)
            rates = Rates(
                about, request, CLIENTS, math.ceil(FILES * share), math.ceil(ROUNDS * share), GOAL, by_cpu=True
            )
            outcomes.append(asyncio.run(compare_rates(sides, rates)))
        outcomes.append(is_right(fleet.site))
    return all(outcomes)


def _request(address: Address, *, key: str, content: bytes, kind: LargeFile) -> LoadRequest:
    fields = {"outputFormat": kind.target} | ({"sourceEpsg": kind.source_epsg} if kind.source_epsg else {})
    return conversion(address, key, content, name=f"a{kind.extension}", fields=fields)


def _file(kind: LargeFile) -> bytes:
    """Make the file."""
    content = document(kind.from_bytes)
    if not kind.options:
        return content
    with tempfile.TemporaryDirectory(prefix="geomill-fleet-") as name:
        source = write_document(Path(name), content, "a.geojson")
        made = source.with_suffix(kind.extension)
        subprocess.run(["ogr2ogr", *kind.options, str(made), str(source)], check=True)
        return made.read_bytes()
