"""Numbers of extreme size: kept, or told with the values that become others."""

import json
import re
import zipfile
from pathlib import Path

import pytest

from service.dataloss.tables import findings_of
from service.dataloss.warnings import extra_warnings
from service.formats.target import choose_target
from service.formats.values import value_warnings
from service.geojson.scan import scan, scan_bytes
from service.usecases.inspect_source import inspect_source
from tests.integration.formats import readers
from tests.integration.formats.editing import replace_in
from tests.integration.formats.pipeline import Pipeline, write_geojson
from tests.integration.formats.samples import point
from tests.integration.formats.test_verify import nothing, written
from tests.support.converters import Converters

LARGEST = 1.7976931348623157e308
"""The largest number of all, which some programs write where there is no value."""
TOLD = "1 value of 'n' beyond 1.797693134862315e308"
NUMBERS = (1.234567890123456e-10, 1.5e-20, -1e61, 1e64, 1.5)


@pytest.mark.parametrize("target", ["Csv", "Gml", "Gpx", "Kml", "Kmz", "Ods", "Xlsx"])
async def test_numbers_that_become_infinite_are_told(either: Pipeline, tmp_path: Path, target: str) -> None:
    """Their drivers write 15 digits, rounded up; a number that these suffice for is kept without a warning."""
    largest = write_geojson(tmp_path / "a.geojson", [point(1, 2, n=1e30), point(1, 2, n=-LARGEST)])
    done = await either.to(target, largest)
    direct = await either.convert_directly(largest, target, done.facts)
    for warnings in (done.output.warnings, direct.plan.warnings if direct else done.output.warnings):
        (told,) = [warning for warning in warnings if TOLD in warning]
        assert told.endswith(" The first is feature 2.")
    assert await written(either, largest, target, nothing) == ()
    large = write_geojson(tmp_path / "b.geojson", [point(1, 2, n=1.79769313486231e308), point(1, 2, n=0.5)])
    assert (await either.to(target, large)).output.warnings == ()


@pytest.mark.parametrize("target", ["Ods", "Xlsx"])
async def test_what_is_infinite_with_15_digits_is_missing_in_workbooks(
    pipeline: Pipeline, tmp_path: Path, target: str
) -> None:
    """By way of CSV, newer drivers write cells whose number is the text inf."""
    path = write_geojson(tmp_path / "a.geojson", [point(1, 2, n=LARGEST), point(1, 2, n=0.5)])
    back = await pipeline.to("Csv", (await pipeline.to(target, path)).path, source_epsg=4326)
    assert [row["n"] for row in readers.table(back.path)] == ["", "0.5"]


@pytest.mark.parametrize("number", ["1e+400", "-1.79769313486232e+308", "1.8e0308"])
async def test_numbers_without_a_value_to_the_driver_stay_texts(either: Pipeline, tmp_path: Path, number: str) -> None:
    """It takes infinite ones for texts if their exponent is long, and gave missing values for them, without a word."""
    path = tmp_path / "a.csv"
    path.write_text(f"x,y,n\n1,2,{number}\n3,4,2.5\n")
    done = await either.to("GeoJson", path, source_epsg=4326)
    assert [found["properties"] for found in readers.geojson(done.path)] == [{"n": number}, {"n": "2.5"}]
    assert done.output.warnings == ()


@pytest.mark.parametrize("target", ["FlatGeobuf", "GeoJson", "GeoJsonSeq", "GeoPackage", "MapInfo", "SpatiaLite"])
async def test_the_largest_number_is_kept_by_other_targets(pipeline: Pipeline, tmp_path: Path, target: str) -> None:
    """Those that are binary, or write all digits."""
    path = write_geojson(tmp_path / "a.geojson", [point(1, 2, n=LARGEST), point(1, 2, n=0.5)])
    source = (await pipeline.to("GeoPackage" if target == "GeoJson" else "FlatGeobuf", path)).path
    done = await pipeline.to(target, path if target == "FlatGeobuf" else source)
    back = await pipeline.to("GeoJson", done.path) if target != "GeoJson" else done
    assert [found["properties"] for found in readers.geojson(back.path)] == [{"n": LARGEST}, {"n": 0.5}]
    assert done.output.warnings == ()


