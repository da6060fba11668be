# ruff: noqa: S106 -- a token is a format's short name here
"""The row of GML."""

from service.formats.format import (
    ANY_FLAT,
    Alike,
    ColumnRule,
    Declares,
    Format,
    LeftOut,
    Reader,
    Reading,
    Reread,
    Writer,
    Writing,
    left_out,
)
from service.formats.gml_elevated import ELEVATIONS
from service.formats.gml_radii import RADII_IN_FEET, UNKNOWN_RADII
from service.formats.gml_values import NOT_READ
from service.formats.table.xml_parts import HOLDS, NOTHING_HELD, XML_LOSSES, of_the_file

BEGINS_BLANK = (
    rb"<[^/!?<>][^<>]*+(?<!/)>(?:<!\[CDATA\[)?+\s++(?!<)"
    rb"(?:[^<\s\d.+-]|[\d.+-][\d.,eE+\-\s]*+[^<\d.,eE+\-\s])"
)
"""A text with blanks or line ends at its beginning; those of coordinates and other numbers do not matter.

A text behind another element, which begins so more often, is left out as a whole.
"""
BLANK = rb">(?:<!\[CDATA\[)?+\s++[^<\s]"
"""A text with blanks at its beginning, whatever is before it."""
EMPTY_IN_GML = rb"<(?!gml:)([\w:.-]++)(?:\s?/>|>\s*+</\1>)"
LETTERS_IN_POSITIONS = (
    rb"<(?:gml:(?:pos(?:List)?+|coordinates)|posList)\b[^<>]*+>"
    rb"(?:[^<a-zA-Z\x80-\xff]++(?:(?<=[\d.])[eE])?+)*+[a-zA-Z\x80-\xff]"
)
"""Coordinates with anything that belongs to no number; the separators of numbers may be any signs."""
COMMA_IN_POSITIONS = rb"<(?:gml:pos(?:List)?+|posList)\b[^<>]*+>[^<,]*+,"
_POSITION = rb"<gml:pos(?:\s[^<>]*+)?>\s*+[^\s<]++\s++[^\s<]++"
FLAT_POSITION, HIGH_POSITION = _POSITION + rb"\s*+</", _POSITION + rb"\s++[^\s<]++\s*+</"
_BETWEEN = (
    rb"\s*+(?:</?+gml:(?:Line\w{5,15}|Curve|Polygon|segments|(?:line|curve|polygon|surface)(?:String)?Members?"
    rb"|exterior|interior)\b[^<>]*+>\s*+)++"
)
FLAT_LIST_BESIDE_HIGH = (
    rb"<gml:posList srsDimension=\"(?P<size>[23])\">[^<]*+</gml:posList>"
    + _BETWEEN
    + rb"<gml:posList srsDimension=\"(?!(?P=size))[23]\">"
)
"""Lists of positions of two numbers and of three, one behind the other in a geometry."""
_IN_SPACE = rb"[^<>]*?\ssrsDimension\s?=\s?[\"']3"
HIGH_GEOMETRY = rb"<gml:(?!Envelope)\w" + _IN_SPACE
FLAT_GEOMETRY = (
    rb"<(?!gml:)[\w:.-]++[^<>]*+>\s*+(?:<gml:(?!pos)\w(?!"
    + _IN_SPACE
    + rb")[^<>]*+>\s*+)++<gml:posList\b(?!"
    + _IN_SPACE
    + rb")[^<>]*+>"
)
"""The first list of positions of a geometry, if no element around it says that they have three numbers."""
BOXES = rb"</gml:(?:Envelope|Box)>\s*+</(?!(?:\w{1,20}+:)?+boundedBy>)[\w.:-]++>"
"""A box that is the value of a property, not the bounds of a feature or of all."""
_VALUED = rb"(?:\s[^<>]*+(?<!/))?>"
ACCURACY_OF_AIXM = rb"<aixm:horizontalAccuracy" + _VALUED
HEIGHTS_OF_AIXM = (
    rb"</(?:aixm:(?:elevation|geoidUndulation|horizontalAccuracy|verticalDatum)|gml:(?:pos|segments|patches))>\s*+"
    rb"<aixm:vertical(?:Datum|Accuracy)" + _VALUED
)
"""What a geometry of AIXM says of its elevation; the vertical datum of an airport is a value of a feature."""
INFORMATION_IN_GML = of_the_file(
    rb"(?:\w{1,20}+:)?+FeatureCollection\b",
    rb"(?:\w{1,20}+:)?+(?:FeatureCollection|\w*+(?:(?<=[mM]ember)|(?<=[mM]embers)))\b",
    rb"gml:(?:name|description)" + HOLDS,
)
PAGE_TOLD = "The file is one page of a longer answer of a server (WFS); the features of the other pages are not in it."
PAGE_OF_WFS = rb"<(?:\w{1,20}+:)?+FeatureCollection\b[^<>]{0,4000}?\snext\s?="

