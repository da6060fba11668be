"""Parquet files without geometry of their own, as pandas, polars and DuckDB write them."""

import base64
import datetime as dt
import json
import math
import struct
import uuid
from decimal import Decimal
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyarrow.parquet import encryption

from service.errors import Rejection
from tests.integration.formats import readers
from tests.integration.formats.pipeline import Pipeline

PLACES = {"lat": [47.3, -33.0], "lon": [8.5, 151.0]}
VALUES = {
    "i8": pa.array([-128, None], pa.int8()),
    "u8": pa.array([255, None], pa.uint8()),
    "i16": pa.array([-32768, None], pa.int16()),
    "u16": pa.array([65535, None], pa.uint16()),
    "u32": pa.array([4294967295, None], pa.uint32()),
    "f16": pa.array([np.float16(0.5), None], pa.float16()),
    "f32": pa.array([0.1, None], pa.float32()),
    "decimal": pa.array([Decimal("47.3"), None], pa.decimal128(4, 1)),
}


@pytest.mark.parametrize("places", [PLACES, {}])
async def test_numbers_of_all_sizes_stay_numbers(
    pipeline: Pipeline, tmp_path: Path, places: dict[str, list[float]]
) -> None:
    """Small integers and numbers of single precision arrive as the numbers that they are, also beside coordinates."""
    pq.write_table(pa.table({**places, **VALUES}), tmp_path / "a.parquet")
    done = await pipeline.to("GeoJson", tmp_path / "a.parquet", source_epsg=4326 if places else None)
    first, second = (feature["properties"] for feature in readers.geojson(done.path))
    assert json.loads(json.dumps(first)) == {
        "i8": -128, "u8": 255, "i16": -32768, "u16": 65535, "u32": 4294967295, "f16": 0.5, "f32": 0.1, "decimal": 47.3
    }  # fmt: skip
    assert second == dict.fromkeys(VALUES)
    assert done.facts.warnings == ()


@pytest.mark.parametrize("kind", [pa.string(), pa.large_string(), pa.dictionary(pa.int8(), pa.string())])
async def test_empty_texts_of_tables_that_become_missing_are_counted(
    pipeline: Pipeline, tmp_path: Path, kind: pa.DataType
) -> None:
    """A warning names the columns with empty texts, and how many there are."""
    texts = pa.array(["", "x"]).cast(kind)
    pq.write_table(pa.table({**PLACES, "text": texts}), tmp_path / "a.parquet")
    done = await pipeline.to("GeoPackage", tmp_path / "a.parquet", source_epsg=4326)
    ((_, rows),) = readers.geopackage(done.path).items()
    assert [row["text"] for row in rows] == [None, "x"]
    (told,) = done.facts.warnings
    assert "1 value of 'text' became missing" in told


@pytest.mark.parametrize("kind", [pa.float16(), pa.float32(), pa.float64()])
async def test_infinite_numbers_of_tables_that_become_missing_are_counted(
    pipeline: Pipeline, tmp_path: Path, kind: pa.DataType
) -> None:
    """They became empty without a warning."""
    numbers = pa.array([float("inf"), 1.5]).cast(kind)
    pq.write_table(pa.table({**PLACES, "number": numbers}), tmp_path / "a.parquet")
    done = await pipeline.to("GeoPackage", tmp_path / "a.parquet", source_epsg=4326)
    ((_, rows),) = readers.geopackage(done.path).items()
    assert [row["number"] for row in rows] == [None, 1.5]
    (told,) = done.facts.warnings
    assert "1 value of 'number' became missing" in told


@pytest.mark.parametrize("kind", [pa.string(), pa.large_string(), pa.dictionary(pa.int8(), pa.string())])
@pytest.mark.parametrize("has_geometry", [True, False])
async def test_nan_and_zero_bytes_are_told(
    pipeline: Pipeline, tmp_path: Path, kind: pa.DataType, *, has_geometry: bool
) -> None:
    """NaN became missing and a text ended at its first zero byte, without a warning."""
    columns = {"text": pa.array(["a\0b", "x"]).cast(kind), "number": pa.array([float("nan"), 1.5])}
    if has_geometry:
        declared(tmp_path / "a.parquet", "geoarrow.wkb", pa.array([POINT, None]), None, **columns)
    else:
        pq.write_table(pa.table({**PLACES, **columns}), tmp_path / "a.parquet")
    done = await pipeline.to("GeoPackage", tmp_path / "a.parquet", source_epsg=4326)
    ((_, rows),) = readers.geopackage(done.path).items()
    assert [(row["text"], row["number"]) for row in rows] == [("ab", None), ("x", 1.5)]
    nan, zeros = done.facts.warnings
    assert nan == "Numbers that are NaN (1 value of 'number') became missing."
    assert zeros == "Zero bytes (NUL) within texts (1 value of 'text') were left out."


