"""GeoJSON: coordinate systems that are addresses, endless brackets, implausible names and numbers."""

import json

from tests.hostile.case import LIMIT, REFUSED, Case, constant, text
from tests.support.data import lakes

POINT = '{"type": "Feature", "properties": {"a": 1}, "geometry": {"type": "Point", "coordinates": [1, 2]}}'
NESTED_ARRAYS = 400_000
_IN_COLLECTION = '{"type": "GeometryCollection", "geometries": ['


def _in_system(crs: str) -> str:
    return f'{{"type": "FeatureCollection", "crs": {crs}, "features": [{POINT}]}}'


def _with_property(value: str) -> str:
    return _of(f'{{"type": "Feature", "properties": {{"a": {value}}}, "geometry": null}}')


def _of(feature: str) -> str:
    return f'{{"type": "FeatureCollection", "features": [{feature}]}}'


def _located(coordinates: str, kind: str = "Point") -> str:
    geometry = f'{{"type": "{kind}", "coordinates": {coordinates}}}'
    return _of(f'{{"type": "Feature", "properties": {{"a": 1}}, "geometry": {geometry}}}')


def _names(count: int, rows: int = 1) -> str:
    features = (
        {"type": "Feature", "geometry": None, "properties": {f"column_{row}_{n}": n for n in range(count)}}
        for row in range(rows)
    )
    return json.dumps({"type": "FeatureCollection", "features": list(features)})


def _link(href: str, kind: str) -> str:
    return f'{{"type": "link", "properties": {{"href": "{href}", "type": "{kind}"}}}}'


def _called(name: str) -> str:
    return f'{{"type": "name", "properties": {{"name": "{name}"}}}}'


SYSTEMS = {
    "a link": _link("{url}/crs", "proj4"),
    "a link to WKT": _link("{url}/crs", "ogcwkt"),
    "a link to a file": _link("file://{txt}", "proj4"),
    "a link to a path": _link("{txt}", "esriwkt"),
    "an address as its name": _called("{url}/crs"),
    "a path as its name": _called("{txt}"),
    "a grid": _called("+proj=longlat +nadgrids={txt} +no_defs"),
    "an optional grid": _called("+proj=longlat +nadgrids=@{txt} +no_defs"),
    "a height grid": _called("+proj=longlat +ellps=GRS80 +geoidgrids={txt} +no_defs"),
    "a pipeline": _called("+proj=pipeline +step +proj=hgridshift +grids={txt}"),
    "a start-up file": _called("+init={txt}:1"),
    "no object": "42",
    "an object in itself": '{"type": {"type": {}}, "properties": []}',
    "a very long name": _called("urn:ogc:def:crs:" + "x" * 100_000),
}
BOMB_NEST = '{"type": "GeometryCollection", "geometries": ['

