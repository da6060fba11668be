"""Third-party test data, converted, and compared with what another GDAL reads from source and result.

pyogrio's wheel brings a GDAL of its own, some minor versions younger than the system's, and files to test it with.
Whatever differs between the two has to be told in `warnings`.
"""

import math
import zipfile
from collections.abc import Mapping
from pathlib import Path

import msgspec
import numpy as np
import pyogrio
import pytest

from tests.integration.formats.pipeline import Converted, Pipeline

FIXTURES = Path(pyogrio.__file__).parent / "tests" / "fixtures"
SHAPEFILE = "naturalearth_lowres"
SOURCES = ("test_gpkg_nulls.gpkg",)
TARGETS = (
    "GeoJson",
    "GeoPackage",
    "FlatGeobuf",
    "Shapefile",
    "Kml",
    "Kmz",
    "Gml",
    "MapInfo",
    "OpenFileGdb",
    "SpatiaLite",
)
FOLDER = """<Folder><name>{0}</name><Placemark>
<ExtendedData><Data name="{0}"><value>{0}</value></Data></ExtendedData>
<Point><coordinates>1,2</coordinates></Point></Placemark></Folder>"""
DIGITS = 9
"""To how many digits numbers are compared: formats of text round at the fifteenth, a loss shows earlier."""
LISTS = (".tab", ".shp", ".gdb")


class Read(msgspec.Struct, frozen=True):
    """What the other GDAL reads: numbers of features and geometries, and each column's values in order."""

    features: int
    geometries: int
    columns: Mapping[str, list[str]]


def source_file(name: str, folder: Path) -> Path:
    """The shipped file in the form that a client would upload."""
    path = FIXTURES / name
    if path.suffix:
        return path
    packed = folder / f"{name}.zip"
    with zipfile.ZipFile(packed, "w") as archive:
        for part in sorted(path.iterdir()):
            archive.write(part, part.name)
    return packed


def read(path: Path) -> Read:
    """All layers of the file at `path`, packed or not."""
    features = geometries = 0
    columns: dict[str, list[str]] = {}
    for place in _places(path):
        for layer, _ in pyogrio.list_layers(place):
            meta, _, shapes, values = pyogrio.raw.read(place, layer=layer, force_2d=True)
            counts = [len(column) for column in values] or [0 if shapes is None else len(shapes)]
            features += counts[0]
            geometries += 0 if shapes is None else sum(shape is not None for shape in shapes)
            for name, column in zip(meta["fields"], values, strict=True):
                columns.setdefault(name, []).extend(sorted(map(_plain, column)))
    return Read(features, geometries, columns)


def _places(path: Path) -> list[str]:
    if path.suffix != ".zip":
        return [str(path)]
    with zipfile.ZipFile(path) as archive:
        names = {part for name in archive.namelist() for part in (name, name.split("/")[0])}
    return [f"/vsizip/{path}/{name}" for name in sorted(names) if name.endswith(LISTS)]


def _plain(value: object) -> str:
    """A value in a normal form: equal if the meaning is equal, and empty if missing."""
    if value is None or value == "":
        return ""
    if isinstance(value, np.datetime64):
        return "" if np.isnat(value) else str(value.astype("datetime64[ms]")).removesuffix("T00:00:00.000")
    if isinstance(value, bool | np.bool_):
        return str(float(value))
    try:
        number = float(str(value))
    except ValueError:
        return str(value).rstrip()
    return "" if math.isnan(number) else f"{number:.{DIGITS}g}"


def told(done: Converted, *words: str) -> bool:
    """Whether a warning contains any of `words`."""
    return any(word in warning for warning in done.output.warnings for word in words)


@pytest.mark.filterwarnings("ignore:The 'generic' unit for NumPy:DeprecationWarning")  # pyogrio's, by a newer NumPy
@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("name", SOURCES)
async def test_what_another_reader_finds_is_the_same_or_told(
    pipeline: Pipeline, tmp_path: Path, name: str, target: str
) -> None:
    """Features, geometries and every column's values."""
    path = source_file(name, tmp_path)
    if (target == "Shapefile" and name == SHAPEFILE) or (target == "GeoPackage" and path.suffix == ".gpkg"):
        target = "GeoJsonSeq"
    done = await pipeline.to(target, path)
    source, result = read(path), read(done.path)
    assert source.features > 0
    assert result.features == source.features or told(done, "split", "left out", "were put into")
    assert result.geometries == source.geometries or told(done, "split", "left out", "were put into")
    written = {column.name: column.written for dataset in done.plan.datasets for column in dataset.columns}
    by_name = {column.casefold(): values for column, values in result.columns.items()}
    for column, values in source.columns.items():
        if any(values):
            found = by_name.get(written[column].casefold())
            assert found == values or told(done, repr(column)), (column, done.output.warnings)


@pytest.mark.filterwarnings("ignore:The 'generic' unit for NumPy:DeprecationWarning")  # pyogrio's, by a newer NumPy
@pytest.mark.parametrize("layers", [["a"], ["a", "b", "c"]])
async def test_another_reader_finds_the_columns_of_each_layer_of_a_kmz(
    pipeline: Pipeline, tmp_path: Path, layers: list[str]
) -> None:
    """It looks for their schemas in no other place."""
    path = tmp_path / "a.kml"
    folders = "".join(map(FOLDER.format, layers))
    path.write_text(f'<kml xmlns="http://www.opengis.net/kml/2.2"><Document>{folders}</Document></kml>')
    done = await pipeline.to("Kmz", path)
    found = {layer: pyogrio.raw.read(done.path, layer=layer) for layer, _ in pyogrio.list_layers(done.path)}
    assert {layer: values[-1].tolist() for layer, (_, _, _, values) in found.items()} == {
        layer: [layer] for layer in layers
    }