NAN, INFINITE = float("nan"), float("inf")
NUMBERS_IN_LISTS = {
    "list": pa.array([[1.5, NAN, INFINITE], [2.5]]),
    "nested": pa.array([[{"a": [NAN]}], None]),
    "structure": pa.array([{"a": -INFINITE, "b": "NaN"}, {"a": 2.5, "b": "Infinity"}]),
    "map": pa.array([[("k", NAN)], [("k", 1.0)]], pa.map_(pa.string(), pa.float64())),
}


@pytest.mark.parametrize("has_geometry", [True, False])
async def test_numbers_in_lists_that_json_does_not_have_become_missing_and_are_told(
    pipeline: Pipeline, tmp_path: Path, *, has_geometry: bool
) -> None:
    """Strict programs refuse a whole file of GeoJSON with NaN."""
    if has_geometry:
        declared(tmp_path / "a.parquet", "geoarrow.wkb", pa.array([POINT, None]), None, **NUMBERS_IN_LISTS)
    else:
        pq.write_table(pa.table({**PLACES, **NUMBERS_IN_LISTS}), tmp_path / "a.parquet")
    done = await pipeline.to("GeoJson", tmp_path / "a.parquet", source_epsg=4326)
    text = done.path.read_text()
    first, second = (each["properties"] for each in json.loads(text, parse_constant=pytest.fail)["features"])
    assert first["list"] == [1.5, None, None]
    assert first["nested"] == [{"a": [None]}]
    assert [first["structure"], second["structure"]] == [{"a": None, "b": "NaN"}, {"a": 2.5, "b": "Infinity"}]
    nan, infinite = (words for words in done.facts.warnings if "became missing" in words)
    assert nan == "Numbers that are NaN (3 values of 'list', 'nested', 'map') became missing."
    assert infinite.startswith("Infinite numbers in lists and structures (2 values of 'list', 'structure')")


POINT = struct.pack("<BIdd", 1, 1, 8.5, 47.25)
PLACED = pa.array([{"x": 8.5, "y": 47.25}, None], pa.struct([("x", pa.float64()), ("y", pa.float64())]))
LINE = pa.array([[{"x": 8.5, "y": 47.25}, {"x": 9, "y": 48}], None], pa.list_(PLACED.type))
PAIRS = pa.list_(pa.float64(), 2)
AREA = [[[8.0, 47.0], [9.0, 47.0], [9.0, 48.0], [8.0, 47.0]]]
DECLARED = {
    "geoarrow.point": (PLACED, "POINT (8.5 47.25)"),
    "geoarrow.linestring": (LINE, "LINESTRING (8.5 47.25,9 48)"),
    "geoarrow.wkb": (pa.array([POINT, None]), "POINT (8.5 47.25)"),
}


def declared(path: Path, name: str, values: pa.Array, crs: object, **others: pa.Array) -> Path:
    """A file whose column `place` the Arrow schema alone declares as geometry."""
    said = json.dumps({} if crs is None else {"crs": crs})
    place = pa.field("place", values.type, metadata={"ARROW:extension:name": name, "ARROW:extension:metadata": said})
    schema = pa.schema(
        [pa.field("n", pa.int64()), place, *(pa.field(name, each.type) for name, each in others.items())]
    )
    pq.write_table(pa.table([pa.array([1, 2]), values, *others.values()], schema=schema), path)
    return path


