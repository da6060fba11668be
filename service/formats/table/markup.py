# ruff: noqa: S106 -- a token is a format's short name here
"""The rows of formats that are XML: GML, GPX, KML and KMZ."""

from types import MappingProxyType

import msgspec

from service.formats.crs import WGS84
from service.formats.facts import FieldType
from service.formats.format import ColumnRule, Delivery, Format, LeftOut, Reader, Reading, Reread, Writer, Writing
from service.formats.geometry import Family
from service.formats.unread import NO_UTF_16

_KML_NOISE = MappingProxyType(
    {
        **dict.fromkeys(("Name", "description", "timestamp", "begin", "end", "drawOrder", "icon", "snippet"), ()),
        "tessellate": ("-1",),
        "extrude": ("0", "-1"),
        "visibility": ("-1",),
        "altitudeMode": ("absolute", "clampToGround"),
        "id": ("{layer}.*",),
    }
)
BEGINS_BLANK = rb">(?:<!\[CDATA\[)?\s++(?:[^<\s\d.+-]|[\d.+-][\d.,eE+\-\s]*+[^<\d.,eE+\-\s])"
"""A text with blanks or line ends at its beginning; those of coordinates and other numbers do not matter."""
_REFERENCE = rb"&#(?:9|10|13|32|[xX](?:9|[aA]|[dD]|20));"
SIMPLE_BEGINS_BLANK = rb"<SimpleData[^<>]*+>(?:<!\[CDATA\[)?(?:\s|" + _REFERENCE + rb")++[^<\s]"
SIMPLE_ENDS_BLANK = (
    rb"</SimpleData>(?:(?<= </SimpleData>)|(?<= \]\]></SimpleData>)|(?<=&#32;</SimpleData>)|(?<=&#x20;</SimpleData>))"
)
"""A value with a blank at its end. It begins with fixed bytes, which are found in an eighth of the time of a choice."""
SIMPLE_EMPTY = rb"<SimpleData\b[^<>]*+(?:(?<=/)>|>\s*+(?:<!\[CDATA\[\s*+\]\]>\s*+)?</SimpleData>)"
SIMPLE_NUMBERS = rb"<SimpleField\b[^<>]*?\stype\s*=\s*[\"'](?i:u?int|u?short|float|double|bool)[\"']"
_SNIPPET = rb"nippet(?:\s[^<>]*+)?(?<!/)>"
SNIPPET = _SNIPPET + rb"\s*+(?:[^<\s]|<!\[CDATA\[\s*+[^\]\s])"
SNIPPET_WITH_BLANKS = _SNIPPET + rb"(?:<!\[CDATA\[)?(?:\s++[^<\s]|[^<\s][^<]*+(?<=\s)</)"
"""Snippets that are not empty; without their first letter, which may be a capital, they are found sooner."""
SCHEMA = rb"<Schema\b"
EMPTY_IN_GML = rb"<(?!gml:)([\w:.-]++)(?:\s?/>|></\1>)"
EMPTY_IN_GPX = rb"<(?!(?:gpx|metadata|author|copyright|rte|trk|trkseg|extensions)\b)([\w:.-]++)(?:\s?/>|></\1>)"
"""An element without content; those with attributes may hold something there."""
LINES_IN_GPX = (
    rb">(?:<!\[CDATA\[)?+(?!\s*+<)[^<>\n]*+\n[^<>]*+>?+"
    rb"</(?!(?:name|cmt|desc|src|sym|type|text|author|keywords|email|urlname)>)[\w:.-]++>"
)
"""A text with line ends in an extension, of which the driver joins the lines."""
NESTED_IN_GPX = rb"<[\w.-]++:[\w.-]++(?:\s[^<>]*+)?(?<!/)>\s*+<[\w.-]++:"
"""Elements in an element of another namespace."""
_READ = (
    rb"(?:ele|time|magvar|geoidheight|name|cmt|desc|src|link|number|sym|type|fix|sat|[hvp]dop|ageofdgpsdata|dgpsid)\b"
)
_OLDER = rb"(?:url|urlname|course|speed)\b"
_ENCLOSING = rb"(?:wpt|(?:rte|trk)(?:pt|seg)?|extensions|metadata|author|copyright|keywords)\b"
_REST = (
    rb"\s*+(?:<(?:" + _READ + rb"|" + _OLDER + rb")[^<>]*+(?:(?<=/)>"
    rb"|>(?:<!\[CDATA\[(?:[^\]<]++|<(?!!))*+\]\]>|[^<>]*+)"
    rb"(?:<(?:text|type)>[^<>]*+</(?:text|type)>\s*+)*+</[\w:.-]++>)\s*+)*+"
)
"""What may follow an element in its parent. So that no byte is read twice, a match takes it whether or not the parent
ends there, which fills the group."""
UNREAD_IN_GPX = (
    rb"</(?!"
    + _READ
    + rb"|"
    + _OLDER
    + rb"|"
    + _ENCLOSING
    + rb")[\w:.-]++>"
    + _REST
    + rb"(</(?:wpt|(?:rte|trk)pt)>|<(?:extensions|trkseg|rtept)\b)?"
    rb"|</url(?:name)?+>" + _REST + rb"(<(?:trkseg|rtept)\b)?"
)
"""The last element that the driver does not read in a point, route or track, outside of its extensions."""
OLDER_IN_GPX = rb"</" + _OLDER + rb">" + _REST + rb"(</(?:wpt|(?:rte|trk)pt)>|<extensions\b)?"
"""Elements of GPX 1.0 in a point, which the driver reads if the file declares that version."""
NOT_GPX_1_0 = rb"<gpx\b(?![^<>]*\sversion\s*=\s*[\"']1\.0[\"'])"
_GEOMETRY = (
    rb"(?:\w{1,20}:)?(?:Point|LineString|Polygon|Curve|Surface|Solid"
    rb"|Multi(?:Point|LineString|Polygon|Curve|Surface|Geometry))"
)
_START, _END = rb"<[\w:.-]++(?:\s[^<>]*+)?(?<!/)>\s*+", rb"</[\w:.-]++>\s*+"
_VALUE, _EMPTY = _START + rb"[^<>]*+" + _END, rb"<[\w:.-]++(?:\s[^<>]*+(?<=/)|/)>\s*+"
SECOND_GEOMETRY = (
    rb"</"
    + _GEOMETRY
    + rb">\s*+</(?!(?:\w{1,20}:)?(?:\w{0,12}[mM]embers?|exterior|interior)>)[\w:.-]++>\s*+(?:"
    + rb"|".join((_VALUE, _EMPTY, _START + rb"(?:" + _VALUE + rb"|" + _EMPTY + rb")*+" + _END))
    + rb")*+("
    + _START
    + rb"<"
    + _GEOMETRY
    + rb"[\s>])?"
)
"""Two properties of one feature that are geometries, perhaps with values between them; parts of one are none.

The group is the second one. A match without it passes the values, which would be searched again after every geometry.
"""


