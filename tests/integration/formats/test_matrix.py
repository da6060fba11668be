"""Every input into every output, and every kind of data into every output, checked by independent readers."""

import json
from collections.abc import Iterable, Mapping
from itertools import product
from pathlib import Path

import msgspec
import pytest
from _pytest.mark import ParameterSet

from service.errors import Rejection
from service.formats.format import Format, reading_of
from service.formats.registry import OUTPUT_NAMES
from service.formats.table import FORMATS
from tests.integration.formats.pipeline import Converted, Pipeline, write_geojson
from tests.integration.formats.readers import geojson, read_content
from tests.integration.formats.samples import ESRIJSON, NAMES, SAMPLES, TOPOJSON
from tests.support.converters import Converters

INPUTS = {row.token: row for row in FORMATS if row.reading is not None}
ONLY_READ = {"topojson": TOPOJSON, "esrijson": ESRIJSON}
MAKERS = {token: row.name or {"sqlite": "SpatiaLite"}[token] for token, row in INPUTS.items() if token not in ONLY_READ}
"""Which output makes the input of a format: its own, but for formats that are only read."""
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
NOT_EXACT = {"Dxf", "Wkt", "MapInfo", "OpenFileGdb"}
"""Formats without attributes, on a grid, without missing values, or of Multi geometries only; see the losses."""
ROUND_TRIP_OUTPUTS = [
    row.name for row in FORMATS if row.reading and row.name is not None and row.name not in {"GeoJson", *NOT_EXACT}
]
DIRECT = {("points", name) for name in ("Shapefile", "GeoPackage", "Kml", "GeoJsonSeq")}
"""The plain files that make up most requests, for which the direct way must be taken."""
SHARES_MIXED = {"Shapefile"}
"""Formats out of which a mixed dataset comes as several layers."""
KML = {"Kml", "Kmz"}
"""Formats that hold dates with times as text in the converter's spelling."""
SAME_TYPE = {"Shapefile", "GeoPackage", "FlatGeobuf", "Gpx"}
"""Formats that store the lines and polygons of a dataset under one type."""
INT32 = 2**31 - 1
"""KML has no wider numbers, so they are text; extensions of GPX are read no wider."""
NO_BOOLEANS = {"Shapefile", "Csv", "Gpx", *KML}
NO_TIME_ZONES = {"Ods", "Xlsx"}
KEEPS_NO_NAMES = {"Dxf", "Wkt"}
NAMELESS = {"dxf", "wkt"}
NO_POINTS_READ = {"GeoPackage", "SpatiaLite", "Dxf"}
"""Where the reader reads no coordinates; the way back does."""
GRID = {"MapInfo": 2e-7}
"""The grid of formats that round coordinates, in degrees."""


class Attempt(msgspec.Struct, frozen=True):
    """The outcome of one conversion."""

    done: Converted | None = None
    refusal: str = ""


class Matrix:
    """Conversions, each made once for all tests that use it: of samples through a work file, of pairs in a session."""

    def __init__(self, converters: Converters, root: Path) -> None:
        self._filed = Pipeline(converters)
        self._held = Pipeline(converters, has_sessions=True)
        self._files = {name: write_geojson(root / f"{name}.geojson", rows) for name, rows in SAMPLES.items()}
        self._only_read = {token: write_json(root / f"{token}.json", document) for token, document in ONLY_READ.items()}
        self._made: dict[tuple[str, str], Attempt] = {}

    async def sample(self, sample: str, output: str) -> Attempt:
        """Convert a sample."""
        if (sample, output) not in self._made:
            self._made[sample, output] = await self._attempt(self._filed, self._files[sample], output)
        return self._made[sample, output]

    async def pair(self, source: str, output: str) -> Attempt:
        """Convert the points from the format `source`."""
        path = self._only_read[source] if source in ONLY_READ else await self._made_by(MAKERS[source])
        return await self._attempt(self._held, path, output, crs_of(INPUTS[source]))

    async def _made_by(self, maker: str) -> Path:
        return self._files["points"] if maker == "GeoJson" else (await self.done("points", maker)).path

    async def back(self, sample: str, output: str) -> Attempt:
        """Convert the output of a sample back to GeoJSON."""
        done = await self.done(sample, output)
        wishes = crs_of(done.plan.target) if done.facts.is_spatial else {}
        return await self._attempt(self._held, done.path, "GeoJson", wishes)

    async def directly(self, sample: str, output: str) -> Converted | None:
        """Convert a sample without the work file; None if the plan does not allow it."""
        staged = await self.done(sample, output)
        return await self._filed.convert_directly(self._files[sample], output, staged.facts)

    async def done(self, sample: str, output: str) -> Converted:
        """Convert a sample successfully."""
        attempt = await self.sample(sample, output)
        assert attempt.done is not None, attempt.refusal
        return attempt.done

    @staticmethod
    async def _attempt(way: Pipeline, path: Path, output: str, wishes: Mapping[str, object] | None = None) -> Attempt:
        try:
            return Attempt(await way.to(output, path, **(wishes or {})))
        except Rejection as rejection:
            return Attempt(refusal=rejection.message)


def write_json(path: Path, document: object) -> Path:
    """Write a document that no output produces; return its path."""
    path.write_text(json.dumps(document), encoding="utf-8")
    return path


def crs_of(row: Format) -> Mapping[str, object]:
    """The coordinate system, if the file does not state it."""
    return {} if reading_of(row).records_crs else {"source_epsg": 4326}