@pytest.mark.parametrize("name", DECLARED)
@pytest.mark.parametrize("crs", ["EPSG:4326", "OGC:CRS84", {"id": {"authority": "OGC", "code": "CRS84"}}])
async def test_geometries_that_only_the_arrow_schema_declares_are_read(
    pipeline: Pipeline, tmp_path: Path, name: str, crs: object
) -> None:
    """They became texts of JSON, or were asked for their system although the file names it."""
    values, wkt = DECLARED[name]
    done = await pipeline.to("SpatiaLite", declared(tmp_path / "a.parquet", name, values, crs))
    back = await pipeline.to("Csv", done.path)
    rows = readers.table(back.path)
    shown = [f"POINT ({row['X']} {row['Y']})" if "X" in row else row["WKT"] for row in rows]
    assert [row["n"] for row in rows] == ["1", "2"]
    assert shown[0] == wkt
    assert done.facts.layers[0].null_geometries == 1


@pytest.mark.parametrize("name", DECLARED)
async def test_declared_geometries_without_a_system_are_in_an_unknown_one(
    pipeline: Pipeline, tmp_path: Path, name: str
) -> None:
    """Unlike those of GeoParquet, whose default is longitude and latitude."""
    path = declared(tmp_path / "a.parquet", name, DECLARED[name][0], None)
    with pytest.raises(Rejection, match="does not record the coordinate system"):
        await pipeline.to("Csv", path)


async def test_values_that_are_no_geometries_are_told(pipeline: Pipeline, tmp_path: Path) -> None:
    """They become missing, as those that are."""
    whole = struct.pack("<BIdd", 1, 1, 8.5, 47.25)
    values = pa.array([whole, b"\x01\x02", b"POINT (1 2)", None, b""], pa.binary())
    schema = {"geo": json.dumps({"primary_column": "geometry", "columns": {"geometry": {"encoding": "WKB"}}})}
    pq.write_table(pa.table({"geometry": values}).replace_schema_metadata(schema), tmp_path / "a.parquet")
    done = await pipeline.to("GeoPackage", tmp_path / "a.parquet")
    assert done.facts.layers[0].null_geometries == 4
    assert sum("2 values of 'geometry'" in warning for warning in done.output.warnings) == 1


LISTED = {
    "geoarrow.point": (pa.array([[8.5, 47.25], None], PAIRS), "POINT (8.5 47.25)"),
    "geoarrow.polygon": (pa.array([AREA, None], pa.list_(pa.list_(PAIRS))), "POLYGON ((8 47,9 47,9 48,8 47))"),
    "geoarrow.linestring": (
        pa.array([[[8.5, 47.25, 1.5], [9.0, 48.0, 2.0]], None], pa.list_(pa.list_(pa.float64(), 3))),
        "LINESTRING Z (8.5 47.25 1.5,9 48 2)",
    ),
}


@pytest.mark.parametrize("name", LISTED)
async def test_declared_geometries_may_be_lists_of_numbers(pipeline: Pipeline, tmp_path: Path, name: str) -> None:
    """As GeoPandas writes them; they became texts of JSON, with a word about JSON alone."""
    values, wkt = LISTED[name]
    done = await pipeline.to("SpatiaLite", declared(tmp_path / "a.parquet", name, values, "EPSG:4326"))
    back = await pipeline.to("Csv", done.path)
    rows = readers.table(back.path)
    assert (f"POINT ({rows[0]['X']} {rows[0]['Y']})" if "X" in rows[0] else rows[0]["WKT"]) == wkt
    assert done.facts.layers[0].null_geometries == 1


async def test_structures_that_hold_no_coordinates_stay_data(pipeline: Pipeline, tmp_path: Path) -> None:
    """Whatever they are declared as."""
    values = pa.array([{"a": 1}], pa.struct([("a", pa.int64())]))
    schema = pa.schema([pa.field("place", values.type, metadata={"ARROW:extension:name": "geoarrow.point"})])
    pq.write_table(pa.table([values], schema=schema), tmp_path / "a.parquet")
    done = await pipeline.to("Csv", tmp_path / "a.parquet")
    assert readers.table(done.path)[0]["place"] == '{"a": 1}'


