"""Finding the geometry of a table: a column of WKT, or a pair of coordinate columns. Runs in the jail.

The columns found are renamed to names of ours, so that the converter is told fixed ones, and every column is typed in a
.csvt file: GDAL's own guesses look at the beginning only and make numbers of codes with leading zeros.
"""

import csv
import json
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TextIO

X, Y, Z, WKT = "__x", "__y", "__z", "__wkt"
PAIRS = (
    ("x", "y"),
    ("lon", "lat"),
    ("long", "lat"),
    ("lng", "lat"),
    ("longitude", "latitude"),
    ("easting", "northing"),
    ("east", "north"),
    ("e", "n"),
    ("xcoord", "ycoord"),
    ("coordx", "coordy"),
    ("pointx", "pointy"),
    ("coordinatex", "coordinatey"),
    ("lonwgs84", "latwgs84"),
    ("rechtswert", "hochwert"),
)
WKT_NAMES = ("wkt", "geom", "geometry", "thegeom", "wkbgeometry", "geomwkt", "geometrywkt", "shape", "geojson")
GEOMETRY_TEXT = re.compile(
    r"\s*(?:(?:SRID=\d+;)?(?:MULTI)?(?:POINT|LINESTRING|POLYGON|CURVE|SURFACE)\b|(?:SRID=\d+;)?(?:GEOMETRYCOLLECTION"
    r"|CIRCULARSTRING|COMPOUNDCURVE|CURVEPOLYGON|TIN|POLYHEDRALSURFACE|TRIANGLE)\b|0[01][0-9A-F]{16,}\s*$"
    r"|\{.*\"coordinates\")",
    re.IGNORECASE | re.DOTALL,
)
WKT_VALUE = re.compile(r"[A-Z0-9=;\s]+\(.*\d\s+[-+.]?\d|.*\bEMPTY\s*$", re.IGNORECASE | re.DOTALL)
"""What a geometry has beyond the name of its type: numbers side by side, or none and the word for it."""
NUMBER = re.compile(r"\s*[-+]?(?:\d+(?:[.,]\d*)?|[.,]\d+)(?:[eE][-+]?\d+)?\s*$")
TYPES = (
    ("Integer64", re.compile(r"-?(?:0|[1-9]\d{0,17})$")),
    ("Real", re.compile(r"-?(?:0|[1-9]\d*)?(?:[.,]\d+(?:[eE][-+]?\d+)?|[eE][-+]?\d+)$")),
    ("Date", re.compile(r"\d{4}[-/](?:0\d|1[0-2])[-/](?:[0-2]\d|3[01])$")),
    (
        "DateTime",
        re.compile(
            r"\d{4}[-/](?:0\d|1[0-2])[-/](?:[0-2]\d|3[01])[T ][0-2]\d:[0-5]\d(?::[0-6]\d(?:\.\d+)?)?"
            r"(?:Z|[-+]\d\d(?::?\d\d)?)?$"
        ),
    ),
)
WIDER = {"Integer64": "Real", "Date": "DateTime"}
"""What a column becomes when a value does not fit the narrower type but the wider one."""
NOT_LETTERS = re.compile(r"[^a-z0-9]")


@dataclass(slots=True)
class Column:
    """What has been seen of one column."""

    name: str
    type: str = "String"
    filled: int = 0
    numbers: int = 0
    geometries: int = 0


@dataclass(frozen=True, slots=True)
class Table:
    """A table as a CSV of ours: its file, its name in the input, and where its geometry is: "xy", "xyz", "wkt", ""."""

    file: str
    name: str
    places: str


def plain(name: str) -> str:
    """A column's name as it is compared: no case, no punctuation."""
    return NOT_LETTERS.sub("", name.casefold())


def is_candidate(name: str) -> bool:
    """Whether a column of this name may hold geometry or coordinates."""
    key = plain(name)
    return key in WKT_NAMES or key == "z" or any(key in pair for pair in PAIRS)


def find_places(columns: Sequence[Column]) -> dict[int, str]:
    """Which columns hold the geometry, by position, and what they are called from now on."""
    texts = [at for at, column in enumerate(columns) if column.geometries and 2 * column.geometries >= column.filled]
    if texts:
        named = [at for at in texts if plain(columns[at].name) in WKT_NAMES]
        return {(named or texts)[0]: WKT}
    by_name: dict[str, int] = {}
    for at, column in enumerate(columns):
        by_name.setdefault(plain(column.name), at)
    for x, y in PAIRS:
        if all(name in by_name and _holds_numbers(columns[by_name[name]]) for name in (x, y)):
            z = by_name.get("z")
            with_z = {z: Z} if z is not None and _holds_numbers(columns[z]) else {}
            return {by_name[x]: X, by_name[y]: Y} | with_z
    return {}


def kind_of(places: dict[int, str]) -> str:
    """The word for the way in which a table holds its geometry."""
    return "wkt" if WKT in places.values() else "xyz" if Z in places.values() else "xy" if places else ""


def widened(current: str, cell: str) -> str:
    """The type of a column of the type `current`, "" for none yet, in which `cell` occurs."""
    for name, pattern in TYPES:
        if pattern.match(cell):
            if current in {"", name}:
                return name
            if WIDER.get(current) == name:
                return name
            return current if WIDER.get(name) == current else "String"
    return "String"


def unique_names(names: Sequence[str]) -> list[str]:
    """`names` without empty or repeated ones."""
    taken: set[str] = set()
    found = []
    for number, raw in enumerate(names, 1):
        name = base = raw.strip() or f"field_{number}"
        again = 1
        while name.casefold() in taken:
            again += 1
            name = f"{base}_{again}"
        taken.add(name.casefold())
        found.append(name)
    return found


def write_types(path: Path, columns: Sequence[Column], places: dict[int, str]) -> None:
    """Write the .csvt that types `columns`."""
    types = ["String" if name == WKT else "Real" if name else column.type for name, column in _with(columns, places)]
    path.write_text(",".join(f'"{name}"' for name in types), encoding="ascii")


def write_rows(file: TextIO, delimiter: str, names: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
    """Write a header and rows, a table of one column with an empty one beside it that the driver ignores.

    Without a delimiter in its first line no file is a CSV to the driver.
    """
    alone = [""] if len(names) == 1 else []
    writer = csv.writer(file, delimiter=delimiter, lineterminator="\n")
    writer.writerow([*names, *alone])
    writer.writerows(([*row[:1], ""] for row in rows) if alone else rows)


def write_tables(path: str, tables: Sequence[Table]) -> None:
    """Write down what tables there are, for the service to read."""
    listed = [{"file": table.file, "name": table.name, "places": table.places} for table in tables]
    Path(path).write_text(json.dumps(listed), encoding="utf-8")


def _with(columns: Sequence[Column], places: dict[int, str]) -> list[tuple[str, Column]]:
    return [(places.get(at, ""), column) for at, column in enumerate(columns)]


def _holds_numbers(column: Column) -> bool:
    return column.filled > 0 and 2 * column.numbers >= column.filled
