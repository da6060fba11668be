"""Files of another kind than their names say are refused with what they are, and what helps."""

import gzip
import io
import tarfile
import zipfile
from contextlib import nullcontext
from pathlib import Path

import pytest

from service.errors import Rejection
from service.formats.detect import detect
from service.formats.other_kinds import JSON_ARRAY, JSON_MEMBERS, ROOTS, STARTS, refuse_other_json
from service.formats.registry import INPUT_EXTENSIONS

GEOJSON = b'{"type": "FeatureCollection", "features": []}'
KML = b'<?xml version="1.0"?>\n<kml xmlns="http://www.opengis.net/kml/2.2"><Placemark/></kml>'
SPANISH = b"palabras\n".ljust(256, b".") + b"gustar el pan\n"
"""Where a tar archive has its mark, this has a word that contains it."""
GEOPACKAGE = b"SQLite format 3\0" + bytes(52) + b"GPKG" + bytes(28)


def zipped(name: str) -> bytes:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr(name, "a")
    return file.getvalue()


def tarred() -> bytes:
    file = io.BytesIO()
    with tarfile.open(fileobj=file, mode="w") as archive:
        archive.addfile(tarfile.TarInfo("a.geojson"))
    return file.getvalue()


REFUSED = {
    ("a.zip", GEOJSON): "ZIP archive: it is GeoJSON. Name it .geojson",
    ("a.zip", b"\xef\xbb\xbf" + KML): "ZIP archive: it is KML. Name it .kml",
    ("a.zip", GEOPACKAGE): "ZIP archive: it is a GeoPackage. Name it .gpkg",
    ("a.zip", tarred()): "ZIP archive: it is a tar archive. Put the files",
    ("a.zip", b"Rar!\x1a\x07\x01\0"): "ZIP archive: it is a RAR archive",
    ("a.zip", gzip.compress(b"a")): "ZIP archive: it is a gzip file",
    ("a.zip", b"a;b\n1;2\n"): "ZIP archive: it is text",
    ("a.zip", zipped("a")[:-9]): "ZIP archive. Create the ZIP again",
    ("a.zip", b"\0\1\2\3"): "ZIP archive. Create the ZIP again",
    ("a.kml", zipped("doc.kml")): "valid KML file: it is KMZ. Name it .kmz",
    ("a.kmz", KML): "valid KMZ file: it is KML. Name it .kml",
    ("a.kml", b"\n<!doctype HTML>\n<html>"): "valid KML file: it is a web page",
    ("a.geojson", b"<html lang='en'>"): "valid GeoJSON file: it is a web page",
    ("a.gml", b"<ows:ExceptionReport xmlns:ows='a'>"): "valid GML file: it is an error message from a server",
    ("a.gpx", KML): "valid GPX file: it is KML",
    ("a.json", b"<a:b>"): "valid GeoJSON file: it is XML. If it is one of these, name it .kml",
    ("a.parquet", b"ARROW1\0\0\xff\xff\xff\xff"): "valid GeoParquet file: it is an Arrow table. Save it as GeoParquet",
    ("a.sqlite", GEOPACKAGE): "valid SQLite file: it is a GeoPackage. Name it .gpkg",
    ("a.csv", GEOJSON): "valid CSV file: it is GeoJSON. Name it .geojson",
    ("a.csv", KML): "valid CSV file: it is KML. Name it .kml",
    ("a.csv", b"<gpx>"): "valid CSV file: it is GPX. Name it .gpx",
    ("a.wkt", b"<ogr:FeatureCollection>"): "valid WKT file: it is GML. Name it .gml",
    ("a.csv", zipped("[Content_Types].xml")): "valid CSV file: it is a workbook",
}


@pytest.mark.parametrize(("name", "content"), REFUSED, ids=[f"{name}: {told}" for (name, _), told in REFUSED.items()])
def test_the_kind_of_a_file_is_named(tmp_path: Path, name: str, content: bytes) -> None:
    """Also if it is a page or a message in place of a download."""
    path = tmp_path / name
    path.write_bytes(content)
    with pytest.raises(Rejection) as refused:
        detect(path, name, tmp_path / "unpacked")
    assert REFUSED[name, content] in str(refused.value)


@pytest.mark.parametrize(
    ("content", "told"),
    [
        (b'{"version": 0.6, "osm3s": {}, "elements": []}', "an Overpass result"),
        (b'{"locations": [{"latitudeE7": 1}]}', "a Google location history"),
        (
            b'{"currentVersion": 10.81, "geometryType": "esriGeometryPoint"}',
            "the description of an ArcGIS layer or service",
        ),
        (b'{"count": 5}', "an answer of an ArcGIS server that holds no features"),
        (b'{"count": 5, "extent": {"xmin": 1}}', "an answer of an ArcGIS server that holds no features"),
        (b'{"objectIdFieldName": "id", "objectIds": [1, 2]}', "an answer of an ArcGIS server that holds no features"),
        (b'{"type": "CityJSON", "CityObjects": {}, "vert', "CityJSON"),
        (b'{"error": {"code": 400}}', "an error message from a server"),
        (b' [{"lat": 1}]', "an array"),
    ],
)
def test_json_of_another_kind_is_named(content: bytes, told: str) -> None:
    with pytest.raises(Rejection, match=f"not GeoJSON: it is {told}"):
        refuse_other_json(content)


@pytest.mark.parametrize(
    "content",
    [b"{}", b'{"a": {"elements": 1}}', b'{"currentVersion": 1, "features": []}', b'{"count": 1, "a": 2}', b"1", b""],
)
def test_json_that_has_features_or_no_mark_of_a_kind_is_left_to_others(content: bytes) -> None:
    refuse_other_json(content)


@pytest.mark.parametrize(
    ("content", "is_refused"),
    [
        (b'{"count": 5}', True),
        (b'{"count": 5', False),
        (b'{"sources": {}, "type": "Point", "coordinates": [1, 2]}', False),
        (b'{"sources": {}, "type": "FeatureCollection", "features": []}', False),
        (b"[" * 5000, False),
    ],
)
def test_json_without_features_is_no_geojson(tmp_path: Path, content: bytes, *, is_refused: bool) -> None:
    """Who asked for GeoJSON was told that it is GeoJSON already; the reader has better words for what is damaged."""
    path = tmp_path / "a.json"
    path.write_bytes(content)
    with pytest.raises(Rejection, match="it is an answer of") if is_refused else nullcontext():
        assert detect(path, path.name, tmp_path / "unpacked").format.title == "GeoJSON"


@pytest.mark.parametrize("extension", [".csv", ".wkt"])
@pytest.mark.parametrize(
    "content",
    [b'{"type", "name"}\n', b"[id],[name]\n", b"<id>,<name>\n", b"PAR1,PAR2\n1,2\n", SPANISH],
    ids=["JSON", "array", "XML", "Parquet", "tar"],
)
def test_any_text_may_be_a_table_or_lines(tmp_path: Path, extension: str, content: bytes) -> None:
    """Their readers tell what they make of it."""
    path = tmp_path / f"a{extension}"
    path.write_bytes(content)
    assert detect(path, path.name, tmp_path / "unpacked").format.token == extension[1:]


def test_advice_names_only_extensions_that_are_accepted() -> None:
    """To follow it must not lead to another refusal."""
    words = " ".join(
        kind.advice for kind in (*STARTS.values(), *ROOTS.values(), *JSON_MEMBERS.values(), JSON_ARRAY)
    ).split()
    named = {word.rstrip(".,") for word in words if word.startswith(".")}
    assert named <= {*INPUT_EXTENSIONS, ".shx", ".dbf", ".prj"}
