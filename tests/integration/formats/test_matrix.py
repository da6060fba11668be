"""Every input into every output, and every kind of data into every output, read by readers of their own."""

import asyncio
import json
from collections.abc import Mapping
from pathlib import Path

import msgspec
import pytest

from service.engine.capabilities import Capabilities
from service.errors import Rejection
from service.formats.registry import FORMATS, OUTPUT_NAMES
from tests.integration.formats.pipeline import Converted, Pipeline, write_geojson
from tests.integration.formats.readers import geojson, read_content
from tests.integration.formats.samples import NAMES, SAMPLES

# All in one process, so that what they look at is converted once.
pytestmark = [pytest.mark.timeout(900), pytest.mark.xdist_group("matrix")]

AT_ONCE = 3
INPUTS = [row for row in FORMATS if row.reading is not None]
WRITES_FOR_INPUT = {"sqlite": "SpatiaLite"}
"""Which output makes the input of formats that are only read."""
OUTPUTS = [name for name in OUTPUT_NAMES if name != "GeoJson"]
GEOMETRY_ONLY = {"Gpx", "FlatGeobuf", "Dxf", "Wkt"}
REFUSED = {
    *(("polygons", name) for name in ("Gpx",)),
    ("empty", "MapInfo"),
    *((sample, "Gpx") for sample in ("mixed", "polygons_3d")),
    *((sample, name) for sample in ("table", "empty") for name in GEOMETRY_ONLY),
}
COUNTS = {
    **{("nulls", name): 1 for name in ("Gpx", "FlatGeobuf", "Dxf")},
    **{("mixed", name): 5 for name in ("Shapefile", "Dxf", "MapInfo", "OpenFileGdb")},
    **{("lines", name): 3 for name in ("Dxf",)},
    **{("polygons", name): 3 for name in ("Dxf",)},
    **{("multipoints", name): 2 for name in ("Dxf", "Gpx", "MapInfo")},
}
"""How many features there are where it is not as many as in the sample."""
ROUND_TRIPS = ("points", "lines", "polygons", "mixed", "points_3d", "lines_3d", "codes", "dates", "table", "nulls")
ROUND_TRIP_OUTPUTS = [row.name for row in FORMATS if row.reading and row.name not in {None, "GeoJson", "Dxf"}]
SHARES_MIXED = {"Shapefile"}
"""Formats out of which a mixed dataset comes as several layers."""
KML = {"Kml", "Kmz"}
AS_TEXT = {"Shapefile", "Gpx", *KML}
"""Formats that hold dates with times as text in the converter's spelling."""
SAME_TYPE = {"Shapefile", "GeoPackage", "FlatGeobuf", "Gpx"}
"""Formats that store the lines and polygons of a dataset under one type."""
INT32 = 2**31 - 1
"""KML has no wider numbers, so they are text; extensions of GPX are read no wider."""
NO_BOOLEANS = {"Shapefile", "Csv", "Gpx", *KML}
NO_TIME_ZONES = {"Ods", "Xlsx"}
KEEPS_NO_NAMES = {"Dxf", "Wkt"}
NO_POINTS_READ = {"GeoPackage", "SpatiaLite", "Dxf"}
"""Where the reader reads no coordinates; the way back does."""
GRID = {"MapInfo": 2e-7}
"""The grid of formats that round coordinates, in degrees."""


class Attempt(msgspec.Struct, frozen=True):
    """What came of one conversion."""

    done: Converted | None = None
    refusal: str = ""


