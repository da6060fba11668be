"""Shapefiles: coordinate systems with grids, encodings that are paths, headers that contradict the content."""

import struct
from collections.abc import Callable, Mapping
from types import MappingProxyType

from tests.hostile.bait import Bait
from tests.hostile.case import Case, filled
from tests.hostile.packing import packed

WGS84 = (
    'GEOGCS["GCS_WGS_1984",DATUM["D_WGS_1984",SPHEROID["WGS_1984",6378137.0,298.257223563]],'
    'PRIMEM["Greenwich",0.0],UNIT["Degree",0.0174532925199433]]'
)
WITH_GRID = WGS84[:-1] + ',EXTENSION["PROJ4","+proj=longlat +ellps=GRS80 +nadgrids={} +no_defs"]]'
LITTLE = "<I"
BIG = ">I"


def _shp(record: bytes) -> bytes:
    head = struct.pack(">7I", 9994, 0, 0, 0, 0, 0, (100 + 8 + len(record)) // 2)
    bounds = struct.pack("<2I8d", 1000, 1, 1, 2, 1, 2, 0, 0, 0, 0)
    return head + bounds + struct.pack(">2I", 1, len(record) // 2) + record


def _shx(record: bytes) -> bytes:
    return _shp(b"")[:24] + struct.pack(">I", 54) + _shp(record)[28:100] + struct.pack(">2I", 50, len(record) // 2)


POINT = struct.pack("<I2d", 1, 1, 2)
SHP, SHX = _shp(POINT), _shx(POINT)
FIELD = b"name".ljust(11, b"\0") + b"C" + bytes(4) + bytes([10, 0]) + bytes(14)
DBF = struct.pack("<4BIHH20x", 3, 120, 1, 1, 1, 65, 11) + FIELD + b"\r" + b" " + b"lake".ljust(10) + b"\x1a"


def patched(content: bytes, at: int, value: int, form: str = LITTLE) -> bytes:
    """`content` with the number at `at` replaced."""
    raw = struct.pack(form, value)
    return content[:at] + raw + content[at + len(raw) :]


def _shapefile(prj: str = WGS84, parts: Mapping[str, bytes] = MappingProxyType({})) -> Callable[[Bait], bytes]:
    def build(bait: Bait) -> bytes:
        members = {"a.shp": SHP, "a.shx": SHX, "a.dbf": DBF, "a.prj": filled(prj, bait).encode()}
        return packed(members | {f"a.{extension}": content for extension, content in parts.items()})

    return build


def _polygon(parts: int, points: int) -> bytes:
    return patched(_shp(struct.pack("<I4d2II2d", 5, 1, 2, 1, 2, parts, points, 0, 1, 2)), 32, 5)


SYSTEMS: Mapping[str, str] = {
    "a grid": WITH_GRID.format("{txt}"),
    "an optional grid": WITH_GRID.format("@{txt}"),
    "a grid by address": WITH_GRID.format("{url}/grid"),
    "an address": "{url}/crs",
    "a path": "{txt}",
    "a definition of PROJ": "+proj=longlat +nadgrids={txt} +type=crs",
    "brackets": "GEOGCS[" * 50_000,
    "a very long text": WGS84 + " " * 5_000_000,
}
LIES: Mapping[str, dict[str, bytes]] = {
    "a .shp of other kinds": {"shp": patched(SHP, 32, 99)},
    "a .shp of negative length": {"shp": patched(SHP, 24, 0xFFFFFFFF, BIG)},
    "a record of two gigabytes": {"shp": patched(SHP, 104, 0x3FFFFFFF, BIG), "shx": patched(SHX, 104, 0x3FFFFFFF, BIG)},
    "a record elsewhere": {"shx": patched(SHX, 100, 0x7FFFFFFF, BIG)},
    "four billion parts": {"shp": _polygon(0xFFFFFFFF, 1)},
    "two billion points": {"shp": _polygon(1, 0x7FFFFFFF)},
    "four billion rows": {"dbf": patched(DBF, 4, 0xFFFFFFFF)},
    "rows of no length": {"dbf": patched(DBF, 10, 0, "<H")},
    "a header of no length": {"dbf": patched(DBF, 8, 0, "<H")},
    "a header beyond its end": {"dbf": patched(DBF, 8, 0xFFFF, "<H")},
    "an index of noise": {"shx": SHX[:100] + b"\xff" * 4000},
    "an index that is not one": {"shx": b"x"},
    "a table that is not one": {"dbf": b"x"},
    "an encoding that is a path": {"cpg": b"../../../../etc/passwd"},
    "an encoding of many letters": {"cpg": b"x" * 1_000_000},
}

CASES = {
    "a shapefile of ours, whole": Case("a.zip", _shapefile(), ""),
    **{
        f"shapefile in the system of {name}": Case(
            "a.zip", _shapefile(prj), None, {"outputFormat": "GeoPackage", "targetEpsg": "3857"}
        )
        for name, prj in SYSTEMS.items()
    },
    **{f"shapefile with {lie}": Case("a.zip", _shapefile(parts=parts)) for lie, parts in LIES.items()},
}
