"""Strategies for GeoJSON documents with everything that a Shapefile can lose."""

import json
from typing import Any

from hypothesis import strategies as st

from tests.support.geojson import feature, gathered, geometry

NAMES = (
    "name",
    "Name",
    "population_2020",
    "population_2021",
    "POPULATION_X",
    "populati_1",
    "exactly_10",
    "a:b",
    "trailing ",
    "naïveté_é",
    "人口密度統計",
    "id",
    "",
    "line\nbreak",
)

numbers = st.one_of(
    st.integers(-100, 100),
    st.integers(-(10**19), 10**19),
    st.sampled_from([2**53 + 1, 10**18 - 1, 10**18, -(10**17), -(10**18) + 1, 2**63, -(2**63) - 1, 10**30]),
)
reals = st.one_of(
    st.floats(-1e6, 1e6, allow_nan=False).map(lambda number: round(number, 6)),
    st.sampled_from([0.1, 1e22, 1e23, 1e300, -1e300, 1e-7, 1e-20, 123456789012.125, -0.0]),
)
letters = st.sampled_from(["x", "é", "日", "😀", "x ", "/", '"', "\\", "\n"])
halves = (
    st.lists(st.sampled_from(["\ud83d", "\ude00", "é", "😀", "x", "\\", "\n"]), min_size=1, max_size=5)
    .map("".join)
    .map(lambda text: str(json.loads(json.dumps(text))))
)
"""Texts with halves of letters in them, as no other text has; halves that meet are a letter."""
texts = st.one_of(
    st.text(st.characters(exclude_categories=["Cs"], max_codepoint=0xFFFF), max_size=12),
    st.builds(
        lambda letter, count, end: letter * count + end, letters, st.integers(60, 300), st.sampled_from(["", "é"])
    ),
    st.sampled_from(["", " ", "x ", " x", "a\0b", "true", "12", "null"]),
    halves,
)
moments = st.sampled_from(
    [
        "2020-02-29",
        "2020/12/31",
        "2020-01-01T10:20:30Z",
        "2020-01-01 10:20:30.5+02:00",
        "10:20:30",
        "10:20 and more",
        "2020-01-01T10:00:00 or later",
        "1-2-3",
        "2020-01-01T10:20:30.123456Z",
        "2020-01-01 10:00 " + "and more " * 40,
    ]
)
nested = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(-(2**63), 2**63 - 1), reals, texts),
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(texts, inner, max_size=3)),
    max_leaves=8,
).filter(lambda value: isinstance(value, list | dict))

kinds = st.sampled_from(
    [
        numbers,
        st.integers(-1000, 1000),
        reals,
        st.booleans(),
        texts,
        moments,
        nested,
        st.one_of(st.integers(-5, 5), reals),
        st.one_of(st.booleans(), numbers),
        st.one_of(numbers, reals, st.booleans(), texts, nested),
        st.sampled_from(["2020-02-29", "2021-01-01"]),
        st.sampled_from(["2020-01-01T10:20:30Z", "2020-02-29"]),
    ]
)

degrees = st.integers(-80, 80)


@st.composite
def positions(draw: st.DrawFn, dimensions: int) -> list[float]:
    return [draw(degrees) + 0.25 for _ in range(dimensions)]


@st.composite
def rings(draw: st.DrawFn, dimensions: int) -> list[list[float]]:
    x, y, size = draw(degrees), draw(degrees), draw(st.integers(1, 9))
    corners = [(x, y), (x, y + size), (x + size, y + size), (x + size, y), (x, y)]
    return [[float(x), float(y), 7.5][:dimensions] for x, y in corners]


@st.composite
def simple_geometries(draw: st.DrawFn) -> dict[str, Any]:
    dimensions = draw(st.sampled_from([2, 2, 2, 3]))
    position, ring = positions(dimensions), rings(dimensions)
    line = st.lists(position, min_size=2, max_size=5, unique_by=tuple)
    coordinates: dict[str, st.SearchStrategy[Any]] = {
        "Point": position,
        "MultiPoint": st.lists(position, min_size=1, max_size=4),
        "LineString": line,
        "MultiLineString": st.lists(line, min_size=1, max_size=3),
        "Polygon": ring.map(lambda outer: [outer]),
        "MultiPolygon": st.lists(ring.map(lambda outer: [outer]), min_size=1, max_size=3),
    }
    kind = draw(st.sampled_from(sorted(coordinates)))
    return geometry(kind, draw(coordinates[kind]))


odd_geometries = st.sampled_from(
    [
        geometry("Point", [1]),
        geometry("Point", []),
        geometry("LineString", []),
        geometry("LineString", [[1, 2], [3, None]]),
        geometry("Polygon", []),
        geometry("MultiPoint", [[1, 2], ["x", 3]]),
        geometry("MultiPolygon", []),
        geometry("Blob", [1, 2]),
        {},
        gathered(),
    ]
)
collections = st.lists(simple_geometries(), min_size=1, max_size=3).map(lambda members: gathered(*members))
geometries = st.one_of(simple_geometries(), simple_geometries(), st.none(), collections, odd_geometries)
one_family = st.sampled_from([("Point", "MultiPoint"), ("LineString", "MultiLineString"), ("Polygon", "MultiPolygon")])


@st.composite
def features(draw: st.DrawFn) -> list[dict[str, Any]]:
    """Features with one set of columns and some values missing; column `n` numbers them."""
    columns = draw(st.dictionaries(st.sampled_from(NAMES), kinds, max_size=6))
    shapes: st.SearchStrategy[Any] = geometries
    if draw(st.booleans()):
        family = draw(one_family)
        shapes = st.one_of(st.none(), simple_geometries().filter(lambda shape: shape["type"] in family))
    ids = draw(st.sampled_from([None, None, "text", "number"]))
    made = []
    for number in range(draw(st.integers(1, 12))):
        values = {
            name: draw(values) if draw(st.integers(0, 9)) else None
            for name, values in columns.items()
            if draw(st.integers(0, 9))
        }
        identity = {} if ids is None else {"id": f"way/{number}" if ids == "text" else number}
        made.append(feature({"n": number, **values}, draw(shapes), **identity))
    return made