_READ_ATTRIBUTES = (
    rb"(?:(?:gml|xlink|xml|xsi):[\w.-]++|(?:fid|uom|value|srs(?:Name|Dimension)|(?:axis|uom)Labels|dimension|count|decimal"
    rb"|[ct]s|interpolation|orientation|num(?:Arc|DerivativesAt\w+)|owns|codeSpace|nilReason))\s*+="
)
"""Attributes that are read, that belong to geometries, or that are counted as words."""
OTHER_ATTRIBUTES = (
    rb"<(?!gml:|wfs:|gen:)[\w:.-]++(?=\s)(?![^<>]*?\sxmlns)(?:\s++"
    + _READ_ATTRIBUTES
    + rb"\s*+(?:\"[^\"<>]*+\"|'[^'<>]*+'))*+\s++(?!"
    + _READ_ATTRIBUTES
    + rb")[\w:.-]++\s*+=\s*+[\"']"
)
"""A feature or value with an attribute of its own; those of the outermost element come with its namespaces."""
CENTERED_ARCS = rb"<(?:gml:)?+(?:Circle|Arc)ByCenterPoint\b"
_DEGREES = rb"[^\"'<>]{0,60}(?:\b(?:4326|4258|4979)|CRS84)[\"']"
IN_DEGREES = rb"srsName\s?+=\s?+[\"']" + _DEGREES
NOT_IN_DEGREES = rb"srsName\s?+=\s?+[\"'](?!" + _DEGREES + rb")[^\"'<>]{0,60}[\"']"
"""A system that is not one of the usual ones in degrees."""
_REFERENCES, _ATTRIBUTES = (b"xlink:href=",), (b" codeSpace=", b" nilReason=", b" xml:lang=")
_NO_WORD = rb"=" + b"".join(rb"(?<!%b)" % word for word in (*_REFERENCES, *_ATTRIBUTES))
_ID = rb"(?:[^\"<>&=]++|" + _NO_WORD + rb")*+"
_NUMBER = rb"[+-]?+[\d.]++(?:(?<=[\d.])[eE][+-]?+\d++)?+"
_NUMBERS = rb"(?:[\d.,+\-\s]++(?:(?<=[\d.])[eE])?+)++"
_ALIKE = Alike(
    elements=(
        rb"<(?=\w)(?:((?:\w{1,20}+:)?+(?:featureM|m)ember)[\s>]"
        rb"|(?:\w{1,20}+:)?+featureMembers\b[^<>]*+>\s*+<([\w:.-]++)[\s>])"
    ),
    missing=rb"<(?!gml:)[\w:.-]++",
    text=rb"(?!\s)(?:[^<>=]++|" + _NO_WORD + rb")++",
    texts={
        b"pos": tuple(rb"\s*+" + rb"\s++".join([_NUMBER] * axes) + rb"\s*+" for axes in (2, 3)),
        b"posList": (_NUMBERS,),
        b"coordinates": (_NUMBERS,),
    },
    attributes=dict.fromkeys((b"gml:id", b"fid", b"xlink:href"), (_ID,)),
)

