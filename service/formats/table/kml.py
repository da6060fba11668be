# ruff: noqa: S106 -- a token is a format's short name here
"""The rows of KML and KMZ."""

from collections.abc import Mapping

import msgspec

from service.formats.crs import WGS84
from service.formats.format import (
    NAMED_REFERENCE,
    NAMED_REFERENCES,
    Alike,
    ColumnRule,
    Declares,
    Format,
    LeftOut,
    Packaging,
    Reader,
    Reading,
    Reread,
    Writer,
    Writing,
    left_out,
)
from service.formats.gpx_times import FINE, FINE_TOLD, PLAIN_TIME
from service.formats.kml_positions import (
    FURTHER_POSITIONS,
    MISPLACED_POSITIONS,
    POSITION,
    POSITIONS,
    SPACED,
    UNREAD_POSITIONS,
    UNREAD_TRACK_POSITIONS,
)
from service.formats.kml_repairs import NO_MODEL
from service.formats.table.xml_parts import HOLDS, XML_LOSSES, of_the_file

_PREFIX = "kml_element_"
_COLUMNS = (
    *("id", "timestamp", "begin", "end", "altitudeMode", "tessellate", "extrude", "visibility", "drawOrder", "icon"),
    *("heading", "tilt", "roll", "snippet"),
)
"""The columns that the driver makes of elements, apart from those that `jailed.kml_names` tells from data."""
_ENVIRONMENT = {
    # the driver would replace all but ASCII letters and digits in names, and keep one of those that become the same
    "LIBKML_LAUNDER_FIELD_NAMES": "NO",
    # Since GDAL 3.12.2, data with the name of such a column gets another one; before, it replaced the element.
    **{f"LIBKML_{column.upper()}_FIELD": f"{_PREFIX}{column}" for column in _COLUMNS},
}
_KML_NOISE: Mapping[str, tuple[str, ...]] = {
    "Name": (),
    "description": (),
    **{f"{_PREFIX}{column}": () for column in ("timestamp", "begin", "end", "drawOrder", "icon", "snippet")},
    f"{_PREFIX}tessellate": ("-1",),
    f"{_PREFIX}extrude": ("0", "-1"),
    f"{_PREFIX}visibility": ("-1",),
    f"{_PREFIX}altitudeMode": ("absolute", "clampToGround"),
    f"{_PREFIX}id": ("{layer}.*",),
}
SIMPLE_BEGINS_BLANK = (
    rb"<SimpleData\b[^<>]*+(?<!/)>(?:\s*+<!\[CDATA\[[ \r\n]|[ \r\n]\s*+(?:[^<\s]|<[^!])|&#(?:10|32|[xX](?:[aA]|20));)"
)
"""A value with a blank or a line end at its beginning, of which it may consist; those before CDATA do not matter."""
SIMPLE_ENDS_BLANK = (
    rb"</SimpleData>(?:(?<= </SimpleData>)|(?<= \]\]></SimpleData>)|(?<=&#32;</SimpleData>)|(?<=&#x20;</SimpleData>))"
)
"""A value with a blank at its end. It begins with fixed bytes, which are found in an eighth of the time of a choice."""
SIMPLE_EMPTY = rb"<SimpleData\b[^<>]*+(?:(?<=/)>|>\s*+(?:<!\[CDATA\[\s*+\]\]>\s*+)?</SimpleData>)"
MARKUP_IN_DATA = rb"(?:<value|<SimpleData\b[^<>]*+(?<!/))>[^<]*+<[^/!]"
"""Values with an element in them; those in CDATA are texts."""
SIMPLE_NUMBERS = rb"<SimpleField\b[^<>]*?\stype\s*=\s*[\"'](?i:u?int|u?short|float|double|bool)[\"']"
_SNIPPET = rb"nippet(?<=<[sS]nippet)(?:\s[^<>]*+)?(?<!/)>"
SNIPPET = _SNIPPET + rb"\s*+(?:[^<\s]|<!\[CDATA\[\s*+[^\]\s])"
SNIPPET_WITH_BLANKS = _SNIPPET + rb"(?:<!\[CDATA\[)?(?:\s++[^<\s]|[^<\s][^<]*+(?<=\s)</)"
"""Snippets that are not empty. By their second letter, since the first may be a capital, they are found sooner."""
SCHEMA = rb"<Schema[\s/>]"
TIME_IN_TRACK = rb"</when>\s*+<(?:when|gx:coord)\b"
"""The end of a time that is one of several, or of a point; the others are in a TimeStamp."""
VALUE_IN_ARRAY = rb"</value>\s*+<(?:value|/SimpleArrayData)\b"
"""The end of a value of several, as KML 2.3 has those of points in tracks."""
MONTH_OR_YEAR = rb"<(?:when|begin|end)>\s*+\d{4}(?:-\d\d)?+\s*+</"
"""A time that is a month or a year, of which the driver makes a day or nothing."""
_MINUTE = rb"\d{4}-\d\d-\d\dT(?:[01]\d|2[0-3]):[0-5]\d(?=\s*+<)"
"""A time without seconds, which the driver reads in full without a zone."""
_TIME = rb"<(?:when|begin|end)>"
NO_TIME_IN_KML = _TIME + rb"\s*+(?!(?:" + PLAIN_TIME + rb"|" + _MINUTE + rb"|\d{4}(?:-\d\d)?+)\s*+<)[^<\s]"
WITH_VISIBILITY = rb"<Placemark\b[^<>]*+>\s*+(?:<name>[^<]*+</name>\s*+)?+<visibility\b"
WITHOUT_VISIBILITY = rb"<Placemark\b[^<]*+(?:<(?!visibility\b|/?Placemark\b)[^<]*+)*+</Placemark"
"""Features with visibility, which is first or follows the name, and those without it."""
WITH_TESSELLATE = rb"<(?:LineString|Polygon)\b[^<>]*+>\s*+(?:<extrude>[^<]*+</extrude>\s*+)?+<tessellate\b"
WITHOUT_TESSELLATE = rb"<Placemark\b[^<]*+(?:(?!" + WITH_TESSELLATE + rb")<(?!/?Placemark\b)[^<]*+)*+</Placemark"
"""Geometries with tessellate as the driver reads it, which is not in rings, and features without it."""
RING_BESIDE_RING = rb"</LinearRing>\s*+<LinearRing\b"
"""Several rings in one outer boundary, where one may be. Those of inner ones, and outside of areas, are mended."""
FOREIGN_DATA = rb"Data(?:(?<=<ExtendedData)\s++xmlns[^<>]*+)?+>(?<!</ExtendedData>)(?<!/>)\s*+<(?!gx:)[\w.-]++:"
"""A tag in ExtendedData, behind another one there, that is not of KML. No byte of attributes is read twice."""
INFORMATION_IN_KML = of_the_file(
    rb"(?:Document|Folder)\b",
    rb"(?:Document|Folder|Placemark|(?:Ground|Screen|Photo)Overlay|NetworkLink|gx:Tour|Style|Schema)",
    rb"description" + HOLDS + rb"|(?:atom:)?author\b[^<>]*+(?<!/)>\s*+<[^/]",
)
DATA_OF_FOLDERS = of_the_file(
    rb"(?:Document|Folder)\b",
    rb"(?:Document|Folder|Placemark|(?:Ground|Screen|Photo)Overlay|NetworkLink|gx:Tour)",
    rb"ExtendedData\b[^<>]*+(?<!/)>\s*+<[^/]",
)
LINKS_OF_FEATURES = of_the_file(rb"Placemark\b", rb"/?Placemark\b", rb"atom:(?:author|link)\b")
_PLACE = rb"(?:Point|LineString|LinearRing|Polygon|MultiGeometry|GeometryCollection|gx:(?:Multi)?Track)\b"
_BESIDE_PLACES = rb"[^<]*+(?:<(?!" + _PLACE + rb"|/?Placemark\b)[^<]*+)*+"
SECOND_GEOMETRY_IN_KML = (
    rb"<Placemark\b(?:"
    + _BESIDE_PLACES
    + rb"<(?P<place>"
    + _PLACE
    + rb")[^<]*+(?:<(?!/(?P=place)|(?P=place)|/?Placemark\b)[^<]*+)*+</(?P=place)){2}"
)
"""A feature with two geometries. So that no byte is read twice, no match goes beyond the feature.

A collection that holds collections is not looked into.
"""
_KNOWN_OF_FEATURES = (
    rb"(?:name|visibility|open|address|phoneNumber|[sS]nippet|description|styleUrl|Style|StyleMap|LookAt|Camera"
    rb"|Time(?:Stamp|Span|Instant)|Region|Metadata|ExtendedData|Model|" + _PLACE + rb")[\s/>]"
)
UNDEFINED_IN_KML = (
    rb"<Placemark\b[^<>]*+>\s*+(?:<(?P<text>name|visibility|open|[sS]nippet|description|styleUrl)\b[^<>]*+"
    rb"(?:(?<=/)>|>[^<]*+(?:<!\[CDATA\[(?:[^\]<]++|\](?!\]>)|<(?!Placemark\b))*+\]\]>[^<]*+)?+</(?P=text)>)\s*+)*+"
    rb"<(?!" + _KNOWN_OF_FEATURES + rb")[a-zA-Z]\w*+>[^<>]*+(</)"
)
"""A feature with a value of its own, as Marble writes them, which follows none but its name and other texts. A match
fills its last group."""
_SIBLING = rb"\s*+<(?!(?P=name)[\s>]|/)[\w.:-]++[^<>]*+(?:(?<=/)>|>[^<>]*+</[\w.:-]++>)"
REPEATED_IN_KML = (
    rb"</(?P<name>name|description|coordinates|visibility)>(?:" + _SIBLING + rb"){0,8}+\s*+<(?P=name)[\s>]"
)
"""An element whose parent has another one of that name, with few others between them, so that few are read again."""
UNREAD_DATA = rb"<(?:Simple)?+Data(?:\s++(?!name\b)[\w:.-]++\s*+=\s*+(?:\"[^\"<>]*+\"|'[^'<>]*+'))*+\s*+>[^<]*+</?+\w"
UNREAD_TEXT_OF_DATA = rb"<Data\s[^<>]*+(?<!/)>\s*+[^<\s]"
"""Data without a name, and with a text of its own rather than in the element value."""
_MODES = tuple(
    b">%b<" % mode for mode in (b"relativeToGround", b"clampToGround", b"relativeToSeaFloor", b"clampToSeaFloor")
)
_LEFT_OUT = {
    "Network links ({count}) were not followed; what they lead to outside of the file is not in the result.": LeftOut(
        words=(b"<NetworkLink>", b"<NetworkLink "), is_content=True
    ),
    "Images of ground overlays ({count}) were left out; their outlines were kept.": LeftOut(
        words=(b"<GroundOverlay",),
        is_content=True,
        alone="Images of ground overlays ({count}) are left out, and their outlines are read only beside a Placemark. "
        "Draw the outlines as Placemarks, and send the file again.",
    ),
    "Screen and photo overlays ({count}) were left out, with their names, descriptions and points. Put points into a "
    "Placemark to keep them.": LeftOut(words=(b"<ScreenOverlay", b"<PhotoOverlay"), is_content=True),
    "Tours ({count}) were left out.": LeftOut(words=(b"<gx:Tour",), is_content=True),
    "Models ({count}) were left out, with the places where they stand. Write these as Points to keep them.": LeftOut(
        words=(b"<%b" % NO_MODEL,), is_content=True
    ),
    "Coordinates of geometries ({count}) that are not numbers in the form 13.4,52.5 or 13.4,52.5,100 were left out or "
    "read wrongly. "
    "Separate numbers by commas, positions by blanks, and write decimal points.": LeftOut(pattern=UNREAD_POSITIONS),
    "Positions of tracks ({count}) that are not two or three numbers were read wrongly, or in part. Write them like "
    "13.4 52.5 100, with decimal points.": LeftOut(pattern=UNREAD_TRACK_POSITIONS, within=b"<gx:coord"),
    "Points ({count}) have several positions, of which only the first was read. Give each a Point of its own.": LeftOut(
        pattern=FURTHER_POSITIONS
    ),
    "Coordinates ({count}) were left out, because they are not where KML has them: in the element coordinates of a "
    "Point, LineString or "
    "LinearRing, and rings of a Polygon in outerBoundaryIs or innerBoundaryIs.": LeftOut(pattern=MISPLACED_POSITIONS),
    "Features without visibility ({count}) have -1 in its column, because others have one.": LeftOut(
        pattern=WITHOUT_VISIBILITY, beside=WITH_VISIBILITY
    ),
    "Features without tessellate ({count}) have -1 in its column, if others of their layer have one.": LeftOut(
        pattern=WITHOUT_TESSELLATE, beside=WITH_TESSELLATE
    ),
    "Features with several geometries outside of a MultiGeometry ({count}): only the last of each is read.": LeftOut(
        pattern=SECOND_GEOMETRY_IN_KML
    ),
    "Times that are only a month or a year ({count}) were not kept as such: a month became its first moment, and a "
    "year was left out.": LeftOut(pattern=MONTH_OR_YEAR),
    "Times ({count}) that are not written like 2020-01-02T03:04:05Z may be missing, or have lost the time of day or "
    "the zone.": LeftOut(pattern=NO_TIME_IN_KML),
    FINE_TOLD: LeftOut(pattern=_TIME + FINE),
    "Rings ({count}) were left out: where one outer boundary has several, only the last is read. Give each a Polygon "
    "of its own.": LeftOut(pattern=RING_BESIDE_RING),
    "Ids of features ({count}) were left out.": LeftOut(words=(b"<Placemark id=",), column="id"),
    "Ids of features ({count}) were left out, because data is called id, too.": LeftOut(
        pattern=rb"<Placemark\sid=", beside=rb"name=[\"']id[\"']", column=f"{_PREFIX}id"
    ),
    "Blanks and line ends at the beginning of texts ({count}) were left out.": LeftOut(pattern=SIMPLE_BEGINS_BLANK),
    "Blanks at the end of texts ({count}) were left out.": LeftOut(pattern=SIMPLE_ENDS_BLANK),
    "Empty values ({count}) became 0 in columns that the file declares as numbers, and empty texts in others.": LeftOut(
        pattern=SIMPLE_EMPTY, beside=SIMPLE_NUMBERS
    ),
    "Elements within values of data ({count}) were left out, with the texts in them. Write such values as CDATA to "
    "keep them.": LeftOut(pattern=MARKUP_IN_DATA),
    "Blanks around snippets ({count}) were left out.": LeftOut(pattern=SNIPPET_WITH_BLANKS),
    "Snippets ({count}) were left out.": LeftOut(pattern=SNIPPET, beside=SCHEMA, column="snippet"),
    "Data of features ({count}) may have been left out: outside of folders, only what the Schema declares is read. Put "
    "these features into a Folder to keep it.": LeftOut(pattern=rb"<Data[\s/>]", beside=SCHEMA),
    "Descriptions and authors of documents and folders ({count}) were left out.": LeftOut(pattern=INFORMATION_IN_KML),
    "Times of points in tracks ({count}) were left out, except the first and the last of each track.": LeftOut(
        pattern=TIME_IN_TRACK
    ),
    "Values of points in tracks ({count}), such as heart rates and angles, were left out.": LeftOut(
        words=(b"<gx:value>", b"<gx:angles>"), pattern=VALUE_IN_ARRAY
    ),
    "Data of features in elements of other namespaces ({count}) was left out: in ExtendedData, only Data and "
    "SchemaData are read.": LeftOut(pattern=FOREIGN_DATA),
    "Elements that KML does not define were left out of at least {count} of the features: of their own values, only "
    "those within ExtendedData are read.": LeftOut(pattern=UNDEFINED_IN_KML),
    "Elements that a feature or geometry has more than once ({count}), such as a second name, were left out: the last "
    "one is read.": LeftOut(pattern=REPEATED_IN_KML),
    "Data ({count}) without a name was left out.": LeftOut(pattern=UNREAD_DATA),
    "Data ({count}) with a text outside of the element value was read without it. Write <value>…</value>.": LeftOut(
        pattern=UNREAD_TEXT_OF_DATA
    ),
    "Display names of data ({count}) were left out; columns have its names.": LeftOut(words=(b"<displayName>",)),
    "Data of documents and folders ({count}) was left out.": LeftOut(pattern=DATA_OF_FOLDERS),
    "Geometries in the obsolete element GeometryCollection ({count}) were left out. "
    "Write MultiGeometry instead.": LeftOut(words=(b"<GeometryCollection>", b"<GeometryCollection "), is_content=True),
    "Data of features in the obsolete element Metadata ({count}) was left out.": LeftOut(
        words=(b"<Metadata>", b"<Metadata ")
    ),
    "Times as KML 2.0 has them (timePosition, {count}) were left out.": LeftOut(words=(b"<timePosition>",)),
    "Authors and links of features ({count}) were left out.": LeftOut(pattern=LINKS_OF_FEATURES, within=b"<atom:"),
    "Addresses and phone numbers of features ({count}) were left out.": LeftOut(words=(b"<address>", b"<phoneNumber>")),
    "Styles, such as colors and icons, were left out.": LeftOut(words=(b"<Style", b"<styleUrl")),
    "Views (LookAt, {count}) were left out.": LeftOut(words=(b"<LookAt",)),
    "Cameras ({count}) were left out, except that the one of a feature without geometry became its geometry, with "
    "columns such as heading and tilt.": LeftOut(words=(b"<Camera",)),
    "Regions, in which features are shown ({count}), were left out.": LeftOut(words=(b"<Region>", b"<Region ")),
    "Altitude modes other than absolute ({count}) were not applied; elevations were taken as they are.": LeftOut(
        words=_MODES
    ),
}
_NO_MODE = rb"(?!(?:" + b"|".join(mode.strip(b"<>") for mode in _MODES) + rb")<)"
_ENDS = b"|".join([rb"(?<![\s;])", *(rb"(?<=%b)" % reference for reference in NAMED_REFERENCES)])
_TEXT = _NO_MODE + rb"(?:[^\s<>&]|" + NAMED_REFERENCE + rb")[^<>]*+(?:" + _ENDS + rb")"
"""A text that is no special word, and neither begins nor ends with a blank or a reference to one."""
_SHORT_TIME = rb"\d{4}(?:-\d\d)?+(?=<)"
_KML_ALIKE = Alike(
    elements=rb"<(Placemark)[\s>]",
    missing=rb"<(?:name|description|SimpleData\sname=\"[^\"<>&]++\")",
    text=_TEXT,
    texts={
        b"coordinates": (POSITION, POSITIONS),
        b"coord": (SPACED,),
        **dict.fromkeys(
            (b"when", b"begin", b"end"), (_SHORT_TIME, rb"(?!" + FINE + rb")(?:" + PLAIN_TIME + rb"|" + _MINUTE + rb")")
        ),
    },
    attributes={b"id": (rb"[^\"<>&]*+",)},
)
_KML_READING = Reading(
    drivers=("LIBKML",),
    reader=Reader.KML,
    shortest_edges=True,
    declares=Declares.XML,
    root='<kml xmlns="http://www.opengis.net/kml/2.2">',
    inside_root=frozenset({"Document", "Folder", "Placemark", "GroundOverlay"}),
    zoned_texts=True,
    environment=_ENVIRONMENT,
    column_prefix=_PREFIX,
    overflows=frozenset({"infinite", "nans", "at_32_bits"}),
    noise_columns=_KML_NOISE,
    feature_word=b"Placemark",
    left_out=left_out(_LEFT_OUT),
    alike=_KML_ALIKE,
)
_KML = Writing(
    empty_columns=False,
    driver="KML",
    reread=Reread(drivers=("LIBKML",), environment=_ENVIRONMENT),
    empty_columns_lost=frozenset({"name", "description"}),
    value_losses=XML_LOSSES
    | {"beyond_15_digits", "booleans", "moments", "long_integers"}
    | {"leading_blanks", "trailing_blanks"},
    extension=".kml",
    media_type="application/vnd.google-earth.kml+xml",
    writer=Writer.AT_ONCE,
    options=("-mapFieldType", "Integer64=String,Date=String,DateTime=String,Time=String,Binary=String"),
    multi_layer=True,
    epsg=WGS84,
    column_names=ColumnRule.XML,
    time_columns=frozenset({"timestamp", "begin", "end"}),
    wraps_dateline=True,
    mixes_z=False,
    z_options=("-dsco", "AltitudeMode=absolute"),
    trailer=b"</kml>",
)
KML = Format(name="Kml", token="kml", title="KML", extensions=(".kml",), reading=_KML_READING, writing=_KML)

KMZ = Format(
    name="Kmz",
    token="kmz",
    title="KMZ",
    extensions=(".kmz",),
    reading=msgspec.structs.replace(_KML_READING, member=".kml", outline_word=b"GroundOverlay"),
    writing=msgspec.structs.replace(
        _KML, extension=".kmz", media_type="application/vnd.google-earth.kmz", member=".kml", delivery=Packaging.KMZ
    ),
)