def _of_the_file(starts: bytes, ends: bytes, wanted: bytes) -> bytes:
    """What a user wrote about a file, not about a feature: the first of the elements `wanted` between two others.

    All are regular expressions of what follows `<`. So that no byte is read twice, a match never goes beyond `ends`,
    among which are `starts`.
    """
    passed = rb"[^<]*+(?:<(?!" + ends + rb"|" + wanted + rb")[^<]*+)*+"
    return rb"<" + starts + passed + rb"<(?:" + wanted + rb")"


_HOLDS = rb"\b[^<>]*+(?<!/)>\s*+(?:<!\[CDATA\[\s*+)?+[^<\s\]]"
INFORMATION_IN_GPX = _of_the_file(
    rb"(?:gpx|metadata)\b",
    rb"(?:gpx|metadata|wpt|rte|trk)\b|/metadata>",
    rb"(?:name|desc|author|keywords)" + _HOLDS + rb"|(?:copyright|email)\b[^<>]*?\s(?:author|id)\s*=\s*[\"'][^\"']",
)
INFORMATION_IN_KML = _of_the_file(
    rb"(?:Document|Folder)\b",
    rb"(?:Document|Folder|Placemark|(?:Ground|Screen|Photo)Overlay|NetworkLink|gx:Tour|Style|Schema)",
    rb"description" + _HOLDS + rb"|(?:atom:)?author\b[^<>]*+(?<!/)>\s*+<[^/]",
)
INFORMATION_IN_GML = _of_the_file(
    rb"(?:\w{1,20}:)?FeatureCollection\b",
    rb"(?:\w{1,20}:)?(?:FeatureCollection|\w*+(?:(?<=[mM]ember)|(?<=[mM]embers)))\b",
    rb"gml:(?:name|description)" + _HOLDS,
)
_PLACE = rb"(?:Point|LineString|LinearRing|Polygon|MultiGeometry|gx:(?:Multi)?Track)\b"
_BESIDE_PLACES = rb"[^<]*+(?:<(?!" + _PLACE + rb"|/?Placemark\b)[^<]*+)*+"
SECOND_GEOMETRY_IN_KML = (
    rb"<Placemark\b"
    + _BESIDE_PLACES
    + rb"(?:<(?P<place>"
    + _PLACE
    + rb")[^<]*+(?:<(?!/(?P=place)|(?P=place)|/?Placemark\b)[^<]*+)*+</(?P=place)"
    + _BESIDE_PLACES
    + rb"){2}"
)
"""A feature with two geometries. So that no byte is read twice, no match goes beyond the feature.

A collection that holds collections is not looked into.
"""
NOTHING_HELD = "Empty elements ({count}) became missing values; columns that hold nothing else were left out."
_KML_LEFT_OUT = (
    LeftOut(
        (b"<NetworkLink>", b"<NetworkLink "),
        "Network links ({count}) were not followed; what they lead to outside of the file is not in the result.",
        is_content=True,
    ),
    LeftOut(
        (b"<GroundOverlay", b"<ScreenOverlay", b"<PhotoOverlay"),
        "Images of overlays ({count}) were left out; what is left of a ground overlay is its outline.",
        is_content=True,
    ),
    LeftOut((b"<gx:Tour", b"<Model>", b"<Model "), "Tours and models ({count}) were left out.", is_content=True),
    LeftOut(
        (),
        "Features with several geometries outside of a MultiGeometry ({count}): only the last of each is read.",
        pattern=SECOND_GEOMETRY_IN_KML,
    ),
    LeftOut((b"<Placemark id=",), "Ids of features ({count}) were left out.", column="id"),
    LeftOut((), "Blanks and line ends at the beginning of texts ({count}) were left out.", pattern=SIMPLE_BEGINS_BLANK),
    LeftOut((), "Blanks at the end of texts ({count}) were left out.", pattern=SIMPLE_ENDS_BLANK),
    LeftOut(
        (),
        "Empty values ({count}) became 0 in columns that the file declares as numbers, and empty texts in others.",
        pattern=SIMPLE_EMPTY,
        beside=SIMPLE_NUMBERS,
    ),
    LeftOut((), "Blanks around snippets ({count}) were left out.", pattern=SNIPPET_WITH_BLANKS),
    LeftOut((), "Snippets ({count}) were left out.", pattern=SNIPPET, beside=SCHEMA, column="snippet"),
    LeftOut(
        (),
        "Data of features ({count}) may have been left out: beside a Schema, only what it declares is read.",
        pattern=rb"<Data\b",
        beside=SCHEMA,
    ),
    LeftOut(
        (), "Descriptions and authors of documents and folders ({count}) were left out.", pattern=INFORMATION_IN_KML
    ),
    LeftOut((b"<address>", b"<phoneNumber>"), "Addresses and phone numbers of features ({count}) were left out."),
    LeftOut((b"<Style", b"<styleUrl"), "Styles, such as colours and icons, were left out."),
    LeftOut((b"<LookAt", b"<Camera"), "Views (LookAt and Camera, {count}) were left out."),
    LeftOut(
        (b">relativeToGround<", b">clampToGround<", b">relativeToSeaFloor<", b">clampToSeaFloor<"),
        "Altitude modes other than absolute ({count}) were left out; elevations were taken as they are.",
    ),
)
_KML_READING = Reading(
    drivers=("LIBKML",),
    reader=Reader.KML,
    is_xml=True,
    root='<kml xmlns="http://www.opengis.net/kml/2.2">',
    inside_root=frozenset({"Document", "Folder", "Placemark", "GroundOverlay"}),
    zoned_texts=True,
    # the driver would replace all but ASCII letters and digits in names, and keep one of those that become the same
    environment=MappingProxyType({"LIBKML_LAUNDER_FIELD_NAMES": "NO"}),
    overflows=frozenset({"infinite", "at_32_bits"}),
    noise_columns=_KML_NOISE,
    feature_word=b"Placemark",
    left_out=_KML_LEFT_OUT,
)
_KML = Writing(
    driver="KML",
    reread=Reread(drivers=("LIBKML",)),
    empty_columns_lost=frozenset({"name", "description"}),
    value_losses=frozenset(
        {"infinite", "near_infinite", "moments", "binary_texts", "leading_blanks", "carriage_returns", "control"}
    ),
    extension=".kml",
    media_type="application/vnd.google-earth.kml+xml",
    writer=Writer.AT_ONCE,
    options=("-mapFieldType", "Integer64=String,Date=String,DateTime=String,Time=String,Binary=String"),
    multi_layer=True,
    epsg=WGS84,
    column_names=ColumnRule.XML,
    wraps_dateline=True,
    mixes_z=False,
    z_options=("-dsco", "AltitudeMode=absolute"),
    trailer=b"</kml>",
)
_GPX_ORDER = ("route_fid", "route_point_id", "track_fid", "track_seg_id", "track_seg_point_id")
GPX_NUMBERS = frozenset(
    {"ele", "magvar", "geoidheight", "sat", "hdop", "vdop", "pdop", "ageofdgpsdata", "dgpsid", "number", *_GPX_ORDER}
)

