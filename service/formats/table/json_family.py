# ruff: noqa: S106 -- a token is a format's short name here
"""The rows of formats that are JSON: GeoJSON, TopoJSON, Esri JSON."""

import msgspec

from service.formats.crs import WGS84
from service.formats.facts import FieldType
from service.formats.format import Format, LeftOut, Reader, Reading, Writing
from service.formats.unread import NO_UTF_16

_READING = Reading(
    drivers=("GeoJSON", "TopoJSON", "ESRIJSON", "GeoJSONSeq"),
    unread=NO_UTF_16,
    reader=Reader.DOCUMENT,
    options=("ARRAY_AS_STRING=YES",),
    text_options=("DATE_AS_STRING=YES",),
    json=True,
    overflows=frozenset({"infinite"}),
)

GEOJSON = Format(
    name="GeoJson",
    token="geojson",
    title="GeoJSON",
    extensions=(".geojson", ".json"),
    reading=_READING,
    writing=Writing(
        driver="GeoJSON",
        value_losses=frozenset({"infinite", "binary_texts", "like_json"}),
        read_back="json",
        extension=".geojson",
        media_type="application/geo+json",
        options=("-lco", "RFC7946=YES"),
        epsg=WGS84,
        json=True,
        lines_driver="GeoJSONSeq",
        trailer=b"}",
    ),
)

GEOJSONSEQ = Format(
    name="GeoJsonSeq",
    token="geojsonseq",
    title="GeoJSON text sequence",
    extensions=(".geojsonl",),
    reading=msgspec.structs.replace(_READING, reader=Reader.LINES),
    writing=Writing(
        driver="GeoJSONSeq",
        value_losses=frozenset({"infinite", "binary_texts", "like_json"}),
        read_back="json",
        extension=".geojsonl",
        more_extensions=(".jsonl", ".ndjson", ".geojsons"),
        media_type="application/x-ndjson",
        epsg=WGS84,
        wraps_dateline=True,
        json=True,
        trailer=b"}",
    ),
)

_LIKE_A_MOMENT = (
    rb':\s{0,8}"(?!(?:\d{4}[-/]\d\d[-/]\d\d(?:[ T]\d\d:\d\d(?::\d\d(?:\.\d{1,3})?)?(?:Z|[+-]\d\d(?::?\d\d)?)?)?'
    rb'|\d\d:\d\d(?::\d\d(?:\.\d{1,3})?)?)")(?:T\d|\d{1,4}[-/]\d{1,2}[-/]\d|\d\d:\d\d)[^"\\]{0,150}"'
)
"""A text that some versions of the driver take for a date or a time, although it is none or more than one."""

_NUMBER = rb"\s{0,8}-?\d[\d.eE+-]{0,30}\s{0,8}"
WITH_ELEVATION = rb'"coordinates"\s{0,8}:\s{0,8}\[(?:\s{0,8}\[)?' + b",".join((_NUMBER,) * 3)
"""A point with an elevation, or several points that begin with one, of which the driver reads nothing."""
_IN_SPACE = rb"\[" + b",".join((_NUMBER,) * 3) + rb"\]\s{0,8}"
ARCS_WITH_ELEVATIONS = (
    rb'(?:"Topology"|[}\]]\s{0,8}\}|\])\s{0,8},\s{0,8}"arcs"\s{0,8}:\s{0,8}\[\s{0,8}\[\s{0,8}'
    + _IN_SPACE
    + rb",\s{0,8}"
    + _IN_SPACE
)
"""The arcs of a topology, of which the first begins with two places; those of a geometry follow its type."""
COLLECTION = rb'[\[,]\s{0,8}\{\s{0,8}"type"\s{0,8}:\s{0,8}"GeometryCollection"'
"""A collection that is no object of the topology, which its name precedes, but a feature of one."""
WITHOUT_GEOMETRY = (
    rb'"type"\s{0,8}:\s{0,8}null\s{0,8},\s{0,8}"(?:id"\s{0,8}:[^{},]{0,150},\s{0,8}")?properties"\s{0,8}:'
)

TOPOJSON = Format(
    name=None,
    token="topojson",
    title="TopoJSON",
    extensions=(".topojson", ".json"),
    reading=Reading(
        drivers=("TopoJSON",),
        unread=NO_UTF_16,
        records_crs=False,
        told_by=(("type", "Topology"),),
        left_out=(
            LeftOut(
                (),
                "Texts that merely look or begin like dates or times, such as T1234 ({count}), may have become dates "
                "or times. Send the file as GeoJSON to keep them.",
                pattern=_LIKE_A_MOMENT,
            ),
            LeftOut(
                (),
                "Points with elevations ({count}) cannot be read; their features have no geometry. Send the file as "
                "GeoJSON, or without elevations, to keep them.",
                pattern=WITH_ELEVATION,
            ),
            LeftOut(
                (),
                "Lines and areas with elevations cannot be read; their features have no geometry. Send the file as "
                "GeoJSON, or without elevations, to keep them.",
                pattern=ARCS_WITH_ELEVATIONS,
            ),
            LeftOut(
                (),
                "Features that are collections of geometries ({count}) were left out. Send the file as GeoJSON to "
                "keep them.",
                pattern=COLLECTION,
            ),
            LeftOut(
                (),
                "Features without geometry ({count}) were left out. Send the file as GeoJSON to keep them.",
                pattern=WITHOUT_GEOMETRY,
            ),
        ),
    ),
)

ESRIJSON = Format(
    name=None,
    token="esrijson",
    title="Esri JSON",
    extensions=(".json",),
    reading=Reading(
        drivers=("ESRIJSON",),
        reader=Reader.ESRI_JSON,
        unread=NO_UTF_16,
        left_out=(
            LeftOut(
                (b'"curvePaths"', b'"curveRings"'),
                "Geometries with curves ({count}) cannot be read; their features have no geometry. Send lines in "
                "place of curves, for example with returnTrueCurves=false.",
            ),
            LeftOut(
                (),
                "The server that made the file left out features beyond its limit (exceededTransferLimit); ask it for "
                "the others.",
                pattern=rb'"exceededTransferLimit"\s{0,8}:\s{0,8}true',
            ),
            LeftOut(
                (b'"esriFieldTypeDate"',),
                "Columns of dates ({count}) hold milliseconds since 1970 in UTC, and stay so.",
                column=f"*{FieldType.DATETIME}",
            ),
        ),
        told_by=(("geometryType", ""), ("spatialReference", ""), ("fieldAliases", ""), ("displayFieldName", "")),
    ),
)
