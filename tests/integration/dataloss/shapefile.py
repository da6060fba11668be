"""Reads zipped shapefiles from the published layout of .shp and .dbf, independently of GDAL."""

import struct
import zipfile
from itertools import pairwise
from pathlib import Path

import msgspec

Position = tuple[float, float]
POINT, LINE, POLYGON, MULTIPOINT = 1, 3, 5, 8
WITH_Z = 10
HEADER_BYTES = 100


class Column(msgspec.Struct, frozen=True):
    """A column of a .dbf: name, type (C, N, F, D) and width in bytes."""

    name: str
    kind: str
    width: int


class Shapefile(msgspec.Struct, frozen=True):
    """One shapefile; a geometry is a list of parts, each a list of positions, and None where the shape is null."""

    columns: list[Column]
    rows: list[list[bytes]]
    geometries: list[list[list[Position]] | None]
    shape_type: int


def read_archive(path: Path) -> dict[str, Shapefile]:
    """All shapefiles in a ZIP archive, by name."""
    with zipfile.ZipFile(path) as archive:
        names = [name.removesuffix(".dbf") for name in archive.namelist() if name.endswith(".dbf")]
        return {name: _shapefile(archive, name) for name in names}


def _shapefile(archive: zipfile.ZipFile, name: str) -> Shapefile:
    assert archive.read(f"{name}.cpg").strip() == b"UTF-8"
    columns, rows = _table(archive.read(f"{name}.dbf"))
    if f"{name}.shp" not in archive.namelist():
        return Shapefile(columns, rows, [None] * len(rows), 0)
    shp = archive.read(f"{name}.shp")
    geometries = _geometries(shp)
    assert len(geometries) == len(rows)
    return Shapefile(columns, rows, geometries, struct.unpack_from("<I", shp, 32)[0])


def _table(dbf: bytes) -> tuple[list[Column], list[list[bytes]]]:
    count, header, width = struct.unpack_from("<IHH", dbf, 4)
    columns = []
    at = 32
    while dbf[at] != 0x0D:
        name = dbf[at : at + 11].split(b"\0")[0].decode()
        columns.append(Column(name, chr(dbf[at + 11]), dbf[at + 16]))
        at += 32
    assert width == 1 + sum(column.width for column in columns)
    return columns, [_row(dbf, header + number * width + 1, columns) for number in range(count)]


def _row(dbf: bytes, at: int, columns: list[Column]) -> list[bytes]:
    values = []
    for column in columns:
        values.append(dbf[at : at + column.width])
        at += column.width
    return values


def _geometries(shp: bytes) -> list[list[list[Position]] | None]:
    assert struct.unpack_from(">I", shp)[0] == 9994
    assert struct.unpack_from(">I", shp, 24)[0] * 2 == len(shp)
    geometries = []
    at = HEADER_BYTES
    while at < len(shp):
        geometries.append(_geometry(shp, at + 8))
        at += 8 + struct.unpack_from(">I", shp, at + 4)[0] * 2
    return geometries


def _geometry(shp: bytes, at: int) -> list[list[Position]] | None:
    kind = struct.unpack_from("<I", shp, at)[0]
    if kind == 0:
        return None
    if kind % WITH_Z == POINT:
        return [[struct.unpack_from("<2d", shp, at + 4)]]
    if kind % WITH_Z == MULTIPOINT:
        return [[position] for position in _positions(shp, at + 40, struct.unpack_from("<I", shp, at + 36)[0])]
    parts, positions = struct.unpack_from("<2I", shp, at + 36)
    starts = [*struct.unpack_from(f"<{parts}I", shp, at + 44), positions]
    found = _positions(shp, at + 44 + 4 * parts, positions)
    return [found[start:end] for start, end in pairwise(starts)]


def _positions(shp: bytes, at: int, count: int) -> list[Position]:
    return [struct.unpack_from("<2d", shp, at + 16 * number) for number in range(count)]