CASES = {
    **{f"GeoJSON whose system is {name}": Case("a.geojson", text(_in_system(crs))) for name, crs in SYSTEMS.items()},
    "GeoJSON whose system is a link, reprojected": Case(
        "a.geojson", text(_in_system(SYSTEMS["a link"])), None, {"outputFormat": "Csv", "targetEpsg": "3857"}
    ),
    "GeoJSON whose system is a grid, reprojected": Case(
        "a.geojson", text(_in_system(SYSTEMS["a grid"])), None, {"outputFormat": "GeoPackage", "targetEpsg": "3857"}
    ),
    "GeoJSON that is all brackets": Case("a.geojson", constant("[" * NESTED_ARRAYS), REFUSED),
    "GeoJSON that is all braces": Case("a.geojson", constant('{"a":' * 200_000), REFUSED),
    "GeoJSON deep coordinates": Case("a.geojson", constant(_located("[" * 100_000 + "]" * 100_000)), REFUSED),
    "GeoJSON deep property": Case("a.geojson", constant(_with_property("[" * 100_000 + "]" * 100_000)), REFUSED),
    "GeoJSON collections in collections": Case(
        "a.geojson",
        constant(_of(f'{{"type": "Feature", "geometry": {BOMB_NEST * 3000}{"]}" * 3000}, "properties": {{}}}}')),
    ),
    "GeoJSON of empty arrays": Case("a.geojson", constant(_located(f"[{'[],' * 800_000}[]]", "LineString"))),
    "GeoJSON with 60,000 names": Case(
        "a.geojson", constant(_names(60_000)), f"{LIMIT}|columns", {"outputFormat": "Csv"}
    ),
    "GeoJSON with 60,000 names over 600 features": Case(
        "a.geojson", constant(_names(100, 600)), f"{LIMIT}|columns", {"outputFormat": "Xlsx"}
    ),
    "GeoJSON with a huge number": Case("a.geojson", constant(_with_property("1" * 200_000))),
    "GeoJSON with a huge exponent": Case("a.geojson", constant(_with_property("1e999999999"))),
    "GeoJSON with huge coordinates": Case(
        "a.geojson", constant(_located("[1e308, -1e308]")), None, {"outputFormat": "Kml"}
    ),
    "GeoJSON with coordinates without end": Case("a.geojson", constant(_located("[1e999, NaN]"))),
    "GeoJSON with a million coordinates for a point": Case("a.geojson", constant(_located(f"[{'1,' * 1_000_000}1]"))),
    "GeoJSON with a broken surrogate": Case("a.geojson", constant(_with_property(r'"\ud800\udfff\udc00\u0000"'))),
    "GeoJSON that is not UTF-8": Case("a.geojson", constant(lakes().replace(b"L", b"\xff\xc0"))),
    "GeoJSON with a name that is not UTF-8": Case(
        "a.geojsonl", constant(POINT.encode().replace(b'"a"', b'"\xff"') + b"\n"), "UTF-8"
    ),
    "GeoJSON in UTF-16": Case("a.geojson", constant(lakes().decode().encode("utf-16"))),
    "GeoJSON with NUL": Case("a.geojson", constant(lakes().replace(b" ", b"\0"))),
    "GeoJSON called as another file": Case(
        "a.geojson",
        text(f'{{"type": "FeatureCollection", "name": "../../../{{slip}}", "features": [{POINT}]}}'),
        "",
        {"outputFormat": "Csv"},
    ),
    "GeoJSON called as an absolute path": Case(
        "a.geojson",
        text(f'{{"type": "FeatureCollection", "name": "{{directory}}/{{slip}}", "features": [{POINT}]}}'),
        "",
        {"outputFormat": "MapInfo"},
    ),
    "GeoJSON lines of which one is deep": Case("a.geojsonl", constant(f"{POINT}\n{'[' * 100_000}\n{POINT}\n"), REFUSED),
    "GeoJSON lines of other things": Case(
        "a.geojsonl", constant(f'{POINT}\n{{"type": "Topology"}}\n{POINT}\n'), REFUSED
    ),
    "TopoJSON with arcs that are not there": Case(
        "a.json",
        constant(
            '{"type": "Topology", "objects": {"a": {"type": "LineString", "arcs": [9999999999, -5]}}, "arcs": [[]]}'
        ),
    ),
    "TopoJSON of one line a million times": Case(
        "a.json",
        constant(
            '{"type": "Topology", "objects": {"a": {"type": "MultiLineString", "arcs": [[0]'
            f'{",[0]" * 1_000_000}]}}}}, "arcs": [[[0,0]{",[0.123456789,0]" * 10_000}]]}}'
        ),
        REFUSED,
        {"sourceEpsg": "4326"},
    ),
    "TopoJSON of a line of blanks eight thousand times": Case(
        "a.json",
        constant(
            '{"type": "Topology", "objects": {"a": {"type": "MultiLineString", "arcs": [[0]'
            f'{",[0]" * 8_000}]}}}}, "arcs": [[{" " * 5_000_000}[0,0],[1,1]]]}}'
        ),
        "",
        {"sourceEpsg": "4326"},
    ),
    "TopoJSON of collections within collections": Case(
        "a.json",
        constant(f'{{"type": "Topology", "arcs": [], "objects": {{"a": {_IN_COLLECTION * 50_000}{"]}" * 50_000}}}}}'),
        REFUSED,
        {"sourceEpsg": "4326"},
    ),
    "GeoJSON of one long word": Case("a.geojson", constant(_with_property(f'"{"x" * 8_000_000}"'))),
}