class Matrix:
    """Conversions by the pipeline, several at once, each made once."""

    def __init__(self, pipeline: Pipeline, root: Path) -> None:
        self._pipeline = pipeline
        self._places = asyncio.Semaphore(AT_ONCE)
        self._root = root

    async def by_sample(self) -> dict[tuple[str, str], Attempt]:
        files = {name: write_geojson(self._root / f"{name}.geojson", rows) for name, rows in SAMPLES.items()}
        keys = [(sample, output) for sample in files for output in OUTPUTS]
        done = await asyncio.gather(*(self._attempt(files[sample], output) for sample, output in keys))
        return dict(zip(keys, done, strict=True))

    async def by_input(self, made: Mapping[tuple[str, str], Attempt]) -> dict[tuple[str, str], Attempt]:
        keys, runs = [], []
        for row in INPUTS:
            path = self._input(row.name or WRITES_FOR_INPUT[row.token], made)
            wishes = {} if row.reading is None or row.reading.records_crs else {"source_epsg": 4326}
            for output in OUTPUT_NAMES:
                if output != row.name:
                    keys.append((row.token, output))
                    runs.append(self._attempt(path, output, wishes))
        return dict(zip(keys, await asyncio.gather(*runs), strict=True))

    def _input(self, name: str, made: Mapping[tuple[str, str], Attempt]) -> Path:
        if name == "GeoJson":
            return self._root / "points.geojson"
        done = made["points", name].done
        assert done is not None
        return done.path

    async def directly(self, made: Mapping[tuple[str, str], Attempt]) -> dict[tuple[str, str], Converted]:
        keys = [(sample, output) for (sample, output), attempt in made.items() if attempt.done is not None]
        done = await asyncio.gather(*(self._attempt_directly(*key, made[key].done) for key in keys))
        return {key: found for key, found in zip(keys, done, strict=True) if found is not None}

    async def there_and_back(self, made: Mapping[tuple[str, str], Attempt]) -> dict[tuple[str, str], Attempt]:
        keys = [
            (sample, output) for sample in ROUND_TRIPS for output in ROUND_TRIP_OUTPUTS if made[sample, output].done
        ]
        runs = []
        for key in keys:
            done = made[key].done
            assert done is not None
            reading = done.plan.target.reading
            is_table = key[0] == "table"  # has no coordinates that could be in a system
            wishes = {} if reading is None or reading.records_crs or is_table else {"source_epsg": 4326}
            runs.append(self._attempt(done.path, "GeoJson", wishes))
        return dict(zip(keys, await asyncio.gather(*runs), strict=True))

    async def _attempt_directly(self, sample: str, output: str, staged: Converted | None) -> Converted | None:
        assert staged is not None
        async with self._places:
            return await self._pipeline.convert_directly(self._root / f"{sample}.geojson", output, staged.facts)

    async def _attempt(self, path: Path, output: str, wishes: Mapping[str, object] | None = None) -> Attempt:
        async with self._places:
            try:
                return Attempt(await self._pipeline.to(output, path, **(wishes or {})))
            except Rejection as rejection:
                return Attempt(refusal=rejection.message)


class Results(msgspec.Struct, frozen=True):
    """All conversions of this module."""

    by_sample: dict[tuple[str, str], Attempt]
    by_input: dict[tuple[str, str], Attempt]
    there_and_back: dict[tuple[str, str], Attempt]
    directly: dict[tuple[str, str], Converted]


@pytest.fixture(scope="module")
def results(host: Capabilities, tmp_path_factory: pytest.TempPathFactory) -> Results:
    root = tmp_path_factory.mktemp("matrix")
    (root / "jobs").mkdir()
    matrix = Matrix(Pipeline(host, root / "jobs"), root)

    async def convert_all() -> Results:
        by_sample = await matrix.by_sample()
        return Results(
            by_sample,
            await matrix.by_input(by_sample),
            await matrix.there_and_back(by_sample),
            await matrix.directly(by_sample),
        )

    return asyncio.run(convert_all())


@pytest.mark.parametrize("output", OUTPUTS)
@pytest.mark.parametrize("sample", SAMPLES)
def test_every_kind_of_data_into_every_output(results: Results, sample: str, output: str) -> None:
    """It is all there, or refused in words that name the format and what to choose instead."""
    attempt = results.by_sample[sample, output]
    if (sample, output) in REFUSED:
        assert attempt.done is None
        assert "Choose" in attempt.refusal
        return
    assert attempt.done is not None, attempt.refusal
    rows = SAMPLES[sample]
    found = read_content(attempt.done.plan.target.token, attempt.done.path)
    assert found.features == COUNTS.get((sample, output), len(rows))
    assert attempt.done.facts.feature_count == len(rows)
    assert attempt.done.output.output_epsg == (4326 if attempt.done.facts.is_spatial else None)
    if found.features != len(rows):
        assert attempt.done.output.warnings, "what is left out or split is told"