GML = Format(
    name="Gml",
    token="gml",
    title="GML",
    extensions=(".gml",),
    reading=Reading(
        drivers=("GML",),
        is_xml=True,
        unread=NO_UTF_16,
        options=("WRITE_GFS=NO",),
        environment=MappingProxyType({"GML_FIELDTYPES": "ALWAYS_STRING"}),
        left_out=(
            LeftOut(
                (), "Blanks and line ends at the beginning of texts ({count}) were left out.", pattern=BEGINS_BLANK
            ),
            LeftOut((), NOTHING_HELD, pattern=EMPTY_IN_GML),
            LeftOut(
                (),
                "Further geometries of features ({count}) were left out: of the geometries of a feature, one is read.",
                pattern=SECOND_GEOMETRY,
            ),
            LeftOut((), "The name or description of the whole collection was left out.", pattern=INFORMATION_IN_GML),
            LeftOut((b"xlink:href=",), "References to other elements (xlink:href, {count}) were left out."),
        ),
        overflows=frozenset({"infinite"}),
        guesses_types=True,
        # of the bounds of a feature, the driver of GDAL 3.10 makes columns
        noise_columns=MappingProxyType({"gml_id": ("{layer}.*",), "lowerCorner": ("*",), "upperCorner": ("*",)}),
    ),
    writing=Writing(
        driver="GML",
        reread=Reread(drivers=("GML",), options=("WRITE_GFS=NO",)),
        empty_is_null=True,
        value_losses=frozenset(
            {
                "leading_zeros",
                "infinite",
                "near_infinite",
                "empty_texts",
                "binary_texts",
                "leading_blanks",
                "carriage_returns",
                "control",
            }
        ),
        extension=".gml",
        media_type="application/gml+xml; version=3.2",
        writer=Writer.AT_ONCE,
        options=("-dsco", "FORMAT=GML3.2", "-dsco", "XSISCHEMA=OFF", "-dsco", "WRITE_FEATURE_BOUNDED_BY=NO"),
        multi_layer=True,
        needs_every_axis=True,
        curves=True,
        column_names=ColumnRule.XML,
        geometry_names=("geometryProperty", "geometry", "the_geom"),
        shows_geometry_name=True,
        root_attributes='xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance"',
        trailer=b"FeatureCollection>",
    ),
)

