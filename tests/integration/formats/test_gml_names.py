"""Columns of GML whose names differ only in case, which its driver renames without a word."""

import tracemalloc
from pathlib import Path

import pytest

from service.formats.gml_values import TOLD
from tests.integration.formats import readers
from tests.integration.formats.pipeline import Pipeline

START = '<a:C xmlns:a="http://a" xmlns:gml="http://www.opengis.net/gml">'
FEATURE = "<gml:featureMember><a:{0}>{1}</a:{0}></gml:featureMember>"
NAMES = {
    "one of two": ({"t": "<a:Name>1</a:Name><a:name>2</a:name>"}, [("name", "name_")]),
    "two of three": (
        {"t": "<a:Name>1</a:Name><a:name>2</a:name><a:NAME>3</a:NAME>"},
        [("name", "name_"), ("NAME", "NAME__")],
    ),
    "beside a layer with a third": (
        {"s": "<a:NAME>1</a:NAME>", "t": "<a:Name>1</a:Name><a:name>2</a:name>"},
        [("name", "name_")],
    ),
    "nothing but what is added": ({"t": "<a:_>1</a:_><a:__>2</a:__>"}, []),
    "a name of its own": ({"t": "<a:Name>1</a:Name><a:name_>2</a:name_><a:end_>3</a:end_>"}, []),
}


@pytest.mark.parametrize("case", NAMES)
async def test_columns_that_the_driver_renames_are_told(either: Pipeline, tmp_path: Path, case: str) -> None:
    """Each with both of its names; columns whose names end so in the file are not."""
    layers, renamed = NAMES[case]
    path = tmp_path / "a.gml"
    features = "".join(FEATURE.format(name, values) for name, values in layers.items())
    path.write_text(f"{START}{features}</a:C>", encoding="utf-8")
    done = await either.to("GeoPackage", path)
    told = [f"The column {old!r} has the name of another, ignoring case, and became {new!r}." for old, new in renamed]
    assert [warning for warning in done.output.warnings if "ignoring case" in warning] == told
    assert {new for _, new in renamed} <= {field.name for layer in done.facts.layers for field in layer.fields}


async def test_long_names_take_no_more_memory_than_they_have_letters(either: Pipeline, tmp_path: Path) -> None:
    """Those of an upload of 80 KB, each with all that it begins with, took 80 MB, and of 8 MB many gigabytes."""
    path = tmp_path / "a.gml"
    values = "".join(f"<a:{name}>1</a:{name}>" for name in (f"n{number}".ljust(4000, "_") for number in range(10)))
    path.write_text(f"{START}{FEATURE.format('t', values)}</a:C>", encoding="utf-8")
    tracemalloc.start()
    try:
        done = await either.to("GeoPackage", path)
        assert tracemalloc.get_traced_memory()[1] < 20 << 20
    finally:
        tracemalloc.stop()
    assert len(done.facts.layers[0].fields) == 10


@pytest.mark.parametrize("count", [1, 5000], ids=["few", "with a shorter text"])
async def test_values_named_like_geometries_are_read(either: Pipeline, tmp_path: Path, count: int) -> None:
    """The driver left them out, in boundedBy without a word, and took them for geometries."""
    path = tmp_path / "a.gml"
    place = "<a:at><gml:Point srsName='EPSG:3857'><gml:coordinates>{},2</gml:coordinates></gml:Point></a:at>"
    features = "".join(
        FEATURE.format("t", f"<a:Surface>s{number}</a:Surface>{place.format(number)}<a:boundedBy>b</a:boundedBy>")
        for number in range(count)
    )
    path.write_text(f"{START}{features}</a:C>", encoding="utf-8")
    done = await either.to("GeoPackage", path)
    ((_, rows),) = readers.geopackage(done.path).items()
    assert [(row["Surface_"], row["boundedBy_"]) for row in rows] == [(f"s{number}", "b") for number in range(count)]
    assert all(row["geom"] for row in rows)
    told = TOLD.format("'Surface_', 'boundedBy_'")
    assert [warning for warning in done.output.warnings if "geometr" in warning] == [told]