def with_intervals(path: Path, columns: dict[str, pa.Array], *periods: tuple[int, int, int]) -> Path:
    """A file with a column `iv` of intervals, as DuckDB writes it: bytes, and their description with more in it."""
    values = pa.array([struct.pack("<III", *period) for period in periods], pa.binary(12))
    pq.write_table(pa.table({**columns, "iv": values}), path, store_schema=False)
    content = path.read_bytes()
    (size,) = struct.unpack("<I", content[-8:-4])
    footer = content[-8 - size : -8]
    bare, interval = b"\x18\x02iv\x00", b"\x18\x02iv\x25\x2a\x00"  # the name; then also a converted type, 21
    assert footer.count(bare) == 1
    described = footer.replace(bare, interval)
    path.write_bytes(content[: -8 - size] + described + struct.pack("<I", len(described)) + b"PAR1")
    return path


@pytest.mark.parametrize("place", [{}, {"place": DECLARED["geoarrow.wkb"][0]}])
async def test_intervals_become_periods_of_time(pipeline: Pipeline, tmp_path: Path, place: dict[str, pa.Array]) -> None:
    """Some were taken for geometries in WKB, the others became hexadecimal digits."""
    path = with_intervals(tmp_path / "a.parquet", place, (1, 0, 0), (0, 10, 4_000_000_500))
    done = await pipeline.to("Csv", path, source_epsg=4326 if place else None)
    assert [row["iv"] for row in readers.table(done.path)] == ["P1M", "P10DT4000000.5S"]
    assert done.facts.warnings == ()


async def test_binary_values_of_tables_become_texts_and_are_told(pipeline: Pipeline, tmp_path: Path) -> None:
    """Without a word before; geometries are no data."""
    table = {"b": [b"\x00\xff", None], "place": [POINT, POINT]}
    pq.write_table(pa.table(table), tmp_path / "a.parquet")
    done = await pipeline.to("GeoPackage", tmp_path / "a.parquet", source_epsg=4326)
    ((_, rows),) = readers.geopackage(done.path).items()
    assert [row["b"] for row in rows] == ["00FF", None]
    assert [text for text in done.facts.warnings if "Binary" in text] == [
        "Binary values (1 value of 'b') became hexadecimal texts."
    ]


SPELLED = "Decimals and binary values in lists and structures ({}) became texts, such as 1.10 and 00FF: JSON has none."
MOVED = "Times in zones that have names, or with offsets that are not quarters of an hour ({}), were converted to UTC."
HEXADECIMAL = "Binary values ({}) became hexadecimal texts."
FOREIGN = "Texts that are not UTF-8, which the format requires ({}), were read as Windows-1252."
REPEATED = (
    "Structures with several members of one name ({}) got a number behind all of these names but the first, such as "
    "name_2."
)
ONE, TWO = "1 value of 'v'", "2 values of 'v'"
MONEY, NOON = Decimal("1.10"), dt.datetime(2024, 7, 1, 12, tzinfo=dt.UTC)
BERLIN = pa.timestamp("us", "Europe/Berlin")
UNUSUAL: dict[str, tuple[pa.Array, object, str, str]] = {
    "decimals in a list": (pa.array([[MONEY, MONEY], None], pa.list_(pa.decimal128(9, 2))), ["1.10"] * 2, SPELLED, TWO),
    "bytes in a structure": (
        pa.array([{"a": b"\0\xff"}, None], pa.struct({"a": pa.binary()})),
        {"a": "00FF"},
        SPELLED,
        ONE,
    ),
    "decimals in a map": (
        pa.array([[("k", MONEY)], None], pa.map_("string", pa.decimal128(9, 2))),
        [["k", "1.10"]],
        SPELLED,
        ONE,
    ),
    "times in a list": (pa.array([[NOON], None], pa.list_(BERLIN)), ["2024-07-01 12:00:00.000000+0000"], MOVED, ONE),
    "a view of times": (
        pa.array([[NOON], None], pa.list_view(BERLIN)),
        ["2024-07-01 12:00:00.000000+0000"],
        MOVED,
        ONE,
    ),
    "a view of bytes": (pa.array([b"\0\xff", None], pa.binary_view()), "00FF", HEXADECIMAL, ONE),
    "listed bytes": (pa.array([b"a", b"a"]).dictionary_encode(), "61", HEXADECIMAL, TWO),
    "nanoseconds in a list": (
        pa.array([[1_500_000_001], None], pa.list_(pa.duration("ns"))),
        ["PT1.500000001S"],
        "",
        "",
    ),
    "long durations": (
        pa.array([{"a": 2**60}, None], pa.struct({"a": pa.duration("s")})),
        {"a": f"PT{2**60}S"},
        "",
        "",
    ),
    "members of one name": (
        pa.StructArray.from_arrays([pa.array([1, None]), pa.array(["x", "y"]), pa.array([0.5, 1])], ["m", "m_2", "m"]),
        {"m": 1, "m_2": "x", "m_3": 0.5},
        REPEATED,
        TWO,
    ),
    "members of one name in a list": (
        pa.ListArray.from_arrays([0, 1, 1], pa.StructArray.from_arrays([pa.array([1]), pa.array([[2]])], ["m", "m"])),
        [{"m": 1, "m_2": [2]}],
        REPEATED,
        TWO,
    ),
    "other texts": (pa.array([b"Stra\xdfe", "Straße".encode()]).view(pa.string()), "Straße", FOREIGN, ONE),
}
"""Columns as few programs write them, their first value, and what is told of how many values."""