_WHOLE, _DECIMAL = frozenset({FieldType.INTEGER}), frozenset({FieldType.INTEGER, FieldType.REAL})
GPX_TYPES = MappingProxyType(
    {
        Family.POINT: {
            **dict.fromkeys(("ele", "magvar", "geoidheight", "hdop", "vdop", "pdop", "ageofdgpsdata"), _DECIMAL),
            **dict.fromkeys(("sat", "dgpsid"), _WHOLE),
            "time": frozenset({FieldType.DATE, FieldType.DATETIME}),
        },
        Family.LINE: {"number": _WHOLE},
    }
)
"""The elements that are no texts; the driver writes a text in one of them as 0, or leaves it out."""

GPX = Format(
    name="Gpx",
    token="gpx",
    title="GPX",
    extensions=(".gpx",),
    reading=Reading(
        drivers=("GPX",),
        reader=Reader.GPX,
        is_xml=True,
        root='<gpx version="1.1" xmlns="http://www.topografix.com/GPX/1/1">',
        inside_root=frozenset({"metadata", "wpt", "rte", "trk"}),
        zoned_texts=True,
        unread=NO_UTF_16,
        environment=MappingProxyType({"GPX_ELE_AS_25D": "YES"}),
        left_out=(
            LeftOut((), NOTHING_HELD, pattern=EMPTY_IN_GPX),
            LeftOut(
                (),
                "What the file says of itself (name, description, author, copyright or keywords) was left out.",
                pattern=INFORMATION_IN_GPX,
            ),
            LeftOut(
                (),
                "Line ends in texts of extensions ({count}) were left out; words beside them may have been joined.",
                pattern=LINES_IN_GPX,
            ),
            LeftOut(
                (),
                "Elements within elements of extensions ({count}) were not read; their columns are 0, or hold XML.",
                pattern=NESTED_IN_GPX,
            ),
            LeftOut(
                (),
                "Elements that GPX 1.1 does not define were left out of points, routes and tracks ({count}): "
                "only those within extensions are read.",
                pattern=UNREAD_IN_GPX,
            ),
            LeftOut(
                (),
                "Elements of GPX 1.0, such as speed, course and url, were left out of points ({count}). To keep them, "
                'declare version="1.0" in the file.',
                pattern=OLDER_IN_GPX,
                beside=NOT_GPX_1_0,
            ),
        ),
        fixed_layers=True,
        derived_layers=frozenset({"route_points", "track_points"}),
        derived_columns=frozenset({*_GPX_ORDER, "ele"}),
        column_prefix="ogr_",
        numbers=GPX_NUMBERS,
        noise_columns=MappingProxyType({"*": ()}),
    ),
    writing=Writing(
        driver="GPX",
        reread=Reread(
            drivers=("GPX",), environment=MappingProxyType({"GPX_ELE_AS_25D": "YES"}), columns=False, is_one=True
        ),
        empty_columns_lost=frozenset({"*"}),
        value_losses=frozenset(
            {"infinite", "near_infinite", "moments", "binary_texts", "carriage_returns", "control", "like_markup"}
        ),
        typed_columns=GPX_TYPES,
        live_text="<",
        extension=".gpx",
        media_type="application/gpx+xml",
        writer=Writer.TRACKS,
        options=(
            "-dsco",
            "GPX_USE_EXTENSIONS=YES",
            "-mapFieldType",
            "Integer64=String,Real=String",
            "-lco",
            "FORCE_GPX_TRACK=YES",
        ),
        multi_layer=True,
        epsg=WGS84,
        holds=frozenset({Family.POINT, Family.LINE}),
        null_geometry=False,
        tables=False,
        column_names=ColumnRule.XML,
        splits=frozenset({"MultiPoint"}),
        elevation_column="ele",
        wraps_dateline=True,
        trailer=b"</gpx>",
    ),
)

KML = Format(
    name="Kml",
    token="kml",
    title="KML",
    extensions=(".kml",),
    reading=_KML_READING,
    writing=_KML,
)

KMZ = Format(
    name="Kmz",
    token="kmz",
    title="KMZ",
    extensions=(".kmz",),
    reading=msgspec.structs.replace(_KML_READING, member=".kml", outline_word=b"GroundOverlay"),
    writing=msgspec.structs.replace(
        _KML, extension=".kmz", media_type="application/vnd.google-earth.kmz", member=".kml", delivery=Delivery.KMZ
    ),
)