_LEFT_OUT = {
    "Blanks and line ends at the beginning of texts ({count}) were left out.": LeftOut(
        pattern=BEGINS_BLANK, sign=BLANK
    ),
    NOTHING_HELD: LeftOut(pattern=EMPTY_IN_GML),
    "Coordinates of geometries ({count}) that are not numbers were read as 0, or in part.": LeftOut(
        pattern=LETTERS_IN_POSITIONS
    ),
    "Commas in the elements pos and posList ({count}) were read as separators of coordinates, like blanks. If they are "
    "decimal commas, write decimal points and send the file again.": LeftOut(pattern=COMMA_IN_POSITIONS, within=b","),
    "Geometries that are boxes (Envelope or Box, {count}) were left out. Write them as Polygon to keep them.": LeftOut(
        pattern=BOXES
    ),
    "The name or description of the whole collection was left out.": LeftOut(
        pattern=INFORMATION_IN_GML, within=b"FeatureCollection"
    ),
    PAGE_TOLD: LeftOut(pattern=PAGE_OF_WFS, within=b"next="),
    "Positions of two numbers ({count}) got the elevation 0 where others of their layer have three.": LeftOut(
        pattern=FLAT_POSITION, beside=HIGH_POSITION
    ),
    "Geometries without elevations ({count}) got the elevation 0 where others of their layer have some.": LeftOut(
        pattern=FLAT_GEOMETRY, within=b"<gml:posList", beside=HIGH_GEOMETRY, column=ANY_FLAT
    ),
    "Lists of positions of two numbers ({count}), "
    "beside others of three in the same geometry, got the elevation 0.": LeftOut(pattern=FLAT_LIST_BESIDE_HIGH),
    "Horizontal accuracies of AIXM geometries ({count}) were left out.": LeftOut(
        pattern=ACCURACY_OF_AIXM, within=b"<aixm:horizontalAccuracy"
    ),
    "Vertical datums and accuracies of AIXM geometries ({count}) were left out.": LeftOut(
        pattern=HEIGHTS_OF_AIXM, within=b"<aixm:vertical", releases="-3.10"
    ),
    "Elevations of AIXM geometries ({count}), which are values beside their coordinates, were left out.": LeftOut(
        pattern=ELEVATIONS, within=b"elevation"
    ),
    "References to other elements (xlink:href, {count}) were left out.": LeftOut(words=_REFERENCES),
    "Attributes of features and values ({count}), such as codeSpace, nilReason and xml:lang, were left out.": LeftOut(
        words=_ATTRIBUTES, pattern=OTHER_ATTRIBUTES
    ),
    "Circles and arcs around a center in degrees ({count}) became lines of short segments.": LeftOut(
        pattern=CENTERED_ARCS, beside=IN_DEGREES, within=b"ByCenterPoint"
    ),
    "Radii of circles and arcs ({count}) without a unit, or in an unknown one, were read as numbers in the unit of "
    'the coordinates. Write them in meters (uom="m").': LeftOut(pattern=UNKNOWN_RADII, within=b"radius"),
    "Radii of circles and arcs in feet ({count}) were read as numbers in the unit of the coordinates, unless these "
    "are degrees. If that unit is not the foot, write them "
    'in meters (uom="m").': LeftOut(pattern=RADII_IN_FEET, within=b"radius", beside=NOT_IN_DEGREES, releases="-3.10"),
    "Geodesic lines ({count}), the shortest ways on the Earth, became straight ones "
    "between the same positions.": LeftOut(pattern=rb"<(?:\w{1,20}+:)?+Geodesic(?:String)?+[\s>]", within=b"Geodesic"),
}
GML = Format(
    name="Gml",
    token="gml",
    title="GML",
    extensions=(".gml",),
    reading=Reading(
        drivers=("GML",),
        reader=Reader.GML,
        declares=Declares.XML,
        options=("WRITE_GFS=NO",),
        environment={"GML_FIELDTYPES": "ALWAYS_STRING"},
        left_out=left_out(_LEFT_OUT),
        alike=_ALIKE,
        overflows=frozenset({"infinite", "nans"}),
        guesses_types=True,
        # of the bounds of a feature, the driver of GDAL 3.10 makes columns
        noise_columns={"gml_id": ("{layer}.#",), "lowerCorner": ("*",), "upperCorner": ("*",)},
    ),
    writing=Writing(
        empty_columns=False,
        driver="GML",
        reread=Reread(drivers=("GML",), options=("WRITE_GFS=NO",)),
        empty_is_null=True,
        value_losses=XML_LOSSES | {"beyond_15_digits", "like_numbers", "empty_texts", "leading_blanks"},
        extension=".gml",
        media_type="application/gml+xml; version=3.2",
        writer=Writer.AT_ONCE,
        options=("-dsco", "FORMAT=GML3.2", "-dsco", "XSISCHEMA=OFF", "-dsco", "WRITE_FEATURE_BOUNDED_BY=NO"),
        multi_layer=True,
        needs_every_axis=True,
        records_compound=False,
        curves=True,
        column_names=ColumnRule.GML,
        reserved_columns=("gml_id",),  # makes identifiers of the values, which may be repeated, or no names of XML
        geometry_names=("geometryProperty", "geometry", "the_geom"),
        geometry_elements=NOT_READ,
        shows_geometry_name=True,
        root_attributes='xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance"',
        trailer=b"FeatureCollection>",
    ),
)