@pytest.mark.parametrize("kind", UNUSUAL)
async def test_values_of_unusual_types_are_kept_or_told(pipeline: Pipeline, tmp_path: Path, kind: str) -> None:
    """They were refused as damage, changed without a word, or made the result no valid JSON."""
    values, first, told, count = UNUSUAL[kind]
    pq.write_table(pa.table({"n": [1, 2], "v": values}), tmp_path / "a.parquet")
    done = await pipeline.to("GeoJson", tmp_path / "a.parquet")
    assert json.loads(done.path.read_text())["features"][0]["properties"]["v"] == first
    assert done.facts.warnings == ((told.format(count),) if told else ())


async def test_texts_beside_geometries_that_are_not_utf_8_are_told(pipeline: Pipeline, tmp_path: Path) -> None:
    """They were copied as they were, so that no program could read the result."""
    values, first, told, count = UNUSUAL["other texts"]
    pq.write_table(pa.table({"v": values, "place": pa.array([POINT, None])}), tmp_path / "a.parquet")
    done = await pipeline.to("GeoJson", tmp_path / "a.parquet", source_epsg=4326)
    assert readers.geojson(done.path)[0]["properties"] == {"v": first}
    assert told.format(count) in done.facts.warnings


class Keys(encryption.KmsClient):  # type: ignore[misc]  # its module has no types
    """Keys that are no secret."""

    def wrap_key(self, key_bytes: bytes, _: str) -> str:
        """The key as a text."""
        return base64.b64encode(key_bytes).decode()


@pytest.mark.parametrize("plaintext_footer", [False, True])
async def test_encrypted_files_are_refused_as_such(
    pipeline: Pipeline, tmp_path: Path, *, plaintext_footer: bool
) -> None:
    """They were called damaged, whether the footer or only a column is encrypted."""
    keys = encryption.EncryptionConfiguration("a", column_keys={"b": ["v"]}, plaintext_footer=plaintext_footer)
    made = encryption.CryptoFactory(lambda _: Keys()).file_encryption_properties(encryption.KmsConnectionConfig(), keys)
    pq.write_table(pa.table({"n": [1, 2], "v": ["a", "b"]}), tmp_path / "a.parquet", encryption_properties=made)
    with pytest.raises(Rejection, match=r"The GeoParquet file, or a part of it, is encrypted\. Save it without"):
        await pipeline.to("GeoJson", tmp_path / "a.parquet")


async def test_identifiers_are_written_as_usual(pipeline: Pipeline, tmp_path: Path) -> None:
    """UUIDs became hexadecimal digits alone."""
    one = uuid.UUID("1f01cf6f-a62a-46a5-a654-078a294a0bdc")
    pq.write_table(pa.table({"u": pa.array([one.bytes, None], pa.uuid()), "n": [1, 2]}), tmp_path / "a.parquet")
    done = await pipeline.to("Csv", tmp_path / "a.parquet")
    assert [row["u"] for row in readers.table(done.path)] == [str(one), ""]
    assert done.output.warnings == ()


