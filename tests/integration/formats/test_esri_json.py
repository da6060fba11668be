"""Attributes, systems and measures of Esri JSON that its driver does not read as they are."""

import json
from collections.abc import Mapping
from pathlib import Path

import pytest

from tests.integration.formats import readers
from tests.integration.formats.pipeline import Pipeline

LARGE = 4_000_000_000
KEPT: Mapping[tuple[str, ...], tuple[object, ...]] = {
    ("Double", "abc", "1.5", "2"): ("abc", "1.5", "2"),
    ("Double", "NaN", "", "1.5"): (None, None, 1.5),
    ("Integer", "", "7", "nan"): (None, 7, None),
    ("Double", "1_000", " 2.5e3\n", "-inf"): ("1_000", " 2.5e3\n", "-inf"),
    ("Integer", "\u0661\u0662", "007", "+8"): ("\u0661\u0662", "007", "+8"),
    ("Integer", " 007", "+8", "-1"): (7, 8, -1),
    ("", "00501", "10115", "+8"): ("00501", "10115", "+8"),
}
"""Declared types, "" for none, and texts in their columns, and what is read."""
NUMBERS: Mapping[str, tuple[tuple[object, ...], tuple[object, ...]]] = {
    "Integer": ((1, LARGE, 2.5), (1, LARGE, 2.5)),
    "SmallInteger": ((1, 40000, -70000), (1, 40000, -70000)),
    "OID": ((1, LARGE, 3), (1, LARGE, 3)),
    "Double": ((0.5, (1 << 53) + 1, 1), ("0.5", str((1 << 53) + 1), "1")),
    "BigInteger": ((1, LARGE, -3), (1, LARGE, -3)),
    "Single": ((0.1, (1 << 25) + 1, "NaN"), (0.1, (1 << 25) + 1, None)),
    "": ((1, "a", {"b": 2}), ("1", "a", {"b": 2})),
}
"""By declared type, "" for none: values, and what is read."""


def written(
    path: Path, places: list[object], kind: str = "Integer", values: tuple[object, ...] = (), **more: object
) -> Path:
    """A file with the `values` of a column `v` of a type, beside another column, at `places`."""
    fields = [{"name": "n", "type": "esriFieldTypeString"}]
    fields += [{"name": "v", "type": f"esriFieldType{kind}"}] if kind and values else []
    rows = [{"n": "x", **({"v": values[at]} if values else {})} for at in range(len(places))]
    features = [{"attributes": row, "geometry": place} for row, place in zip(rows, places, strict=True)]
    document = {"geometryType": "esriGeometryPoint", "spatialReference": {"wkid": 4326}, "fields": fields}
    path.write_text(json.dumps({**document, **more, "features": features}))
    return path


def point(x: float, y: float, **more: object) -> dict[str, object]:
    return {"x": x, "y": y, **more}


@pytest.mark.parametrize("column", KEPT)
async def test_texts_in_columns_of_numbers_are_kept_or_missing(
    either: Pipeline, tmp_path: Path, column: tuple[str, ...]
) -> None:
    """Each became 0, without a word; servers write NaN for a missing number."""
    kind, *texts = column
    done = await either.to("GeoJson", written(tmp_path / "a.json", [point(1, 2)] * 3, kind, tuple(texts)))
    assert [row["properties"] for row in readers.geojson(done.path)] == [
        {"n": "x", "v": value} for value in KEPT[column]
    ]
    told = [warning.partition(" became")[0] for warning in done.output.warnings]
    assert told == (
        ["Columns with values of other types than the file declares, or integers beyond 53 bits (1 value of 'v'),"]
        if kind and isinstance(KEPT[column][0], str)
        else []
    )


@pytest.mark.parametrize("kind", NUMBERS)
async def test_attributes_are_kept_whatever_the_file_declares(either: Pipeline, tmp_path: Path, kind: str) -> None:
    """Those that it does not declare were left out, and large numbers became the largest of the type."""
    values, read = NUMBERS[kind]
    done = await either.to("GeoJson", written(tmp_path / "a.json", [point(1, 2)] * 3, kind, values))
    assert [row["properties"]["v"] for row in readers.geojson(done.path)] == list(read)  # type: ignore[index]  # JSON of a test
    assert done.plan.datasets[0].name == "a"


@pytest.mark.parametrize("kind", [["esriFieldTypeDouble"], {"type": 1}, 7])
async def test_a_type_that_is_no_text_is_unknown(pipeline: Pipeline, tmp_path: Path, kind: object) -> None:
    """A list ended the program with an error."""
    fields = [{"name": "v", "type": kind}]
    source = written(tmp_path / "a.json", [point(1, 2)], values=(1,), fields=fields)
    assert (await pipeline.to("GeoJson", source)).facts.feature_count == 1


