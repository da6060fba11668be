"""Small datasets, one for each way in which formats differ."""

from collections.abc import Mapping, Sequence

from tests.integration.formats.pipeline import Json, feature, geometry

RING = [[0, 0], [2, 0], [2, 2], [0, 2], [0, 0]]
FAR_RING = [[5, 5], [6, 5], [6, 6], [5, 6], [5, 5]]
NAMES = ("Köln 日本 & <b>", 'Zürich; "quoted", comma')


def point(*coordinates: float, **properties: object) -> Json:
    return feature(geometry("Point", list(coordinates)), **properties)


def line(**properties: object) -> Json:
    return feature(geometry("LineString", [[0, 0], [1, 1]]), **properties)


def polygon(**properties: object) -> Json:
    return feature(geometry("Polygon", [RING]), **properties)


def collection(**properties: object) -> Json:
    parts = [geometry("Point", [5, 6]), geometry("LineString", [[5, 6], [7, 8]])]
    return feature({"type": "GeometryCollection", "geometries": parts}, **properties)


TOPOJSON = {
    "type": "Topology",
    "objects": {
        "places": {
            "type": "GeometryCollection",
            "geometries": [
                {"type": "Point", "coordinates": [13.4, 52.5], "properties": {"name": NAMES[0], "n": 1, "r": 0.5}},
                {"type": "Point", "coordinates": [-70.25, -33.5], "properties": {"name": NAMES[1], "n": -2, "r": 1e-3}},
            ],
        }
    },
    "arcs": [],
}
ESRIJSON = {
    "displayFieldName": "name",
    "geometryType": "esriGeometryPoint",
    "spatialReference": {"wkid": 4326},
    "fields": [
        {"name": "name", "type": "esriFieldTypeString"},
        {"name": "n", "type": "esriFieldTypeInteger"},
        {"name": "r", "type": "esriFieldTypeDouble"},
    ],
    "features": [
        {"attributes": {"name": NAMES[0], "n": 1, "r": 0.5}, "geometry": {"x": 13.4, "y": 52.5}},
        {"attributes": {"name": NAMES[1], "n": -2, "r": 1e-3}, "geometry": {"x": -70.25, "y": -33.5}},
    ],
}
"""The points of `SAMPLES` in formats that are only read."""

SAMPLES: Mapping[str, Sequence[Json]] = {
    "points": [point(13.4, 52.5, name=NAMES[0], n=1, r=0.5), point(-70.25, -33.5, name=NAMES[1], n=-2, r=1e-3)],
    "lines": [line(name="a"), feature(geometry("MultiLineString", [[[0, 0], [1, 1]], [[2, 2], [3, 3]]]), name="b")],
    "polygons": [polygon(name="a"), feature(geometry("MultiPolygon", [[RING], [FAR_RING]]), name="b")],
    "multipoints": [feature(geometry("MultiPoint", [[1, 2], [3, 4]]), name="a")],
    "mixed": [point(1, 2, name="a"), line(name="b"), polygon(name="c"), collection(name="d")],
    "points_3d": [point(1, 2, 3, name="a"), point(4, 5, 6.5, name="b")],
    "lines_3d": [feature(geometry("LineString", [[0, 0, 1], [1, 1, 2.5]]), name="a")],
    "polygons_3d": [feature(geometry("Polygon", [[[*place, 7] for place in RING]]), name="a")],
    "table": [feature(None, name="a", n=1), feature(None, name="b", n=2)],
    "empty": [],
    "nulls": [point(1, 2, name="a", n=None), feature(None, name="b", n=1)],
    "long_text": [point(1, 2, name="é" * 5000, n=1)],
    "dates": [point(1, 2, name="a", day="2024-02-29", at="2024-02-29T23:59:58Z")],
    "codes": [point(1, 2, name="a", code="00501", big=9007199254740993, yes=True)],
    "long_names": [point(1, 2, name="a", population_2020=1, population_2021=2, 人口密度統計値=3)],
    "odd_names": [point(1, 2, **{"name": "a", "a<b": 1, "fid": 7, "id": 3, "geom": "g", "geometry": "h", "wkt": "w"})],
    "far_east": [feature(geometry("LineString", [[170, 0], [190, 2]]), name="a")],
}