@pytest.mark.parametrize("target", ["GeoPackage", "GeoJsonSeq", "Csv"])
@pytest.mark.parametrize("smallest", [-(10**18) - 1, -(10**18) + 1])
async def test_negative_numbers_of_19_digits_are_kept_or_told(
    pipeline: Pipeline, tmp_path: Path, target: str, smallest: int
) -> None:
    """Since GDAL 3.12, the driver reads these, and the integers of their columns, as reals."""
    numbers = [smallest, 2**53 + 1, 5]
    rows = [point(1, 2, n=number, o={"a": [number, str(smallest)]}, t=number or "t") for number in numbers]
    path = write_geojson(tmp_path / "a.geojson", [*rows, point(1, 2, t="t")])
    directory, source = pipeline.receive(path)
    look = await inspect_source(pipeline.engine, pipeline.run, source, choose_target(source.format, target), directory)
    told = [warning for warning in look.facts.warnings if "negative ones of 19 digits" in warning]
    done = await pipeline.to(target, path)
    back = done if target == "Csv" else await pipeline.to("Csv", done.path)
    read = readers.table(back.path)[: len(numbers)]
    kept = [row["n"] for row in read] == list(map(str, numbers))
    assert told == ([] if kept else [LONG_NEGATIVES])
    assert ([json.loads(row["o"])["a"][0] for row in read] == numbers) == kept
    assert [row["t"] for row in read] == list(map(str, numbers)) or not kept
    assert kept or smallest <= -(10**18)


LONG_NEGATIVES = (
    "4 values in n, o, t: integers beyond 53 bits may have been rounded, because this host reads "
    "columns with negative ones of 19 digits as reals. Send them as texts to keep them."
)


DIGITS = {
    "12345678901234567890.5": 1,
    "-0,00123456789012345678901": 1,
    "1.2345678901234567890123e-7": 1,
    f"{0.1:.20f}": 0,
    f"{-1e22 / 3:.30e}": 0,
    f"{2 / 3:.17f}000": 0,
    "0.10000000000000000000000": 0,
    "123456789012345.67": 0,
    "1.5": 0,
}
"""Decimals, and whether they have digits that no floating-point number has."""


@pytest.mark.parametrize("number", DIGITS)
async def test_digits_of_csv_that_no_number_holds_are_told(either: Pipeline, tmp_path: Path, number: str) -> None:
    """Not those that programs write beyond what they know; digits of coordinates do not matter."""
    path = tmp_path / "a.csv"
    place = "1.12345678901234567890123" if number == "1.5" else "1"
    path.write_text(f"x;y;n;t\n{place};2;{number};a\n3;4;;b\n", encoding="utf-8")
    done = await either.to("GeoPackage", path, source_epsg=4326)
    told = "Decimals with more digits than floating-point numbers have (1 value of 'n') lost the last ones."
    assert [warning for warning in done.output.warnings if "digits" in warning] == [told] * DIGITS[number]


async def test_numbers_that_do_not_fit_into_a_shapefile_are_told(either: Pipeline, tmp_path: Path) -> None:
    """Its driver cuts them off after 24 characters, so that they are other numbers; the largest that fit are kept."""
    kept = [1e24, -1e23, 9.9e22]
    path = write_geojson(tmp_path / "a.geojson", [point(1, 2, n=number) for number in (*kept, 1e30, -1e24)])
    done = await either.to("Shapefile", path)
    with zipfile.ZipFile(done.path) as packed:
        table = packed.read("a.dbf")
    records = table[int.from_bytes(table[8:10], "little") :].removesuffix(b"\x1a")
    written = [float(records[at + 1 : at + 25]) for at in range(0, len(records), 25)]
    assert written[:3] == kept
    assert [f"{number:.0e}" for number in written[3:]] == ["1e+23", "-1e+23"]
    (told,) = extra_warnings(*findings_of(done.plan.converted))
    assert told.startswith("2 values in n: numbers beyond 1e24 or -1e23 do not fit into a Shapefile")
    assert told.endswith(" The first is feature 4.")
    assert extra_warnings(scan_bytes(path.read_bytes())) == [told]
    assert done.output.warnings == ()


async def test_gpx_keeps_numbers_of_any_size(either: Pipeline, tmp_path: Path) -> None:
    """Its driver writes 15 decimals and at most 64 characters of a number."""
    rows = [point(1, 2, n=number) for number in NUMBERS]
    done = await either.to("Gpx", write_geojson(tmp_path / "a.geojson", rows))
    found = [row["properties"] for row in readers.geojson((await either.to("GeoJson", done.path)).path)]
    assert found == [pytest.approx({"n": number}, rel=1e-15, abs=0) for number in NUMBERS]


def test_the_first_feature_is_found_in_documents_that_are_read_in_parts(tmp_path: Path) -> None:
    """Also if features have properties of their own, or none."""
    small = [point(1, 2, n=0.5, text="x" * 1000), {**point(1, 2), "properties": None}] * 1000
    path = write_geojson(tmp_path / "a.geojson", [*small, point(1, 2, n=1e30), point(1, 2, other=LARGEST, n=LARGEST)])
    found = {field.name: (field.first_beyond_dbf, field.first_near_infinite) for field in scan(path).fields}
    assert found == {"n": (2001, 2002), "text": (0, 0), "other": (2002, 2002)}


