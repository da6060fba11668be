# ruff: noqa: S106 -- a token is a format's short name here
"""The rows of formats that are JSON: GeoJSON, TopoJSON, Esri JSON."""

import msgspec

from service.formats.crs import WGS84
from service.formats.facts import FieldType
from service.formats.format import ColumnRule, Format, LeftOut, Reader, Reading, Writing, left_out
from service.formats.table.databases import CODES_LEFT_OUT
from service.formats.unread import NO_UTF_16

_READING = Reading(
    drivers=("GeoJSON", "TopoJSON", "ESRIJSON", "GeoJSONSeq"),
    unread=NO_UTF_16,
    reader=Reader.DOCUMENT,
    options=("ARRAY_AS_STRING=YES",),
    text_options=("DATE_AS_STRING=YES",),
    json=True,
    rounds_long_negatives="3.12-",
    overflows=frozenset({"infinite"}),
)
AS_TEXTS = ("-mapFieldType", "String(JSON)=String")
"""Has the driver write objects and arrays by how they begin and end.

In columns of JSON, that of GDAL 3.6 makes 2024 of the text 2024-05-22, and true of `true oak`.
"""

GEOJSON = Format(
    name="GeoJson",
    token="geojson",
    title="GeoJSON",
    extensions=(".geojson", ".json"),
    reading=_READING,
    writing=Writing(
        empty_columns=False,
        driver="GeoJSON",
        value_losses=frozenset({"infinite", "binary_texts", "like_json", "unsigned"}),
        read_back="json",
        extension=".geojson",
        media_type="application/geo+json",
        options=("-lco", "RFC7946=YES", *AS_TEXTS),
        options_in_place=("-lco", "COORDINATE_PRECISION=7", *AS_TEXTS),
        in_place="-3.9",  # later ones add a member that names the precision
        epsg=WGS84,
        json=True,
        column_names=ColumnRule.CASED_MEMBER,
        lines_driver="GeoJSONSeq",
        lines_options=AS_TEXTS,
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
        empty_columns=False,
        driver="GeoJSONSeq",
        value_losses=frozenset({"infinite", "binary_texts", "like_json", "unsigned"}),
        read_back="json",
        extension=".geojsonl",
        more_extensions=(".jsonl", ".ndjson", ".geojsons"),
        media_type="application/x-ndjson",
        options=AS_TEXTS,
        epsg=WGS84,
        wraps_dateline=True,
        json=True,
        column_names=ColumnRule.MEMBER,
        trailer=b"}",
    ),
)

TOPOJSON = Format(
    name=None,
    token="topojson",
    title="TopoJSON",
    extensions=(".topojson", ".json"),
    reading=Reading(
        drivers=("GeoJSON",),
        reader=Reader.TOPOJSON,
        options=_READING.options,
        text_options=(*_READING.options, *_READING.text_options),
        rounds_long_negatives=_READING.rounds_long_negatives,
        overflows=_READING.overflows,
        unread=NO_UTF_16,
        records_crs=False,
        told_by=(("type", "Topology"),),
    ),
)

QUANTIZED = rb'"transform"\s{0,8}:\s{0,8}\{\s{0,8}"(?:originPosition|scale|translate)"\s{0,8}:'
ENVELOPES = rb'"geometry"\s{0,8}:\s{0,8}\{\s{0,8}"[xy](?:min|max)"\s{0,8}:'
_TEXT = rb'"(?:[^"\\]|\\.){0,400}"'
TITLED_COLUMNS = (
    rb'\{\s{0,8}"name"\s{0,8}:\s{0,8}(?P<name>'
    + _TEXT
    + rb')(?:[^{}"]++|"(?!alias")(?:[^"\\]|\\.){0,400}+"){0,40}+"alias"\s{0,8}:\s{0,8}(?!(?P=name)|"")'
    + _TEXT
)
"""A column with an alias that differs from its name, in the list of columns."""
_PAIR = rb"\s{0,8}%b\s{0,8}:\s{0,8}%b"
TITLES_BY_NAME = (
    rb'"fieldAliases"\s{0,8}:\s{0,8}\{(?:'
    + _PAIR % (rb"(?P<same>" + _TEXT + rb")", rb'(?:(?P=same)|"")')
    + rb"\s{0,8},){0,2000}+"
    + _PAIR % (rb"(?P<other>" + _TEXT + rb")", rb'(?!(?P=other)|"")' + _TEXT)
    + rb'(?:[^"]++|"(?!alias"\s{0,8}:|features"|fieldAliases"))*+"features"'
)
"""Aliases of which one differs from its name, before features; a list of columns between them, if any, has none."""
_NUMBER_OF = rb"(?=[^{}]{0,400}?\"%b\"\s{0,8}:\s{0,8}-?[\d.])"
POINT_WITHOUT_NUMBERS = (
    rb'"geometry"\s{0,8}:\s{0,8}\{(?=\s*+"[xyzm]"\s*+:)(?!'
    + _NUMBER_OF % b"x"
    + _NUMBER_OF % b"y"
    + rb'(?![^{}]{0,400}?"z"\s{0,8}:\s{0,8}")'
    + rb")[^{}]{0,400}[{}]"
)
"""A point in Esri JSON of which x or y is missing or null, or any coordinate a text, such as "NaN"."""

_LEFT_OUT = {
    "Geometries with curves ({count}) cannot be read; their features have no geometry. Send lines in place of curves, "
    "for example with returnTrueCurves=false.": LeftOut(words=(b'"curvePaths"', b'"curveRings"')),
    "Points ({count}) of which a coordinate is missing or no number, such as NaN, were left out; their features have "
    "no geometry.": LeftOut(pattern=POINT_WITHOUT_NUMBERS),
    "The server that made the file left out features beyond its limit "
    "(exceededTransferLimit); ask it for the others.": LeftOut(pattern=rb'"exceededTransferLimit"\s{0,8}:\s{0,8}true'),
    "The coordinates are quantized (transform). Ask the server for the features without quantizationParameters, and "
    "send them again.": LeftOut(is_refused=True, pattern=QUANTIZED),
    "Geometries that are envelopes ({count}) cannot be read; their features have no geometry. Send polygons in place "
    "of them.": LeftOut(pattern=ENVELOPES),
    "Titles of columns (aliases, {count}) were left out; the columns keep their names.": LeftOut(
        pattern=TITLED_COLUMNS, within=b'"alias"'
    ),
    "Titles of columns (fieldAliases) were left out; the columns keep their names.": LeftOut(pattern=TITLES_BY_NAME),
    "Styles (symbols and drawingInfo, {count}) were left out.": LeftOut(
        words=(b'"drawingInfo"',), pattern=rb'"symbol"\s{0,8}:\s{0,8}\{'
    ),
    CODES_LEFT_OUT: LeftOut(words=(b'"codedValues"',)),
    "Columns of dates ({count}) hold milliseconds since 1970 in UTC, and stay so, as texts.": LeftOut(
        words=(b'"esriFieldTypeDate"',), column=f"*{FieldType.DATETIME}"
    ),
}
ESRIJSON = Format(
    name=None,
    token="esrijson",
    title="Esri JSON",
    extensions=(".json",),
    reading=Reading(
        drivers=("ESRIJSON",),
        reader=Reader.ESRI_JSON,
        unread=NO_UTF_16,
        left_out=left_out(_LEFT_OUT),
        told_by=(("geometryType", ""), ("spatialReference", ""), ("fieldAliases", ""), ("displayFieldName", "")),
    ),
)