@pytest.mark.parametrize(
    ("source", "output"), [(row.token, name) for row in INPUTS for name in OUTPUT_NAMES if name != row.name]
)
def test_every_input_into_every_output(results: Results, source: str, output: str) -> None:
    """Features, letters of all languages and coordinates survive every pair that can hold them."""
    attempt = results.by_input[source, output]
    assert attempt.done is not None, attempt.refusal
    found = read_content(attempt.done.plan.target.token, attempt.done.path)
    expected = [tuple(row["geometry"]["coordinates"]) for row in SAMPLES["points"]]  # type: ignore[index]  # a geometry is a mapping
    assert found.features == len(NAMES)
    if found.points is not None and output not in NO_POINTS_READ:
        near = 1e-6 if source == "mapinfo" else GRID.get(output, 1e-9)
        places = [place[:2] for place in sorted(found.points)]
        assert places == [pytest.approx(place, abs=near) for place in sorted(expected)]
    if source != "dxf" and output not in KEEPS_NO_NAMES and found.names is not None:
        assert_names(source, found.names, attempt.done)


def assert_names(source: str, names: list[str], done: Converted) -> None:
    """The names are there; KML calls the column Name, so targets that tell case apart hold it under that name."""
    if source in {"kml", "kmz"}:
        assert "Name" in {field.name for layer in done.facts.layers for field in layer.fields}
        return
    assert sorted(names) == sorted(NAMES)


@pytest.mark.parametrize("output", ROUND_TRIP_OUTPUTS)
@pytest.mark.parametrize("sample", ROUND_TRIPS)
def test_there_and_back(results: Results, sample: str, output: str) -> None:
    """GeoJSON through a format and back gives the same features, as far as the format's documented limits allow."""
    if (sample, output) in REFUSED:
        return
    attempt = results.there_and_back[sample, output]
    if sample == "mixed" and output in SHARES_MIXED:
        assert "layers" in attempt.refusal
        return
    assert attempt.done is not None, attempt.refusal
    found = [limited(row, output) for row in geojson(attempt.done.path)]
    wanted = [limited(row, output) for row in SAMPLES[sample] if row["geometry"] or (sample, output) not in COUNTS]
    assert sorted(found, key=str) == sorted(wanted, key=str)


def limited(row: Mapping[str, object], output: str) -> tuple[object, dict[str, object]]:
    """A feature with what `output` cannot tell apart made equal."""
    properties = row["properties"]
    assert isinstance(properties, dict)
    told = {("name" if name == "Name" else name): plain(value, output) for name, value in properties.items()}
    if output == "Gpx":
        told = {name: value for name, value in told.items() if name != "ele" and value is not None}
        told |= {"code": 501} if "code" in told else {}
    return geometry_of(row["geometry"], output), told


def plain(value: object, output: str) -> object:
    """A value as `output` holds it."""
    if isinstance(value, bool) and output in NO_BOOLEANS:
        return int(value)
    if isinstance(value, int) and abs(value) > INT32 and output in {*KML, "Gpx"}:
        return str(value) if output in KML else INT32
    if not isinstance(value, str) or value[4:5] not in {"-", "/"}:
        return value
    text = value.replace("/", "-").replace(" ", "T").replace("+00", "Z")
    if output in NO_TIME_ZONES:
        return text.removesuffix("Z")
    return text.removesuffix("T00:00:00") if output == "FlatGeobuf" else text


def geometry_of(place: object, output: str) -> object:
    """A geometry; GPX holds every line as a track of segments, FlatGeobuf one type a file."""
    if not isinstance(place, dict) or "coordinates" not in place:
        return json.dumps(place, sort_keys=True, default=float).replace(".0", "")
    kind, coordinates = place["type"], place["coordinates"]
    if output in SAME_TYPE and kind in {"LineString", "Polygon"}:
        kind, coordinates = f"Multi{kind}", [coordinates]
    return json.dumps([kind, coordinates]).replace(".0", "")


@pytest.mark.parametrize("output", OUTPUTS)
@pytest.mark.parametrize("sample", SAMPLES)
def test_the_direct_way_gives_what_the_work_file_gives(results: Results, sample: str, output: str) -> None:
    """Where it may be taken at all."""
    if (sample, output) not in results.directly:
        return
    direct, staged = results.directly[sample, output], results.by_sample[sample, output].done
    assert staged is not None
    token = direct.plan.target.token
    assert read_content(token, direct.path) == read_content(token, staged.path)
    assert direct.output.warnings == staged.output.warnings
    assert direct.output.output_epsg == staged.output.output_epsg


def test_the_direct_way_is_taken(results: Results) -> None:
    """For the plain files that make up most requests."""
    assert {("points", "Shapefile"), ("points", "GeoPackage"), ("points", "Kml"), ("points", "GeoJsonSeq")} <= set(
        results.directly
    )