@pytest.mark.parametrize(
    "measured", ["MULTILINESTRING M ((1 2 30,4 5 60),(1 2 9,4 5 9))", "LINESTRING ZM (1 2 3 90,4 50 6 70)"]
)
async def test_measures_are_no_elevations(pipeline: Pipeline, tmp_path: Path, measured: str) -> None:
    """Beside geometries with elevations, whose range the metadata holds."""
    (tmp_path / "a.wkt").write_text(f"{measured}\nPOINT Z (1 2 3)\nPOINT Z (1 2 6)\n", encoding="utf-8")
    done = await pipeline.to("GeoParquet", tmp_path / "a.wkt", source_epsg=4326)
    column = json.loads((pq.ParquetFile(done.path).metadata.metadata or {})[b"geo"])["columns"]["geometry"]
    assert column["bbox"][2::3] == [3.0, 6.0]


@pytest.mark.parametrize(
    ("measured", "codes"),
    [
        ("LINESTRING ZM (1 2 3 9,4 5 6 9)", {1001, 1002}),
        ("MULTIPOINT ZM ((1 2 3 9),(4 5 6 9))", {1001, 1004}),
        ("GEOMETRYCOLLECTION M (POLYGON M ((0 0 9,0 1 9,1 1 9,0 0 9)),LINESTRING M (1 2 9,4 5 9))", {1001, 7}),
    ],
)
async def test_measures_are_left_out_beside_other_geometries(
    pipeline: Pipeline, tmp_path: Path, measured: str, codes: set[int]
) -> None:
    """GeoParquet forbids them, and a warning says so; all other numbers stay."""
    (tmp_path / "a.wkt").write_text(f"{measured}\nPOINT Z (1 2 3)\n", encoding="utf-8")
    done = await pipeline.to("GeoParquet", tmp_path / "a.wkt", source_epsg=4326)
    geometries = pq.ParquetFile(done.path).read()["geometry"].to_pylist()
    assert {struct.unpack_from("<I", geometry, 1)[0] for geometry in geometries} == codes
    plain = measured.replace("ZM", "Z").replace(" M", "").replace(" 9", "")
    (tmp_path / "b.wkt").write_text(f"{plain}\nPOINT Z (1 2 3)\n", encoding="utf-8")
    same = await pipeline.to("GeoParquet", tmp_path / "b.wkt", source_epsg=4326)
    assert geometries == pq.ParquetFile(same.path).read()["geometry"].to_pylist()
    assert "GeoParquet stores no measures (M); they were left out." in done.output.warnings


async def test_surfaces_in_collections_become_polygons(pipeline: Pipeline, tmp_path: Path) -> None:
    """Also those that may have curves and have none."""
    surface = "(((0 0 1,0 1 1,1 1 1,0 0 1)))"
    found = []
    for kind in ("MULTISURFACE", "MULTIPOLYGON"):
        (tmp_path / "a.wkt").write_text(f"GEOMETRYCOLLECTION Z ({kind} Z {surface})\n", encoding="utf-8")
        done = await pipeline.to("GeoParquet", tmp_path / "a.wkt", source_epsg=4326)
        found.append(pq.ParquetFile(done.path).read()["geometry"].to_pylist())
    assert found[0] == found[1]


def with_coordinate(path: Path, number: float) -> Path:
    """A file of two points, the second at this longitude."""
    places = [struct.pack("<BIdd", 1, 1, x, 2) for x in (1, number)]
    column = {"encoding": "WKB", "geometry_types": ["Point"]}
    geo = {"version": "1.0.0", "primary_column": "geometry", "columns": {"geometry": column}}
    content = pa.table({"a": [1, 2], "geometry": places}).replace_schema_metadata({"geo": json.dumps(geo)})
    pq.write_table(content, path)
    return path


@pytest.mark.parametrize("number", [math.inf, -math.inf, math.nan])
async def test_geometries_whose_coordinates_are_no_numbers_become_missing(
    pipeline: Pipeline, tmp_path: Path, number: float
) -> None:
    """Not all targets hold such coordinates, nor do all releases of GDAL write them; the other features are kept."""
    done = await pipeline.to("GeoPackage", with_coordinate(tmp_path / "a.parquet", number))
    ((_, rows),) = readers.geopackage(done.path).items()
    assert [row["geom"] is None for row in rows] == [False, True]
    (told,) = done.output.warnings
    assert told.endswith("the geometry of 1 feature became missing. The first is feature 2.")
