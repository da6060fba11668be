"""Lists of values become JSON, whatever they came in."""

import json
import sqlite3
from pathlib import Path

import pytest

from tests.integration.formats import readers
from tests.integration.formats.pipeline import Pipeline, write_geojson

GML = (
    '<c:FeatureCollection xmlns:c="http://c" xmlns:gml="http://www.opengis.net/gml/3.2">'
    '<c:featureMember><c:a><c:g><gml:Point srsName="EPSG:4326"><gml:pos>1 2</gml:pos></gml:Point></c:g>'
    "<c:t>x</c:t><c:t>y, &quot;z&quot;</c:t><c:n>7</c:n></c:a></c:featureMember></c:FeatureCollection>"
)
TOPOJSON = (
    '{"type": "Topology", "arcs": [], "objects": {"a": {"type": "GeometryCollection", "geometries": [{"type": "Point",'
    ' "coordinates": [1, 2], "properties": {"t": ["x", "y, \\"z\\""], "i": [1, 2], "r": [0.5, 1.25], "n": 7}}]}}}'
)
TEXTS = ["x", 'y, "z"']
LISTS = {".gml": {"t": TEXTS, "n": 7}, ".topojson": {"t": TEXTS, "i": [1, 2], "r": [0.5, 1.25], "n": 7}}


@pytest.mark.parametrize("extension", LISTS)
async def test_lists_become_json(either: Pipeline, tmp_path: Path, extension: str) -> None:
    """As those of GeoJSON do: texts of JSON, which are lists again in GeoJSON."""
    path = tmp_path / f"a{extension}"
    path.write_text(GML if extension == ".gml" else TOPOJSON, encoding="utf-8")
    (row,) = readers.geopackage((await either.to("GeoPackage", path, source_epsg=4326)).path)["a"]
    expected = LISTS[extension]
    assert {name: json.loads(str(row[name])) for name in expected} == expected
    done = await either.to("GeoJson", path, source_epsg=4326)
    (feature,) = json.loads(done.path.read_text(encoding="utf-8"))["features"]
    assert feature["properties"].items() >= expected.items()


async def test_lists_of_a_database_stay_the_json_that_they_are(pipeline: Pipeline, tmp_path: Path) -> None:
    """Its types say that texts are lists; a column that has the name of such a type stays as well."""
    path = tmp_path / "a.sqlite"
    with sqlite3.connect(path) as connection:
        connection.execute("CREATE TABLE a ('n' INTEGER, 't' JSONSTRINGLIST, 'i' JSONREALLIST, ' JSONREALLIST' TEXT)")
        connection.execute("INSERT INTO a VALUES (7, ?, '[ 0.5, 1.25 ]', 'u')", (json.dumps(TEXTS),))
    connection.close()
    (row,) = readers.table((await pipeline.to("Csv", path)).path)
    assert (json.loads(str(row["t"])), row["i"], row[" JSONREALLIST"]) == (TEXTS, "[ 0.5, 1.25 ]", "u")


MIXED = {
    "date": ([-20, -27], "2024-05-22"),
    "words": ({"a": [1, {"b": None}]}, "true oak"),
    "quoted": ([1, 2], '"x"'),
    "null": ([1], "null"),
    "number": ([], "007"),
}


@pytest.mark.parametrize("target", ["GeoJson", "GeoJsonSeq"])
@pytest.mark.parametrize("is_gathered", [False, True])
async def test_texts_beside_lists_stay_whole_in_geojson(
    either: Pipeline, tmp_path: Path, target: str, *, is_gathered: bool
) -> None:
    """They became what JSON they began with, such as the number 2024 of a date, without a word."""
    kind = "MultiPoint" if is_gathered else "Point"
    extension = ".geojson" if target == "GeoJsonSeq" else ".topojson"
    features = [{name: values[number] for name, values in MIXED.items()} for number in range(2)]
    path = tmp_path / f"a{extension}"
    geometry = {"type": kind, "coordinates": [[1, 2], [3, 4]] if is_gathered else [1, 2]}
    if extension == ".geojson":
        path = write_geojson(path, [{"type": "Feature", "properties": of, "geometry": geometry} for of in features])
    else:
        collection = {"type": "GeometryCollection", "geometries": [{**geometry, "properties": of} for of in features]}
        path.write_text(json.dumps({"type": "Topology", "arcs": [], "objects": {"a": collection}}))
    done = await either.to(target, path, **{} if extension == ".geojson" else {"source_epsg": 4326})
    text = done.path.read_text(encoding="utf-8")
    written = json.loads(text)["features"] if target == "GeoJson" else [json.loads(line) for line in text.splitlines()]
    assert [feature["properties"] for feature in written] == features
