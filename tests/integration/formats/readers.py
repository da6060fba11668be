"""Readers independent of the converter: what an output holds according to its own specification.

FlatGeobuf, MapInfo and File Geodatabase are read by another GDAL, ten minor versions younger, in pyogrio's wheel.
"""

import csv
import json
import re
import sqlite3
import struct
import zipfile
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from pathlib import Path
from xml.etree import ElementTree as ET

import msgspec
import pyarrow.parquet as pq
import pyogrio

KML = "{http://www.opengis.net/kml/2.2}"
GPX = "{http://www.topografix.com/GPX/1/1}"
GML = "{http://www.opengis.net/gml/3.2}"
CELL = "{http://schemas.openxmlformats.org/spreadsheetml/2006/main}"
TABLE = "{urn:oasis:names:tc:opendocument:xmlns:table:1.0}"
OFFICE = "{urn:oasis:names:tc:opendocument:xmlns:office:1.0}"
TEXT = "{urn:oasis:names:tc:opendocument:xmlns:text:1.0}"
SHAPE_FILE_CODE = 9994
DBF_HEADER_END = 0x0D
GEOPACKAGE_ID = 0x47504B47
DXF_ENTITY = re.compile(r"\n  0\n(POINT|LINE|LWPOLYLINE|POLYLINE|HATCH)\n")

Point = tuple[float, ...]


class Content(msgspec.Struct, frozen=True):
    """What an output holds: number of features, names if the format keeps them, positions of points."""

    features: int
    names: list[str] | None = None
    points: list[Point] | None = None


class Shapefile(msgspec.Struct, frozen=True):
    """One shapefile of an archive. `shapes` has the shape type of every record, 0 for null shapes."""

    shapes: list[int]
    points: list[Point]
    records: list[dict[str, str]]
    encoding: str
    projection: str


def geojson(path: Path) -> list[dict[str, object]]:
    document = json.loads(path.read_text(encoding="utf-8"))
    assert "crs" not in document
    features: list[dict[str, object]] = document["features"]
    return features


def shapefiles(path: Path) -> dict[str, Shapefile]:
    with zipfile.ZipFile(path) as archive:
        assert archive.testzip() is None
        names = [name.removesuffix(".shp") for name in archive.namelist() if name.endswith(".shp")]
        return {name: _shapefile(archive, name) for name in names}


def geopackage(path: Path) -> dict[str, list[dict[str, object]]]:
    with closing(sqlite3.connect(path)) as connection:
        assert connection.execute("PRAGMA application_id").fetchone()[0] == GEOPACKAGE_ID
        return _tables(connection, "SELECT table_name FROM gpkg_contents")


def spatialite(path: Path) -> dict[str, list[dict[str, object]]]:
    with closing(sqlite3.connect(path)) as connection:
        listed = connection.execute("SELECT f_table_name FROM geometry_columns").fetchall()
        plain = "SELECT 'table' WHERE EXISTS (SELECT 1 FROM sqlite_master WHERE name = 'table')"
        return _tables(connection, "SELECT f_table_name FROM geometry_columns" if listed else plain)


def table(path: Path) -> list[dict[str, str]]:
    csv.field_size_limit(1 << 30)
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def placemarks(path: Path) -> list[ET.Element]:
    return list(ET.parse(path).iter(f"{KML}Placemark"))  # noqa: S314 -- written by the test


def read_content(token: str, path: Path) -> Content:
    """The content of the output at `path` in the format `token`."""
    return _READERS[token](path)


def _tables(connection: sqlite3.Connection, listing: str) -> dict[str, list[dict[str, object]]]:
    connection.row_factory = sqlite3.Row
    assert connection.execute("PRAGMA integrity_check").fetchone()[0] == "ok"
    names = [row[0] for row in connection.execute(listing)]
    return {name: [dict(row) for row in connection.execute(f'SELECT * FROM "{name}"')] for name in names}  # noqa: S608 -- names of a file that the test wrote


def _shapefile(archive: zipfile.ZipFile, name: str) -> Shapefile:
    encoding = archive.read(f"{name}.cpg").decode("ascii").strip()
    shapes, points = _shapes(archive.read(f"{name}.shp"), archive.read(f"{name}.shx"))
    return Shapefile(
        shapes=shapes,
        points=points,
        records=_dbf(archive.read(f"{name}.dbf"), encoding),
        encoding=encoding,
        projection=archive.read(f"{name}.prj").decode() if f"{name}.prj" in archive.namelist() else "",
    )