@pytest.mark.parametrize(
    ("of_file", "own", "count"),
    [
        ({"wkid": 4326}, {"wkid": 4258}, 1),
        ({"wkid": 102100, "latestWkid": 3857}, {"wkid": 3857}, 0),
        ({"wkid": 4326}, {"wkid": 4326, "latestWkid": 4326}, 0),
    ],
)
async def test_another_system_of_a_geometry_than_that_of_the_file_is_told(
    either: Pipeline, tmp_path: Path, of_file: object, own: object, count: int
) -> None:
    """Its coordinates are taken for those of the file's system."""
    places: list[object] = [point(1, 2), None, point(1, 2, spatialReference=own)]
    done = await either.to("GeoPackage", written(tmp_path / "a.json", places, spatialReference=of_file))
    told = [warning for warning in done.output.warnings if "(spatialReference)" in warning]
    assert len(told) == count
    assert all(warning.startswith("1 feature") and warning.endswith("first is feature 3.") for warning in told)


async def test_texts_that_end_at_a_zero_byte_are_told(either: Pipeline, tmp_path: Path) -> None:
    """The driver keeps what is before it; an escape that is written out is none."""
    values = ("a\0b", "\0", r"c\u0000d")
    done = await either.to("GeoJson", written(tmp_path / "a.json", [point(1, 2)] * 3, "String", values))
    expected = [{"n": "x", "v": value} for value in ("a", "", values[2])]
    assert [row["properties"] for row in readers.geojson(done.path)] == expected
    assert done.output.warnings == ("Texts with a NUL character (2 values of 'v') were cut off there.",)


NO_M, NO_Z = "GeoJSON stores no measures (M)", "Elevations that are infinite or not numbers (NaN)"


@pytest.mark.parametrize(
    ("path", "read", "told"),
    [
        ([[0, 1, 2, 3], [4, 5, 6, None]], [[0, 1, 2], [4, 5, 6]], {NO_M}),
        ([[0, 1, 2, "NaN"], [4, 5, 6, "NaN"]], [[0, 1, 2], [4, 5, 6]], set()),
        ([[0, 1, None, None], [4, 5, None, None]], [[0, 1], [4, 5]], set()),
        ([[0, 1, 2, 3], [4, 5, "NaN", 6]], [[0, 1, 2], [4, 5, 0]], {NO_M, NO_Z}),
    ],
)
async def test_a_line_is_read_without_numbers_that_are_missing(
    either: Pipeline, tmp_path: Path, path: object, read: object, told: set[str]
) -> None:
    """Servers write null or NaN where it has no measure; the whole line was lost, without a word."""
    line = written(tmp_path / "a.json", [{"paths": [path]}], geometryType="esriGeometryPolyline", hasZ=True, hasM=True)
    done = await either.to("GeoJson", line)
    (row,) = readers.geojson(done.path)
    assert row["geometry"] == {"type": "LineString", "coordinates": read}
    assert {start for start in (NO_M, NO_Z) for warning in done.output.warnings if warning.startswith(start)} == told
    assert len(done.output.warnings) == len(told)


@pytest.mark.parametrize("m", [4, None, "NaN"])
async def test_measures_of_points_with_elevations_are_told(either: Pipeline, tmp_path: Path, m: object) -> None:
    """They are not read."""
    path = written(tmp_path / "a.json", [point(1, 2, z=3, m=m)], hasZ=True, hasM=True)
    done = await either.to("GeoPackage", path)
    assert [warning.startswith("Measures (M) were left out") for warning in done.output.warnings] == [True] * (m == 4)


@pytest.mark.parametrize("rows", [1, 300, 30_000])
async def test_features_may_precede_what_describes_them(either: Pipeline, tmp_path: Path, rows: int) -> None:
    """As in the files of ArcGIS API for Python, which were called damaged, or no Esri JSON, unless they were short."""
    features = [{"geometry": point(-96, 37), "attributes": {"n": number}} for number in range(rows)]
    system, kind = {"wkid": 102003}, "esriGeometryPoint"
    document = {"features": features, "objectIdFieldName": "n", "spatialReference": system, "geometryType": kind}
    (tmp_path / "a.json").write_text(json.dumps(document))
    done = await either.to("Csv", tmp_path / "a.json", keep_coordinates=True)
    found = readers.table(done.path)
    assert [row["n"] for row in found] == [str(number) for number in range(rows)]
    assert done.facts.layers[0].crs.name == "ESRI:102003" or done.facts.layers[0].crs.known