UNHELD = {"ele": "high", "sat": 2.5, "hdop": "1.5" * 30, "time": "later", "fix": "odd", "number": "3a"}
"""Values of columns with the names of elements; those of `fix` and, in waypoints, of `number` are texts."""


async def test_gpx_keeps_values_that_its_elements_do_not_hold(either: Pipeline, tmp_path: Path) -> None:
    """Its driver writes texts in elements of numbers as 0, and leaves out those in elements of times."""
    done = await either.to("Gpx", write_geojson(tmp_path / "a.geojson", [point(1, 2, **UNHELD, vdop=1.5)]))
    (told,) = done.output.warnings
    assert told == ("Columns were renamed: 'ele' to 'ele_', 'sat' to 'sat_', 'hdop' to 'hdop_', 'time' to 'time_'.")
    found = [row["properties"] for row in readers.geojson((await either.to("GeoJson", done.path)).path)]
    renamed = {f"{name}_": UNHELD[name] for name in ("ele", "sat", "hdop", "time")}
    assert found == [renamed | {"fix": "odd", "number": "3a", "vdop": 1.5}]
    empty = write_geojson(tmp_path / "empty.geojson", [point(1, 2, ele=None, name="a")])
    (told,) = (await either.to("Gpx", empty)).output.warnings
    assert told == "GPX cannot store these columns without any value, which were left out: 'ele'."
    line = {
        "type": "Feature",
        "properties": UNHELD,
        "geometry": {"type": "LineString", "coordinates": [[1, 2], [3, 4]]},
    }
    (told,) = (await either.to("Gpx", write_geojson(tmp_path / "b.geojson", [line]))).output.warnings
    assert told == "Columns were renamed: 'number' to 'number_'."


EXTREME = {"hdop": 1.5e-20, "vdop": 1e300, "pdop": -1e-7, "magvar": -1e24, "sat": 5_000_000_000, "dgpsid": -(2**40)}
"""Numbers of elements that a driver writes with 15 decimals, at most 64 characters, or 32 bits."""


async def test_gpx_keeps_numbers_that_its_elements_cut(either: Pipeline, tmp_path: Path) -> None:
    """1.5e-20 became 0, 1e300 a number of 63 digits, and 5,000,000,000 the largest of 32 bits."""
    held = {"ageofdgpsdata": 1e-6, "geoidheight": -123456.75}
    path = write_geojson(
        tmp_path / "a.geojson", [point(1, 2, **EXTREME, **held), point(3, 4, **dict.fromkeys(EXTREME, 1))]
    )
    done = await either.to("Gpx", path)
    (told,) = done.output.warnings
    assert told == "Columns were renamed: " + ", ".join(f"'{name}' to '{name}_'" for name in EXTREME) + "."
    text = done.path.read_text()
    for name, number in EXTREME.items():
        (first, _) = re.findall(rf"<ogr:{name}_>([^<]*)<", text)
        assert float(first) == number
    found = [row["properties"] for row in readers.geojson((await either.to("GeoJson", done.path)).path)]
    assert isinstance(found[0], dict)
    assert {name: found[0][name] for name in held} == held


@pytest.mark.parametrize(("name", "value"), [("ele", "high"), ("ele", 7.5), ("ELE", 7.5)])
async def test_gpx_keeps_elevations_beside_a_column_of_that_name(
    either: Pipeline, tmp_path: Path, name: str, value: object
) -> None:
    """The column gets another name, and the element holds the third coordinate."""
    raised = {"type": "Feature", "properties": {name: value}, "geometry": {"type": "Point", "coordinates": [1, 2, 5]}}
    done = await either.to("Gpx", write_geojson(tmp_path / "a.geojson", [raised]))
    assert done.output.warnings == (f"Columns were renamed: '{name}' to '{name}_'.",)
    assert b"<ele>5" in done.path.read_bytes()
    assert f">{value}</ogr:{name}_>".encode() in done.path.read_bytes()


async def test_gpx_holds_the_times_of_points(converters: Converters, tmp_path: Path) -> None:
    """They are told only where its elements have none, as those of lines."""
    times = {"time": "2024-05-06T07:08:09Z", "at": "2024-05-06T07:08:09Z"}
    path = write_geojson(tmp_path / "a.geojson", [point(1, 2, **times)])
    done = await Pipeline(converters).to("Gpx", path)
    assert done.output.warnings == ("GPX has no dates and times; 1 value of 'at' became texts.",)
    assert b"<time>2024-05-06T07:08:09Z</time>" in done.path.read_bytes()


