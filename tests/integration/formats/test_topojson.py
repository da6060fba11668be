"""TopoJSON is read as the GeoJSON that it stands for, and what has no place there is told."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from msgspec import Raw

from service.engine.jailed.topojson import MOST_REPEATED, SPARE_BYTES
from service.engine.jailed.topology import Topology, members_of
from service.errors import Rejection
from tests.integration.formats import readers
from tests.integration.formats.pipeline import Converted, Pipeline

ARCS = [[[0, 0], [4, 0]], [[4, 0], [0, 4]], [[0, 4], [0, 0]], [[1, 1, 5], [2, 1, 6]]]
QUANTIZED = [[[0, 0], [2, 0]], [[2, 0], [-2, 2]], [[0, 2], [0, -2]], [[2, 2, 5], [2, 0, 6]]]
TRANSFORM = {"scale": [2, 2], "translate": [0, 0]}
RING = [[0, 0], [4, 0], [0, 4], [0, 0]]


def collection(*geometries: Mapping[str, Any], **members: Any) -> dict[str, Any]:
    return {"type": "GeometryCollection", "geometries": geometries, **members}


def place(x: float, y: float, **members: Any) -> dict[str, Any]:
    return {"type": "Point", "coordinates": [x, y], **members}


def write(path: Path, objects: Mapping[str, Any], arcs: Sequence[Any] = ARCS, **members: Any) -> Path:
    document = {"type": "Topology", "objects": objects, "arcs": arcs, **members}
    path.write_text(json.dumps(document), encoding="utf-8")
    return path


def rows_of(done: Converted) -> list[Any]:
    return [*readers.geojson(done.path)]


async def as_geojson(pipeline: Pipeline, path: Path, **wishes: object) -> tuple[Converted, list[Any]]:
    done = await pipeline.to("GeoJson", path, source_epsg=4326, **wishes)
    return done, [row["geometry"] for row in rows_of(done)]


@pytest.mark.parametrize("quantized", [False, True])
async def test_geometries_are_made_of_their_arcs(either: Pipeline, tmp_path: Path, *, quantized: bool) -> None:
    """Forwards and backwards, with elevations wherever they are, whether arcs are quantized or not."""
    nested = collection(
        collection({"type": "LineString", "arcs": [3]}), {"type": "MultiLineString", "arcs": [[0], [1]]}
    )
    geometries: Sequence[dict[str, Any]] = (
        {"type": "Polygon", "arcs": [[0, 1, 2]]},
        {"type": "MultiPolygon", "arcs": [[[~2, ~1, ~0]]]},
        {"type": "LineString", "arcs": [3]},
        {"type": None},
        nested,
        {"type": "MultiPoint", "coordinates": [[1, 2, 3], [3, 4, 5]] if quantized else [[2, 4, 3], [6, 8, 5]]},
    )
    rows = [{**geometry, "properties": {"n": number}} for number, geometry in enumerate(geometries)]
    arcs, members = (QUANTIZED, {"transform": TRANSFORM}) if quantized else (ARCS, {})
    raised = [[4, 4, 5], [8, 4, 6]] if quantized else [[1, 1, 5], [2, 1, 6]]
    done, found = await as_geojson(either, write(tmp_path / "a.topojson", {"a": collection(*rows)}, arcs, **members))
    assert done.facts.layers[0].features == len(rows)
    assert flat(found[0]["coordinates"][0]) == RING
    assert sorted(flat(found[1]["coordinates"][0][0])) == sorted(RING)
    assert found[2] == {"type": "LineString", "coordinates": raised}
    assert found[3] is None
    assert found[4]["geometries"][0]["geometries"] == [{"type": "LineString", "coordinates": raised}]
    assert found[4]["geometries"][1]["type"] == "MultiLineString"
    assert found[5]["coordinates"] == [[2, 4, 3], [6, 8, 5]]


async def test_rings_have_the_positions_that_areas_require(pipeline: Pipeline, tmp_path: Path) -> None:
    """One that does not end where it begins is closed; one that was simplified to a line or a point is kept."""
    arcs = [[[0, 0], [4, 0]], [[4, 0], [0, 4]], [[9, 9], [9, 9]]]
    rows: list[dict[str, Any]] = [
        {"type": "Polygon", "arcs": [[0, 1], [0, ~0], [2]]},
        {"type": "LineString", "arcs": [0, 1]},
    ]
    path = write(tmp_path / "a.topojson", {"a": collection(*rows)}, arcs)
    topology = Topology(Raw(json.dumps(arcs).encode()), Raw(b"null"))
    texts = [b"".join(topology.geometry(members_of(Raw(json.dumps(row).encode())))) for row in rows]
    rings, line = (json.loads(text)["coordinates"] for text in texts)
    assert rings == [RING, [[0, 0], [4, 0], [0, 0], [0, 0]], [[9, 9]] * 4]
    assert line == RING[:-1]
    done, found = await as_geojson(pipeline, path)
    assert (done.output.warnings, [geometry["type"] for geometry in found]) == ((), ["Polygon", "LineString"])


async def test_parts_without_any_position_are_told_once(either: Pipeline, tmp_path: Path) -> None:
    """Of some of them, the driver does not tell."""
    parts = [{"type": "MultiPoint", "coordinates": []}, place(1, 2)]
    rows: list[dict[str, Any]] = [
        {"type": "MultiPolygon", "arcs": [[], [[0, 1, 2]]]},
        {"type": "GeometryCollection", "geometries": parts},
    ]
    done, _ = await as_geojson(either, write(tmp_path / "a.topojson", {"a": collection(*rows)}))
    (told,) = done.output.warnings
    assert told.endswith("were left out of the geometry of 2 features. The first is feature 1.")


def flat(positions: Sequence[Sequence[float]]) -> list[list[float]]:
    return [[x, y] for x, y, *_ in positions]


async def test_values_of_features_are_those_of_geojson(either: Pipeline, tmp_path: Path) -> None:
    """Booleans in lists, ids of both kinds, texts that look like times, and no column that the file does not have."""
    values = {"list": [True, 1, "a"], "code": "T1234", "whole": 2**53 + 1}
    rows = (place(1, 2, id=7, properties=values), place(3, 4, id="b"), place(5, 6, properties=[]))
    document = {"a": collection(*rows), "b": collection(place(1, 2, properties={"n": 1}))}
    path = write(tmp_path / "a.topojson", document)
    done, _ = await as_geojson(either, path, layer="a")
    first, second, third = (row["properties"] for row in rows_of(done))
    assert first == {"id": "7", **values}
    assert (second["id"], third["id"], second["code"]) == ("b", None, None)
    assert done.facts.warnings == (
        (
            "1 value in id: integers, true and false became texts, because other values of the column are texts, "
            "lists or objects."
        ),
        (
            "1 value in code: the text would change as a date or time (it is more than one, has no seconds, or "
            "names a day that no calendar has), so all dates of the file stay text."
        ),
    )
    assert [[field.name for field in layer.fields] for layer in done.facts.layers] == [["id", *values], ["n"]]


async def test_what_has_no_place_in_features_is_told(pipeline: Pipeline, tmp_path: Path) -> None:
    """Ids beside others, data within collections, foreign members, and geometries that are none."""
    rows = (
        place(1, 2, id="a", properties={"id": "b"}, color="red"),
        collection(place(1, 2, id="inner"), place(3, 4, properties={"n": 1})),
        {"type": "LineString", "arcs": [0, 99], "properties": {"n": 1}},
        {"type": "Sphere"},
        {"type": "Point", "coordinates": [1, None]},
    )
    document = {"a": collection(*rows, properties={"title": "x"}), "b": place(1, 2, id="own")}
    path = write(tmp_path / "a.topojson", document, source="an office", bbox=[0, 0, 1, 1])
    done = await pipeline.to("GeoPackage", path, source_epsg=4326)
    unread, inner, ids, foreign = done.output.warnings
    assert unread.startswith("Geometries (3) were left out, because they are not valid TopoJSON")
    assert inner.startswith("Properties or ids of geometries within collections, or of whole objects (3)")
    assert ids.startswith("Ids (2) were left out, because other ids of the features were kept")
    assert foreign.startswith("Members that are not part of TopoJSON are not kept: source, color.")
    assert [(layer.name, layer.features) for layer in done.facts.layers] == [("a", len(rows)), ("TopoJSON", 1)]


async def test_a_system_is_known_only_if_the_file_records_it(either: Pipeline, tmp_path: Path) -> None:
    """TopoJSON defines none; some programs copy the member `crs` of GeoJSON."""
    rows = {"a": collection(place(500_000, 5_500_000, properties={"n": 1}))}
    crs = {"type": "name", "properties": {"name": "urn:ogc:def:crs:EPSG::25832"}}
    done = await either.to("GeoJson", write(tmp_path / "a.topojson", rows, crs=crs))
    ((x, y),) = [row["geometry"]["coordinates"] for row in rows_of(done)]
    assert (round(x, 6), round(y, 1)) == (9, 49.7)
    odd = {"type": "name", "properties": {"name": "a system of ours"}}
    for path in (write(tmp_path / "b.topojson", rows), write(tmp_path / "c.topojson", rows, crs=odd)):
        with pytest.raises(Rejection, match="sourceEpsg"):
            await either.to("GeoJson", path)


async def test_numbers_that_are_none_are_missing_and_told(pipeline: Pipeline, tmp_path: Path) -> None:
    """Python writes NaN for them, which is not JSON. The infinite ones beside them stay infinite."""
    rows = (
        place(1, 2, properties={"n": float("nan"), "i": float("inf"), "s": "tab\t"}),
        place(1, 2, properties={"n": 0.5, "i": -float("inf")}),
    )
    path = write(tmp_path / "a.topojson", {"a": collection(*rows)})
    done = await pipeline.to("GeoPackage", path, source_epsg=4326)
    (table,) = readers.geopackage(done.path).values()
    assert [(row["n"], row["i"]) for row in table] == [(None, float("inf")), (0.5, -float("inf"))]
    assert "Numbers that are NaN (1) became missing." in done.output.warnings


async def test_zero_bytes_after_the_end_are_no_fault(pipeline: Pipeline, tmp_path: Path) -> None:
    """As little as a mark of the byte order at the beginning."""
    path = write(tmp_path / "a.topojson", {"a": collection(place(1, 2, properties={"n": 1}))})
    path.write_bytes(b"\xef\xbb\xbf" + path.read_bytes() + b"\0" * 100)
    done, _ = await as_geojson(pipeline, path)
    assert [row["properties"] for row in rows_of(done)] == [{"n": 1}]


async def test_a_file_that_is_cut_or_no_topology_is_refused(pipeline: Pipeline, tmp_path: Path) -> None:
    """Wherever it is cut, also if it goes on after its end."""
    whole = write(tmp_path / "whole", {"a": collection(place(1, 2, properties={"n": 1}))}).read_bytes()
    pieces = [whole[: len(whole) * part // 20] for part in range(1, 20)]
    others = [
        whole + b"}",
        whole.replace(b'"arcs"', b'"arks"'),
        whole.replace(b"GeometryCollection", b"a"),
        b"[]",
        b"1",
    ]
    for content in [*pieces, *others[:2], *others[3:]]:
        path = tmp_path / "a.topojson"
        path.write_bytes(content)
        with pytest.raises(Rejection):
            await pipeline.to("Csv", path, source_epsg=4326)


async def test_lines_that_are_used_too_often_are_refused(pipeline: Pipeline, tmp_path: Path) -> None:
    """A file of a few kilobytes may not become one of gigabytes."""
    arc = [[number / 7, 0] for number in range(2000)]
    uses = 2 * (SPARE_BYTES + MOST_REPEATED * 100_000) // (len(arc) * 20)
    path = write(tmp_path / "a.topojson", {"a": collection({"type": "MultiLineString", "arcs": [[0]] * uses})}, [arc])
    with pytest.raises(Rejection, match="share lines so often"):
        await pipeline.to("Csv", path, source_epsg=4326)