def _shapes(shp: bytes, shx: bytes) -> tuple[list[int], list[Point]]:
    assert struct.unpack_from(">I", shp)[0] == SHAPE_FILE_CODE
    assert struct.unpack_from(">I", shp, 24)[0] * 2 == len(shp)
    offsets = [struct.unpack_from(">I", shx, at)[0] * 2 + 8 for at in range(100, len(shx), 8)]
    kinds = [struct.unpack_from("<I", shp, offset)[0] for offset in offsets]
    sizes = {1: 2, 11: 3}
    points = [
        struct.unpack_from(f"<{sizes[kind]}d", shp, offset + 4)
        for kind, offset in zip(kinds, offsets, strict=True)
        if kind in sizes
    ]
    return kinds, points


def _dbf(content: bytes, encoding: str) -> list[dict[str, str]]:
    count, header, width = struct.unpack_from("<IHH", content, 4)
    fields = []
    at = 32
    while content[at] != DBF_HEADER_END:
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


def _content_of_features(features: Sequence[Mapping[str, object]]) -> Content:
    names, points = [], []
    for found in features:
        properties, place = found["properties"], found["geometry"]
        assert isinstance(properties, dict)
        names.append(str(properties.get("name")))
        if isinstance(place, dict) and place["type"] == "Point":
            points.append(tuple(place["coordinates"]))
    return Content(len(features), names, points)


def _geojsonseq(path: Path) -> Content:
    return _content_of_features([json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()])


def _shapefile_content(path: Path) -> Content:
    parts = shapefiles(path).values()
    names = [record["name"] for part in parts for record in part.records if "name" in record]
    return Content(sum(len(part.shapes) for part in parts), names, [place for part in parts for place in part.points])


def _places(rows: Sequence[Mapping[str, object]]) -> Content:
    """The rows of a table whose geometry is in columns X, Y, Z or WKT."""
    points: list[Point] = []
    for row in rows:
        if row.get("X"):
            points.append(tuple(float(str(row[name])) for name in ("X", "Y", "Z") if row.get(name)))
        elif str(row.get("WKT") or "").startswith("POINT"):
            points.append(_wkt_point(str(row["WKT"])))
    return Content(len(rows), [str(row.get("name")) for row in rows], points)


def _wkt_point(text: str) -> Point:
    return tuple(map(float, text[text.index("(") + 1 : text.index(")")].split()))


def _gml(path: Path) -> Content:
    root = ET.parse(path).getroot()  # noqa: S314 -- written by the test
    members = [element[0] for element in root if element.tag.endswith("featureMember")]
    names = [child.text or "" for member in members for child in member if child.tag.endswith("}name")]
    points = []
    for member in members:
        for place in member.iterfind(f"*/{GML}Point/{GML}pos"):
            lat, lon, *rest = map(float, (place.text or "").split())
            points.append((lon, lat, *rest))
    return Content(len(members), names, points)


def _database(rows: Mapping[str, Sequence[Mapping[str, object]]]) -> Content:
    every = [row for layer in rows.values() for row in layer]
    return Content(len(every), [str(row.get("name")) for row in every])


def _gpx(path: Path) -> Content:
    root = ET.parse(path).getroot()  # noqa: S314 -- written by the test
    marks, tracks = list(root.iter(f"{GPX}wpt")), list(root.iter(f"{GPX}trk"))
    points = [
        (float(mark.attrib["lon"]), float(mark.attrib["lat"]), *(float(up.text or 0) for up in mark.iter(f"{GPX}ele")))
        for mark in marks
    ]
    things = [*marks, *tracks]
    return Content(len(things), [thing.findtext(f"{GPX}name") or "" for thing in things], points)


def _kml(path: Path) -> Content:
    marks = placemarks(path)
    points = [
        tuple(map(float, (place.text or "").split(",")))
        for mark in marks
        for place in mark.iterfind(f"{KML}Point/{KML}coordinates")
    ]
    return Content(len(marks), [mark.findtext(f"{KML}name") or "" for mark in marks], points)


def _kmz(path: Path) -> Content:
    with zipfile.ZipFile(path) as archive:
        assert archive.namelist() == ["doc.kml"]
        unpacked = Path(archive.extract("doc.kml", path.parent))
    return _kml(unpacked)


def _dxf(path: Path) -> Content:
    text = path.read_text(encoding="utf-8", errors="replace").replace("\r\n", "\n")
    return Content(len(DXF_ENTITY.findall(text[text.index("\nENTITIES\n") :])))