@pytest.mark.parametrize("target", ["Kml", "Kmz"])
async def test_integers_that_become_texts_of_kml_are_told(either: Pipeline, tmp_path: Path, target: str) -> None:
    """Columns that hold one beyond 32 bits are declared as texts, without a word."""
    large = write_geojson(tmp_path / "a.geojson", [point(1, 2, n=1 << 31, o=-(1 << 31)), point(1, 2, n=7, o=5)])
    done = await either.to(target, large)
    direct = await either.convert_directly(large, target, scan(large).facts("a"))
    assert direct is not None
    for warnings in (done.output.warnings, direct.plan.warnings):
        (told,) = warnings
        assert told == (
            f"{target.upper()} is written without integers beyond 32 bits as a type; 2 values of 'n', in columns with "
            "such numbers, became texts, and those of other columns of integers may have."
        )
    small = write_geojson(tmp_path / "b.geojson", [point(1, 2, n=(1 << 31) - 1, o=-(1 << 31))])
    assert (await either.to(target, small)).output.warnings == ()


LONG_WHOLE = (0.5, 1234567890123456, 1234567890123450, -123456789012345678.0, 1.5e19, 2.0**53)
"""Numbers of a column of decimals, of which three are whole and not the same with 15 digits."""


@pytest.mark.parametrize("target", ["Csv", "Gml", "Kml", "Kmz", "Ods", "Xlsx", "GeoPackage", "GeoJsonSeq"])
async def test_long_whole_numbers_among_decimals_are_kept_or_told(
    either: Pipeline, tmp_path: Path, target: str
) -> None:
    """Drivers of texts write 15 digits of any decimal number, which makes another one of an identifier."""
    path = write_geojson(tmp_path / "a.geojson", [point(1, 2, n=number) for number in LONG_WHOLE])
    done = await either.to(target, path)
    told = [words for words in done.output.warnings if "15 digits of a decimal number" in words]
    directory, source = either.receive(path)
    look = await inspect_source(either.engine, either.run, source, done.plan.target, directory)
    scanned = [words for words in value_warnings(done.plan.target, look.facts.layers) if "15 digits" in words]
    if target in {"GeoPackage", "GeoJsonSeq"}:
        assert (told, scanned) == ([], [])
        back = (await either.to("GeoJson", done.path)).path if target == "GeoPackage" else None
        assert back is None or [found["properties"] for found in readers.geojson(back)] == [
            {"n": number} for number in LONG_WHOLE
        ]
        return
    assert ["; 3 values of 'n' that are longer" in words for words in told + scanned] == [True, True]
    assert told[0].endswith(" The first is feature 2.")


CELLS = {
    "Xlsx": (rb'<c r="B4">\s*<v>88\.25</v>\s*</c>', b'<c r="B4" t="inlineStr"><is><t>none</t></is></c>'),
    "Ods": (
        rb'<table:table-cell[^>]* office:value="88\.250*"[^>]*/>',
        b'<table:table-cell office:value-type="string"><text:p>none</text:p></table:table-cell>',
    ),
}
"""How a workbook stores a number in its fourth row, and what stores a text there."""


@pytest.mark.parametrize("kind", CELLS)
async def test_numbers_above_a_text_that_lose_digits_are_told(either: Pipeline, tmp_path: Path, kind: str) -> None:
    """The driver makes texts of 15 digits of them, and reads those below the text as they are written."""
    rows = [point(1, 2, n=number) for number in (0.5, 77.25, 88.25, 77.25)]
    sheet = (await either.to(kind, write_geojson(tmp_path / "a.geojson", rows))).path
    mixed = tmp_path / f"mixed{sheet.suffix}"
    replace_in(sheet, mixed, *CELLS[kind])
    texts, told = {}, {}
    for number in ("77.25", "-12345678901234567"):
        path = tmp_path / f"{number}{sheet.suffix}"
        replace_in(mixed, path, rb"77\.250*", number.encode())
        done = await either.to("GeoJson", path, source_epsg=4326)
        texts[number] = [found["properties"] for found in readers.geojson(done.path)]
        told[number] = [warning for warning in done.output.warnings if "texts of numbers with 15 digits" in warning]
    assert texts == {
        "77.25": [{"n": text} for text in ("0.5", "77.25", "none", "77.25")],
        "-12345678901234567": [{"n": text} for text in ("0.5", "-1.23456789012346e+16", "none", "-12345678901234567")],
    }
    assert told.pop("77.25") == []
    [[warning]] = told.values()
    assert "; 1 value of 'n' became" in warning
    assert warning.endswith(" The first is feature 2.")