@pytest.fixture(scope="module")
def matrix(converters: Converters, tmp_path_factory: pytest.TempPathFactory) -> Matrix:
    return Matrix(converters, tmp_path_factory.mktemp("matrix"))


def cells(pairs: Iterable[tuple[str, str]], makers: Mapping[str, str] | None = None) -> list[ParameterSet]:
    """Pairs as parameters; tests that share conversions run in the same process."""
    return [
        pytest.param(
            start, output, marks=pytest.mark.xdist_group(output if makers is None else makers.get(start, start))
        )
        for start, output in pairs
    ]


CONVERTED = cells(pair for pair in product(SAMPLES, OUTPUTS) if pair not in REFUSED)


@pytest.mark.parametrize(("sample", "output"), CONVERTED)
async def test_every_kind_of_data_into_every_output(matrix: Matrix, sample: str, output: str) -> None:
    """Nothing is missing."""
    done = await matrix.done(sample, output)
    rows = SAMPLES[sample]
    found = read_content(done.plan.target.token, done.path)
    assert found.features == COUNTS.get((sample, output), len(rows))
    assert done.facts.feature_count == len(rows)
    assert done.output.output_epsg == (4326 if done.facts.is_spatial else None)
    if found.features != len(rows):
        assert done.output.warnings, "what is left out or split is told"


@pytest.mark.parametrize(("sample", "output"), cells(sorted(REFUSED)))
async def test_what_a_format_cannot_hold_is_refused(matrix: Matrix, sample: str, output: str) -> None:
    """The message says what to choose instead."""
    attempt = await matrix.sample(sample, output)
    assert attempt.done is None
    assert "Choose" in attempt.refusal


@pytest.mark.parametrize(
    ("source", "output"),
    cells((pair for pair in product(INPUTS, OUTPUT_NAMES) if pair[1] != INPUTS[pair[0]].name), MAKERS),
)
async def test_every_input_into_every_output(matrix: Matrix, source: str, output: str) -> None:
    """Features, text in all languages and coordinates survive every pair that can hold them."""
    attempt = await matrix.pair(source, output)
    assert attempt.done is not None, attempt.refusal
    found = read_content(attempt.done.plan.target.token, attempt.done.path)
    expected = [tuple(row["geometry"]["coordinates"]) for row in SAMPLES["points"]]  # type: ignore[index]  # a geometry is a mapping
    assert found.features == len(NAMES)
    if found.points is not None and output not in NO_POINTS_READ:
        near = 1e-6 if source == "mapinfo" else GRID.get(output, 1e-9)
        places = [place[:2] for place in sorted(found.points)]
        assert places == [pytest.approx(place, abs=near) for place in sorted(expected)]
    if source not in NAMELESS and output not in KEEPS_NO_NAMES and found.names is not None:
        assert_names(source, found.names, attempt.done)


def assert_names(source: str, names: list[str], done: Converted) -> None:
    """The names are there; KML calls the column Name, so case-sensitive targets hold it under that name."""
    if source in {"kml", "kmz"}:
        assert "Name" in {field.name for layer in done.facts.layers for field in layer.fields}
        return
    assert sorted(names) == sorted(NAMES)


@pytest.mark.parametrize(
    ("sample", "output"), cells(pair for pair in product(ROUND_TRIPS, ROUND_TRIP_OUTPUTS) if pair not in REFUSED)
)
async def test_there_and_back(matrix: Matrix, sample: str, output: str) -> None:
    """GeoJSON through a format and back has the same features, within the format's documented limits."""
    attempt = await matrix.back(sample, output)
    if sample == "mixed" and output in SHARES_MIXED:
        assert "layers" in attempt.refusal
        return
    assert attempt.done is not None, attempt.refusal
    found = [limited(row, output) for row in geojson(attempt.done.path)]
    wanted = [limited(row, output) for row in SAMPLES[sample] if row["geometry"] or (sample, output) not in COUNTS]
    assert sorted(found, key=str) == sorted(wanted, key=str)


def limited(row: Mapping[str, object], output: str) -> tuple[object, dict[str, object]]:
    """A feature in which values that `output` cannot distinguish are equal."""
    properties = row["properties"]
    assert isinstance(properties, dict)
    told = {("name" if name == "Name" else name): plain(value, output) for name, value in properties.items()}
    if output == "Gpx":
        told = {name: value for name, value in told.items() if name != "ele" and value is not None}
        told |= {"code": 501} if "code" in told else {}
    return geometry_of(row["geometry"], output), told


def plain(value: object, output: str) -> object:
    """A value in the form that `output` holds."""
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
    """A geometry; GPX holds every line as a track of segments, FlatGeobuf one type per file."""
    if not isinstance(place, dict) or "coordinates" not in place:
        return json.dumps(place, sort_keys=True, default=float).replace(".0", "")
    kind, coordinates = place["type"], place["coordinates"]
    if output in SAME_TYPE and kind in {"LineString", "Polygon"}:
        kind, coordinates = f"Multi{kind}", [coordinates]
    return json.dumps([kind, coordinates]).replace(".0", "")


@pytest.mark.parametrize(("sample", "output"), CONVERTED)
async def test_the_direct_way_gives_what_the_work_file_gives(matrix: Matrix, sample: str, output: str) -> None:
    """If the plan allows it."""
    direct, staged = await matrix.directly(sample, output), await matrix.done(sample, output)
    if direct is None:
        assert (sample, output) not in DIRECT
        return
    token = direct.plan.target.token
    assert read_content(token, direct.path) == read_content(token, staged.path)
    assert direct.output.warnings == staged.output.warnings
    assert direct.output.output_epsg == staged.output.output_epsg