def _younger_gdal(*paths: str) -> Content:
    names: list[str] = []
    points: list[Point] = []
    features = 0
    for path in paths:
        for layer, _ in pyogrio.list_layers(path):
            meta, _, places, values = pyogrio.raw.read(path, layer=layer)
            columns = dict(zip(meta["fields"], values, strict=True))
            features += max((len(column) for column in (*values, places) if column is not None), default=0)
            names += [str(value) for value in columns.get("name", [])]
            points += [_wkb_point(bytes(place)) for place in (places if places is not None else []) if _is_point(place)]
    return Content(features, names, points)


def _is_point(wkb: bytes | None) -> bool:
    return wkb is not None and struct.unpack_from("<I", wkb, 1)[0] in {1, 1001, 0x80000001}


def _wkb_point(wkb: bytes) -> Point:
    count = (len(wkb) - 5) // 8
    return struct.unpack_from(f"<{count}d", wkb, 5)


def _flatgeobuf(path: Path) -> Content:
    assert path.read_bytes()[:4] == b"fgb\x03"
    return _younger_gdal(str(path))


def _mapinfo(path: Path) -> Content:
    with zipfile.ZipFile(path) as archive:
        tables = [name for name in archive.namelist() if name.endswith(".tab")]
    return _younger_gdal(*(f"/vsizip/{path}/{name}" for name in tables))


def _openfilegdb(path: Path) -> Content:
    with zipfile.ZipFile(path) as archive:
        (folder,) = {name.split("/")[0] for name in archive.namelist()}
    assert folder.endswith(".gdb")
    return _younger_gdal(f"/vsizip/{path}/{folder}")


def _xlsx(path: Path) -> Content:
    with zipfile.ZipFile(path) as archive:
        shared = [
            "".join(text.text or "" for text in item.iter(f"{CELL}t"))
            for item in ET.fromstring(archive.read("xl/sharedStrings.xml"))  # noqa: S314 -- written by the test
        ]
        sheet = ET.fromstring(archive.read("xl/worksheets/sheet1.xml"))  # noqa: S314 -- written by the test
    rows = [{_column(cell): _cell(cell, shared) for cell in row} for row in sheet.iter(f"{CELL}row")]
    return _places([{title: row.get(at) for at, title in rows[0].items()} for row in rows[1:]] if rows else [])


def _column(cell: ET.Element) -> str:
    return re.sub(r"\d", "", cell.attrib["r"])


def _cell(cell: ET.Element, shared: Sequence[str]) -> str:
    value = cell.findtext(f"{CELL}v") or ""
    return shared[int(value)] if cell.get("t") == "s" else value


def _ods(path: Path) -> Content:
    with zipfile.ZipFile(path) as archive:
        root = ET.fromstring(archive.read("content.xml"))  # noqa: S314 -- written by the test
    rows = [[_ods_cell(cell) for cell in row] for row in root.iter(f"{TABLE}table-row")]
    return _places([dict(zip(rows[0], row, strict=False)) for row in rows[1:]] if rows else [])


def _ods_cell(cell: ET.Element) -> str:
    text = cell.find(f"{TEXT}p")
    return cell.get(f"{OFFICE}value") or ("" if text is None else "".join(text.itertext()))


def _geoparquet(path: Path) -> Content:
    file = pq.ParquetFile(path)
    rows = file.read().to_pylist()
    declared = json.loads((file.metadata.metadata or {}).get(b"geo", b"null"))
    points = []
    if declared is not None:
        assert declared["version"] == "1.1.0"
        primary = declared["primary_column"]
        assert declared["columns"][primary]["encoding"] == "WKB"
        points = [_wkb_point(row[primary]) for row in rows if _is_point(row[primary])]
    return Content(len(rows), [str(row.get("name")) for row in rows], points)


def _wkt(path: Path) -> Content:
    lines = path.read_text(encoding="utf-8").splitlines()
    return Content(len(lines), None, [_wkt_point(text) for text in lines if text.startswith("POINT")])


_READERS: Mapping[str, Callable[[Path], Content]] = {
    "geojson": lambda path: _content_of_features(geojson(path)),
    "geojsonseq": _geojsonseq,
    "shapefile": _shapefile_content,
    "csv": lambda path: _places(table(path)),
    "gml": _gml,
    "gpkg": lambda path: _database(geopackage(path)),
    "spatialite": lambda path: _database(spatialite(path)),
    "gpx": _gpx,
    "kml": _kml,
    "kmz": _kmz,
    "dxf": _dxf,
    "flatgeobuf": _flatgeobuf,
    "mapinfo": _mapinfo,
    "openfilegdb": _openfilegdb,
    "xlsx": _xlsx,
    "ods": _ods,
    "geoparquet": _geoparquet,
    "wkt": _wkt,
}
