"""Every input into every output, and every kind of data into every output, read by readers of their own."""

import asyncio
from collections.abc import Mapping
from pathlib import Path

import msgspec
import pytest

from service.engine.capabilities import Capabilities
from service.errors import Rejection
from service.formats.registry import FORMATS, OUTPUT_NAMES
from tests.integration.formats.pipeline import Converted, Pipeline, write_geojson
from tests.integration.formats.readers import read_content
from tests.integration.formats.samples import NAMES, SAMPLES

pytestmark = pytest.mark.timeout(900)

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


@pytest.fixture(scope="module")
def results(host: Capabilities, tmp_path_factory: pytest.TempPathFactory) -> Results:
    root = tmp_path_factory.mktemp("matrix")
    (root / "jobs").mkdir()
    matrix = Matrix(Pipeline(host, root / "jobs"), root)

    async def convert_all() -> Results:
        by_sample = await matrix.by_sample()
        return Results(by_sample, await matrix.by_input(by_sample))

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
    expected = [tuple(row["geometry"]["coordinates"]) for row in SAMPLES["points"]]  # type: ignore[index]
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
