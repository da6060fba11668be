# ruff: noqa: S106 -- a token is a format's short name here
"""The row of GPX."""

from collections.abc import Mapping

from service.formats.crs import WGS84
from service.formats.facts import FieldType
from service.formats.format import (
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
from service.formats.geometry import Family
from service.formats.gpx_times import FINE, FINE_TOLD, PLAIN_TIME
from service.formats.table.xml_parts import HOLDS, NOTHING_HELD, XML_LOSSES, of_the_file

EMPTY_IN_GPX = rb"<(?!(?:gpx|metadata|author|copyright|rte|trk|trkseg|extensions)\b)([\w:.-]++)(?:\s?/>|>[\r\n]*+</\1>)"
"""An element without content but line ends; those with attributes may hold something there."""
LINES_IN_GPX = (
    rb">(?:<!\[CDATA\[)?+(?!\s*+<)[^<>\n]*+\n[^<>]*+>?+"
    rb"</(?!(?:name|cmt|desc|src|sym|type|text|author|keywords|email|urlname|ele|time|magvar|geoidheight|number|fix|sat"
    rb"|[hvp]dop|ageofdgpsdata|dgpsid)>)[\w:.-]++>"
)
"""A text with line ends in an extension, of which the driver joins the lines."""
NESTED_IN_GPX = rb"<[\w.-]++:[\w.-]++(?:\s[^<>]*+)?(?<!/)>\s*+<[\w.-]++:"
"""Elements in an element of another namespace."""
ATTRIBUTES_IN_EXTENSIONS = (
    rb"<extensions>\s*+(?:<([\w.:-]++)>[^<>]*+</\1>\s*+)*+<[\w.:-]++\s++(?!xmlns)[\w.:-]++\s*+=\s*+([\"'])"
)
"""Extensions of which the first that is more than a text has attributes. A match fills its last group."""
_READ = (
    rb"(?:ele|time|magvar|geoidheight|name|cmt|desc|src|link|number|sym|type|fix|sat|[hvp]dop|ageofdgpsdata|dgpsid)\b"
)
_OLDER = rb"(?:url|urlname|course|speed)\b"
_DEGREES = rb"\s*+=\s*+[\"']\s*+[+-]?+(?:\d++\.?+\d*+|\.\d++)(?:[eE][+-]?+\d++)?+\s*+[\"']"
_PLAIN_DEGREES = rb"-?+\d++(?:\.\d++)?+"
_PLAIN = rb"=\"" + _PLAIN_DEGREES + rb"\""
_UNREAD_POSITION = (
    rb"(?! lat"
    + _PLAIN
    + rb" lon"
    + _PLAIN
    + rb")(?!(?=[^<>]*?\slat"
    + _DEGREES
    + rb")[^<>]*?\slon"
    + _DEGREES
    + rb")[^<>]*+>"
)
"""The rest of a point without numbers as degrees: of others, the driver reads the beginning, 0 or no point.

It first passes what most programs write, which takes a third of the time.
"""
_ENCLOSING = rb"(?:wpt|(?:rte|trk)(?:pt|seg)?|extensions|metadata|author|copyright|keywords)\b"
_CONTENT = (
    rb"[^<>]*+(?:(?<=/)>|>(?:<!\[CDATA\[(?:[^\]<]++|<(?!!))*+\]\]>|[^<>]*+)"
    rb"(?:<(?:text|type)>[^<>]*+</(?:text|type)>\s*+)*+</[\w:.-]++>)\s*+)*+"
)
_REST = rb"\s*+(?:<(?:" + _READ + rb"|" + _OLDER + rb")" + _CONTENT
_ANY_REST = rb"\s*+(?:<(?!/|" + _ENCLOSING + rb")" + _CONTENT
"""What may follow an element in its parent. So that no byte is read twice, a match takes it whether or not the parent
ends there, which fills the group."""
_ITS_EXTENSIONS = (
    rb"<extensions\b[^<]*+(?:<(?!/?extensions\b)[^<]*+)*+</extensions>\s*+<(?:/(?:wpt|(?:rte|trk)(?:pt)?+)>|[\w.:-])"
)
"""Extensions of a point, route or track, and not of one of its extensions, as some programs write them.

They belong to the match, so that one is counted that ends in the next piece of a file.
"""
UNREAD_IN_GPX = (
    rb"</(?!"
    + _READ
    + rb"|"
    + _OLDER
    + rb"|"
    + _ENCLOSING
    + rb")[\w:.-]++>"
    + _REST
    + rb"(</(?:wpt|(?:rte|trk)pt)>|<(?:trkseg|rtept)\b|"
    + _ITS_EXTENSIONS
    + rb")?"
    rb"|</url(?:name)?+>" + _REST + rb"(<(?:trkseg|rtept)\b)?"
)
"""The last element that the driver does not read in a point, route or track, outside of its extensions."""
OLDER_IN_GPX = rb"</" + _OLDER + rb">" + _ANY_REST + rb"(</(?:wpt|(?:rte|trk)pt)>|<extensions\b)?"
"""Elements of GPX 1.0 in a point, which the driver reads if the file declares that version."""
NOT_GPX_1_0 = rb"<gpx\b(?![^<>]*\sversion\s*=\s*[\"']1\.0[\"'])[^<>]*+>"
INFORMATION_IN_GPX = of_the_file(
    rb"(?:gpx|metadata)\b",
    rb"(?:gpx|metadata|wpt|rte|trk)\b|/metadata>",
    rb"(?:name|desc|author|keywords)" + HOLDS + rb"|(?:copyright|email)\b[^<>]*?\s(?:author|id)\s*=\s*[\"'][^\"']",
)
_EXTENDED = rb"(?:<extensions\b[^<]*+(?:<(?!/?(?:extensions|(?:trk|rte)pt)\b)[^<]*+)*+</extensions>\s*+)?+"
_EMPTY_SEGMENTS = rb"(?:<trkseg>\s*+</trkseg>\s*+|<trkseg\s?+/>\s*+)*+"
_NEXT = rb"\s*+(?:" + _EXTENDED + rb"</trkseg>\s*+" + _EMPTY_SEGMENTS + rb"<trkseg>\s*+)?+<(?:trk|rte)pt\b"
_FLAT = rb"(?:[^<>]*+(?<=/)>|[^<]*+(?:<(?!ele\b|/?(?:trk|rte)pt\b)[^<]*+)*+</(?:trk|rte)pt>)"
_FLAT_BEFORE_HIGH = _FLAT + _NEXT + rb"[^<>]*+(?<!/)>[^<]*+(?:<(?!ele\b|/?(?:trk|rte)pt\b)[^<]*+)*+<ele\b"
_HIGH = rb"</ele>[^<]*+(?:<(?!/?(?:ele|(?:trk|rte)pt)\b)[^<]*+)*+"
_LINK = rb"<link\b[^<>]*+(?:(?<=/)>|>[^<]*+(?:<(?!/?link\b)[^<]*+)*+</link>)"
THIRD_LINK = _LINK + rb"(?:\s*+" + _LINK + rb"){2}"
"""Three consecutive links, of which the driver reads two. No byte is read more than three times."""
_ELEMENT = rb"\s*+<(?!%b/)[\w.:-]++[^<>]*+(?:(?<=/)>|>[^<>]*+</[\w.:-]++>)"
_OTHER = rb"(?:" + _ELEMENT % rb"(?P=%b)[\s>]|" + rb"){0,8}+\s*+<(?P=%b)[\s>]"
EXTENSIONS_OF_MORE = rb"</extensions>(?<!<extensions></extensions>)\s*+</(?:trkseg|metadata|gpx)>"
"""Extensions of a segment of a track, and of the whole file, which are the last elements in these."""
REPEATED_IN_GPX = (
    rb"</(?:(?!(?:wpt|rte|trk|(?:rte|trk)pt|trkseg|link|extensions|metadata)>)(?P<name>[\w.-]++)>"
    + _OTHER % (b"name", b"name")
    + rb"|(?P<own>[\w.-]++:[\w.-]++)>"
    + _OTHER % (b"own", b"own")
    + rb"(?=[^<>]*+>?+[^<>]*+</(?P=own)>(?:"
    + _ELEMENT % b""
    + rb"){0,30}+\s*+</extensions>))"
)
"""An element whose parent has another one of that name, with few others between them, so that few are read again.

Of elements with a prefix, only those count that are columns: extensions, not their parts.
"""
_ENDS_METADATA = rb"[^<]*+</time>\s*+(?:<(?:keywords>[^<]*+</keywords|bounds\b[^<>]*+)>\s*+){0,2}+</metadata"
NO_TIME_IN_GPX = rb"<time>\s*+(?!" + PLAIN_TIME + rb"</time|" + _ENDS_METADATA + rb")[^<\s][^<]{0,200}+</time"
"""A time that could not be written as the schema has it, of which some releases of the driver read nothing."""
FINE_TIME_IN_GPX = rb"<time>(?!" + _ENDS_METADATA + rb")" + FINE + rb"[^<]{0,200}+</time"
_ALIKE = Alike(
    elements=rb"<(wpt|(?:rte|trk)pt)\s",
    missing=rb"<(?!(?:ele|time)>)[\w:.-]++",
    text=rb"[^\s<>][^<>\n]*+",
    texts={b"time": (rb"(?!" + FINE + rb")" + PLAIN_TIME, PLAIN_TIME)},
    attributes=dict.fromkeys((b"lat", b"lon"), (_PLAIN_DEGREES,)),
)
_POINTS = (
    (b"wpt", "Waypoints", ("waypoints",)),
    (b"rtept", "Points of routes", ("routes", "route_points")),
    (b"trkpt", "Points of tracks", ("tracks", "track_points")),
)
"""The elements that are points, what messages call them, and the layers in which they are."""


def _start_of(element: bytes) -> bytes:
    """What finds the start of a point. It begins with bytes that are rarer than `<`, so that less is looked at."""
    return rb"pt\b(?<=<" + element + rb")"


def _flat_beside_high(element: bytes, called: str, layers: tuple[str, ...]) -> tuple[LeftOut, LeftOut]:
    """Points of lines without an elevation next to one with it. No byte is read more than a few times."""
    told = f"{called} without elevations, next to others that have them, got the elevation 0 in their lines."
    end, lines = b"</" + element + b">", layers[:1]
    return (
        LeftOut(sentence=told, pattern=_start_of(element) + _FLAT_BEFORE_HIGH, within=b"<" + element, layers=lines),
        LeftOut(sentence=told, pattern=_HIGH + end + _NEXT + _FLAT, within=end, layers=lines),
    )


_LEFT_OUT = {
    NOTHING_HELD: LeftOut(pattern=EMPTY_IN_GPX),
    **{
        f"{called} ({{count}}) whose lat or lon is missing or no number, such as 52,5, were left out or read wrongly. "
        "Write numbers with decimal points.": LeftOut(
            pattern=_start_of(element) + _UNREAD_POSITION, within=b"<" + element, layers=layers
        )
        for element, called, layers in _POINTS
    },
    "The metadata of the file (name, description, author, copyright or keywords) was left out.": LeftOut(
        pattern=INFORMATION_IN_GPX
    ),
    "Points, routes and tracks with more than two links kept the first two.": LeftOut(pattern=THIRD_LINK),
    "Elements that a point, route or track has more than once ({count}), such as a second name, were left out: the "
    "last one is read.": LeftOut(pattern=REPEATED_IN_GPX),
    "Times ({count}) that cannot be read were left out. Write them like 2020-01-02T03:04:05Z.": LeftOut(
        pattern=NO_TIME_IN_GPX
    ),
    FINE_TOLD: LeftOut(pattern=FINE_TIME_IN_GPX),
}
_LEFT_OUT_OF_EXTENSIONS = {
    "Line ends in texts of extensions ({count}) were left out; words beside them may have been joined.": LeftOut(
        pattern=LINES_IN_GPX
    ),
    "Elements within elements of extensions ({count}) were not read; their columns are 0, or hold XML.": LeftOut(
        pattern=NESTED_IN_GPX, beside=rb"<extensions\b"
    ),
    "Attributes of elements in extensions were left out of at least {count} of the points, routes and tracks.": LeftOut(
        pattern=ATTRIBUTES_IN_EXTENSIONS
    ),
    "Extensions of segments of tracks, and of the whole file ({count}), were left out.": LeftOut(
        pattern=EXTENSIONS_OF_MORE
    ),
    "Elements that GPX 1.1 does not define were left out of {count} of the points, routes and tracks: only those "
    "within extensions are read.": LeftOut(pattern=UNREAD_IN_GPX),
    "Elements of GPX 1.0, such as speed, course and url, were left out of at least {count} of the points. To keep "
    'them, declare version="1.0" in the file.': LeftOut(pattern=OLDER_IN_GPX, beside=NOT_GPX_1_0),
}

_GPX_ORDER = ("route_fid", "route_point_id", "track_fid", "track_seg_id", "track_seg_point_id")
GPX_NUMBERS = frozenset(
    {"ele", "magvar", "geoidheight", "sat", "hdop", "vdop", "pdop", "ageofdgpsdata", "dgpsid", "number", *_GPX_ORDER}
)
_WHOLE, _DECIMAL = frozenset({FieldType.INTEGER}), frozenset({FieldType.INTEGER, FieldType.REAL})
GPX_TYPES: Mapping[Family, Mapping[str, frozenset[FieldType]]] = {
    Family.POINT: {
        **dict.fromkeys(("ele", "magvar", "geoidheight", "hdop", "vdop", "pdop", "ageofdgpsdata"), _DECIMAL),
        **dict.fromkeys(("sat", "dgpsid"), _WHOLE),
        "time": frozenset({FieldType.DATE, FieldType.DATETIME}),
    },
    Family.LINE: {"number": _WHOLE},
}
"""The elements that are no texts; the driver writes a text in one of them as 0, or leaves it out."""

_OF_ALL = frozenset({"name", "cmt", "desc", "src", "type"}) | {
    f"link{number}_{part}" for number in (1, 2) for part in ("href", "text", "type")
}
GPX_COLUMNS: Mapping[Family, frozenset[str]] = {
    Family.POINT: _OF_ALL | {"sym", "fix"} | GPX_TYPES[Family.POINT].keys(),
    Family.LINE: _OF_ALL | GPX_TYPES[Family.LINE].keys(),
}
"""What GPX defines of waypoints and tracks."""
PREFIX = "ogr_"
"""What the driver puts before the names of extensions when it reads them, and leaves out when it writes them."""

GPX = Format(
    name="Gpx",
    token="gpx",
    title="GPX",
    extensions=(".gpx",),
    reading=Reading(
        drivers=("GPX",),
        reader=Reader.GPX,
        shortest_edges=True,
        declares=Declares.XML,
        root='<gpx version="1.1" xmlns="http://www.topografix.com/GPX/1/1">',
        inside_root=frozenset({"metadata", "wpt", "rte", "trk"}),
        zoned_texts=True,
        environment={"GPX_ELE_AS_25D": "YES"},
        left_out=(
            *left_out(_LEFT_OUT),
            *(entry for of in _POINTS[1:] for entry in _flat_beside_high(*of)),
            *left_out(_LEFT_OUT_OF_EXTENSIONS),
        ),
        alike=_ALIKE,
        fixed_layers=True,
        derived_layers={"route_points": "routes", "track_points": "tracks"},
        derived_columns=frozenset({*_GPX_ORDER, "ele"}),
        column_prefix=PREFIX,
        numbers=GPX_NUMBERS,
        noise_columns={"*": ()},
    ),
    writing=Writing(
        empty_columns=False,
        driver="GPX",
        reread=Reread(drivers=("GPX",), environment={"GPX_ELE_AS_25D": "YES"}, columns=False, is_one=True),
        empty_columns_lost=frozenset({"*"}),
        value_losses=XML_LOSSES | {"booleans", "moments", "like_markup"},
        typed_columns=GPX_TYPES,
        own_columns=GPX_COLUMNS,
        max_with_own=99,
        max_readable_text_bytes=100_000,
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
        column_names=ColumnRule.ELEMENT,
        stripped_prefix=PREFIX,
        splits=frozenset({"MultiPoint"}),
        elevation_column="ele",
        wraps_dateline=True,
        trailer=b"</gpx>",
    ),
)
