"""Readers that owe nothing to GDAL: what an output holds according to its own specification."""

import csv
import json
import sqlite3
import struct
import zipfile
from contextlib import closing
from pathlib import Path
from xml.etree import ElementTree as ET

import msgspec

SHAPE_POINTS = {1: 1, 11: 1}
KML = "{http://www.opengis.net/kml/2.2}"
GEOPACKAGE_POINT = 1


class Shapefile(msgspec.Struct, frozen=True):
    """One shapefile of a ZIP."""

    shapes: list[int]
    """The shape type of every record, 0 for null shapes."""
    records: list[dict[str, str]]
    encoding: str
    projection: str


def geojson(path: Path) -> list[dict[str, object]]:
    document = json.loads(path.read_text(encoding="utf-8"))
    features: list[dict[str, object]] = document["features"]
    return features


def shapefiles(path: Path) -> dict[str, Shapefile]:
    with zipfile.ZipFile(path) as archive:
        assert archive.testzip() is None
        names = [name.removesuffix(".shp") for name in archive.namelist() if name.endswith(".shp")]
        return {name: _shapefile(archive, name) for name in names}


def _shapefile(archive: zipfile.ZipFile, name: str) -> Shapefile:
    encoding = archive.read(f"{name}.cpg").decode("ascii").strip()
    return Shapefile(
        shapes=_shapes(archive.read(f"{name}.shp"), archive.read(f"{name}.shx")),
        records=_dbf(archive.read(f"{name}.dbf"), encoding),
        encoding=encoding,
        projection=archive.read(f"{name}.prj").decode() if f"{name}.prj" in archive.namelist() else "",
    )


def _shapes(shp: bytes, shx: bytes) -> list[int]:
    assert struct.unpack_from(">I", shp)[0] == 9994
    assert struct.unpack_from(">I", shp, 24)[0] * 2 == len(shp)
    offsets = [struct.unpack_from(">I", shx, at)[0] * 2 for at in range(100, len(shx), 8)]
    return [struct.unpack_from("<I", shp, offset + 8)[0] for offset in offsets]


def _dbf(content: bytes, encoding: str) -> list[dict[str, str]]:
    count, header, width = struct.unpack_from("<IHH", content, 4)
    fields = []
    at = 32
    while content[at] != 0x0D:
        raw = content[at : at + 32]
        fields.append((raw[:11].split(b"\0")[0].decode(encoding), raw[16]))
        at += 32
    assert 1 + sum(size for _, size in fields) == width
    records = []
    for number in range(count):
        offset = header + number * width + 1
        record = {}
        for name, size in fields:
            record[name] = content[offset : offset + size].decode(encoding).strip()
            offset += size
        records.append(record)
    return records


def geopackage(path: Path) -> dict[str, list[dict[str, object]]]:
    with closing(sqlite3.connect(path)) as connection:
        connection.row_factory = sqlite3.Row
        assert connection.execute("PRAGMA integrity_check").fetchone()[0] == "ok"
        assert connection.execute("PRAGMA application_id").fetchone()[0] == 0x47504B47
        tables = [row[0] for row in connection.execute("SELECT table_name FROM gpkg_contents")]
        return {table: [dict(row) for row in connection.execute(f'SELECT * FROM "{table}"')] for table in tables}  # noqa: S608


def table(path: Path) -> list[dict[str, str]]:
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def placemarks(path: Path) -> list[ET.Element]:
    return list(ET.parse(path).iter(f"{KML}Placemark"))  # noqa: S314 -- written by the test


def flatgeobuf_magic(path: Path) -> bytes:
    return path.read_bytes()[:8]
