# ruff: noqa: S106 -- a token is a format's short name here
"""The rows of formats for older desktop programs: Shapefile, MapInfo, DXF, and plain WKT."""

from collections.abc import Mapping

from service.formats.dbf_names import VALUE_BYTES
from service.formats.facts import FieldType
from service.formats.format import (
    SHARED_EXTENSION,
    Bundle,
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
from service.formats.table.geometry_types import SHAPE_TYPES
from service.formats.unread import BINARY_DXF, NO_UTF_16, UTF_16_WITHOUT_MARK
from service.formats.values import LAYER, TYPE_LOSSES

LONE_SHP = "A .shp alone holds no attributes; send it in a ZIP with its .shx, .dbf and .prj to keep them."
NO_MAP = "The ZIP holds no .map beside {name}, so its features have no geometry."
NO_MID = "The ZIP holds no .mid beside {name}, so its features have no attributes."
SEAMLESS = rb'"\\IsSeamless"[ \t]{0,9}=[ \t]{0,9}"TRUE"'
DBF_WIDTHS: Mapping[FieldType, int] = {
    FieldType.INTEGER: 18,
    FieldType.REAL: 24,
    FieldType.BOOLEAN: 9,
    FieldType.DATE: 8,
}
MAPINFO_WIDTHS: Mapping[FieldType, int] = {
    FieldType.INTEGER: 8,
    FieldType.REAL: 8,
    FieldType.BOOLEAN: 4,
    FieldType.DATE: 4,
    FieldType.TIME: 4,
    FieldType.DATETIME: 8,
}
FROM_ALL_SHAPES = ("ADJUST_GEOM_TYPE=ALL_SHAPES",)
"""Otherwise the driver decides by the first shape whether there are measures, and it may be a null shape."""
TEXT_FOR_TIMES = "DateTime=String,Time=String"

SHAPEFILE = Format(
    name="Shapefile",
    token="shapefile",
    title="Shapefile",
    extensions=(SHARED_EXTENSION, ".shp"),
    reading=Reading(
        drivers=("ESRI Shapefile",),
        reader=Reader.PARTS,
        is_padded=True,
        options=FROM_ALL_SHAPES,
        overflows=frozenset({"nans"}),
        absent_measures=True,
        directs_rings=True,
        reads_logical="3.9-",
        bundles=(Bundle(".shp", (".shx", ".dbf"), {".prj": "", ".cpg": ""}, alone=LONE_SHP),),
    ),
    writing=Writing(
        driver="ESRI Shapefile",
        numbers_for_logical="-3.9",
        reread=Reread(drivers=("ESRI Shapefile",), options=FROM_ALL_SHAPES),
        # lists are told of beside the report, for analyses too
        value_losses=TYPE_LOSSES - {"lists"} | {"binary", "before_1000"},
        declares=True,
        empty_is_null=True,
        extension=".zip",
        media_type="application/zip",
        member=".shp",
        crs_member=".prj",
        delivery=Packaging.ARCHIVE,
        # the driver would write the mark after each row, and go back over it for the next one by four system calls
        options=("-lco", "ENCODING=UTF-8", "-lco", "DBF_EOF_CHAR=NO", "-mapFieldType", TEXT_FOR_TIMES),
        endings={".dbf": b"\x1a"},
        multi_layer=True,
        one_file_per_layer=True,
        loss_report=True,
        one_family=True,
        rings_alone=True,
        turns_holes="-3.10",
        m=True,
        mixes_z=False,
        type_options=SHAPE_TYPES,
        max_text_bytes=VALUE_BYTES,
        max_record_bytes=65_534,
        columns_elsewhere=255,
        widths=DBF_WIDTHS,
        column_names=ColumnRule.DBF,
    ),
)

MAPINFO = Format(
    name="MapInfo",
    token="mapinfo",
    title="MapInfo TAB",
    extensions=(SHARED_EXTENSION,),
    reading=Reading(
        drivers=("MapInfo File",),
        is_padded=True,
        overflows=frozenset({"no_day", "nans"}),
        reader=Reader.PARTS,
        has_labels=True,
        loses_unit="-3.7.1",
        reads_logical="3.9-",
        bundles=(
            Bundle(".tab", (".dat",), {".map": NO_MAP, ".id": "", ".ind": ""}, lists_others=SEAMLESS),
            Bundle(".mif", (), {".mid": NO_MID}),
        ),
    ),
    writing=Writing(
        driver="MapInfo File",
        numbers_for_logical="-3.9",
        reread=Reread(drivers=("MapInfo File",), values=False, doubts_system=True),
        options=("-mapFieldType", "Integer64=Real"),
        value_losses=TYPE_LOSSES | {"binary", "beyond_32_bits", "nulls", "lost_leap_seconds", "zones"},
        extension=".zip",
        media_type="application/zip",
        member=".tab",
        delivery=Packaging.ARCHIVE,
        multi_layer=True,
        one_file_per_layer=True,
        empty=False,
        z=False,
        column_names=ColumnRule.MAPINFO,
        first_encoding="CP1252",
        max_record_bytes=32_767,
        max_columns=1_022,  # the driver cannot read more
        columns_elsewhere=250,
        widths=MAPINFO_WIDTHS,
        text_bytes=VALUE_BYTES,
        bounds_option="BOUNDS={:.17g},{:.17g},{:.17g},{:.17g}",
        splits=frozenset({"MultiPoint", "GeometryCollection"}),
        max_text_bytes=VALUE_BYTES,
    ),
)

_NEXT = rb"[ \t]*+\r?\n[ \t]*+"
"""The end of a line; however many blanks are around it, none is read twice."""
ENTITY = rb"\n[ \t]*+0[ \t\r]*+\n[ \t]*+(3DSOLID|[A-Z]\w{1,39}+)"
UNREAD_ENTITIES = frozenset(
    {
        *(b"RAY", b"XLINE", b"MESH", b"SHAPE", b"IMAGE", b"BODY", b"REGION", b"3DSOLID", b"MPOLYGON", b"TOLERANCE"),
        *(b"OLE2FRAME", b"SURFACE", b"EXTRUDEDSURFACE", b"LOFTEDSURFACE", b"PLANESURFACE", b"REVOLVEDSURFACE"),
        *(b"SWEPTSURFACE", b"NURBSURFACE", b"PDFUNDERLAY", b"DWFUNDERLAY", b"DGNUNDERLAY"),
    }
)
"""Those that the driver skips."""
POLYGON_MESH = rb"\n[ \t]*100" + _NEXT + rb"AcDbPolygonMesh[ \t]*\r?\n"
INSERT, HATCH, SPLINE, HELIX, VERTEX = b"INSERT", b"HATCH", b"SPLINE", b"HELIX", b"VERTEX"
POLYLINE, LWPOLYLINE = b"POLYLINE", b"LWPOLYLINE"
NAMED_BLOCKS = (
    rb"\n[ \t]*0" + _NEXT + rb"INSERT[ \t]*+\r?\n"
    rb"(?:[ \t]*+(?!2[ \t\r]*+\n)[1-9]\d{0,3}[ \t\r]*+\n[^\n]*+\n){0,40}+[ \t]*+2" + _NEXT + rb"(?=[^\s_*])"
)
"""Insertions of blocks, but not of those that programs make, such as arrows of dimensions and hatches."""
CONSTANT_TEXTS = (
    rb"\n[ \t]*0" + _NEXT + rb"ATTDEF[ \t]*+\r?\n"
    rb"(?:[ \t]*+(?!70[ \t\r]*+\n)[1-9]\d{0,3}[ \t\r]*+\n[^\n]*+\n){0,40}+"
    rb"[ \t]*+70" + _NEXT + rb"(?:[26]|1[04])(?=[ \t\r]*+\n)"
)
"""Visible attributes that have the same text in all insertions of their block."""
XDATA = rb"1001(?<![^ \t\n]1001)" + _NEXT + rb"(?!ACAD)[^\s][^\n]*+\n[ \t]*10(?:0[0-5]|[1-4]\d|7[01])[ \t]*\r?\n"
"""What other programs have added to an entity. Values may be 1001 too, but nothing like it follows them."""
CODED_CHARACTERS = rb"%%\d{3}"
CODED_DOUBLE_BYTES = tuple(rb"\M+%d" % page for page in range(1, 6))
FRACTIONS = rb"\\S[^\n;\\][^\n;\\/#^]{0,79}+[/#^][^\n;]{0,80}+;"
"""What MTEXT shows as one number above another, of which the driver joins the digits."""
_ZERO = rb"[-+]?0*+(?:\.0*+)?(?:[eE][-+]?\d++)?[ \t\r]*+\n"
RAISED_SPLINES = (
    rb"\n[ \t]*0" + _NEXT + rb"SPLINE[ \t]*+\r?\n"
    rb"(?:[ \t]*+(?!30[ \t\r]*+\n)[1-9]\d{0,3}[ \t\r]*+\n[^\n]*+\n|[ \t]*+30" + _NEXT + _ZERO + rb"){0,1000}+"
    rb"[ \t]*+30" + _NEXT + rb"(?=[-+.\d])"
)
"""Splines up to the first elevation of a control point that is not 0."""
_BEYOND_HALF = rb"\+?0*+(?:1\.0{0,2}+[1-9]|1\d|[2-9])[\d.]*+(?:[eE]\+?\d++)?+(?=[ \t\r]*+\n)"
"""A bulge, the tangent of a quarter of an arc's angle, of more than half a circle, but for differences of rounding."""
_PAIRS = rb"(?:[ \t\r]*+\n[ \t]*+%b[ \t\r]*+\n[^\n]*+){0,%d}+"
_ARCS = (
    rb"\n[ \t]*+(?:0"
    + _NEXT
    + rb"INSERT(?=[ \t\r]*+\n)"
    + _PAIRS % (rb"(?!42[ \t\r]*+\n)[1-9]\d{0,3}", 40)
    + rb"|94"
    + _NEXT
    + rb"\d++"
    + _PAIRS % (rb"(?:[124]0|42|7[34]|9[56])", 500)
    + rb"|(?:0"
    + _NEXT
    + rb"VERTEX[ \t]*+\r?\n(?:[ \t]*+(?!42[ \t\r]*+\n)[1-9]\d{0,3}[ \t\r]*+\n[^\n]*+\n){0,40}+"
    rb"|20" + _NEXT + rb"[-+.\deE]++[ \t\r]*+\n(?:[ \t]*+4[01]" + _NEXT + rb"[^\n]*+\n){0,2}+)"
    rb"[ \t]*+42" + _NEXT + rb"(%b))"
)
"""Vertices of polylines, or of the edges of hatches, where an arc begins: the matches with a group. Others skip what
only looks so: insertions, which have scales, and splines of hatches, with weights."""
ARCS_BEYOND_HALF = _ARCS % _BEYOND_HALF
"""Those that go on counterclockwise."""
_CURVED_EDGES = rb"\n[ \t]*+72" + _NEXT + rb"([234])(?=[ \t\r]*+\n[ \t]*+(?:10|94)[ \t\r]*+\n)"
"""Edges of hatches that are arcs, parts of ellipses or splines, and no lines."""
ARCS_IN_POLYLINES = _ARCS % (rb"(?!" + _ZERO + rb")[-+.\d][^\n]*+\n") + rb"|" + _CURVED_EDGES
CURVES_IN_DXF = (
    rb"\n[ \t]*0"
    + _NEXT
    + rb"(?:(?:CIRCLE|ARC|ELLIPSE)[ \t]*\r?\n|(?:SPLINE|HELIX)(?=[ \t\r]*+\n)"
    + _PAIRS % (rb"(?!7[13][ \t\r]*+\n)[1-9]\d{0,3}", 40)
    + rb"[ \t\r]*+\n[ \t]*+71"
    + _NEXT
    + rb"(?!1[ \t\r]*+\n)\d++"
    + _PAIRS % (rb"(?!73[ \t\r]*+\n)[1-9]\d{0,3}", 40)
    + rb"[ \t\r]*+\n[ \t]*+73"
    + _NEXT
    + rb"0*+[1-9])"
)
"""Curves, and splines with control points whose degree is more than that of straight lines."""
FIT_POINTS_ALONE = rb"\n[ \t]*" + _NEXT.join((rb"71", rb"[2-9]\d?", rb"72", rb"0", rb"73", rb"0", rb"74", rb"[1-9]"))
"""A spline, of a degree, with no knots and no control points, but with points that it passes through."""

_LEFT_OUT = {
    "Entities that cannot be read ({count}) were left out, such as solids, surfaces, meshes, endless lines and images. "
    "Explode them, or convert them to "
    "polylines, to keep them.": LeftOut(entities=UNREAD_ENTITIES, pattern=POLYGON_MESH, inside=frozenset({POLYLINE})),
    "Wipeouts ({count}), which hide what lies below them, were left out.": LeftOut(
        entities=frozenset({b"WIPEOUT"}), releases="-3.11"
    ),
    "Splines without control points ({count}) were left out. "
    "Save the drawing with control points to keep them.": LeftOut(pattern=FIT_POINTS_ALONE, inside=frozenset({SPLINE})),
    "Elevations of splines ({count}) were left out. Convert them to polylines to keep them.": LeftOut(
        pattern=RAISED_SPLINES, inside=frozenset({SPLINE}), releases="-3.10.1"
    ),
    "Arcs of more than half a circle in polylines and hatches ({count}) may have lost a part of them. Explode the "
    "polylines, or divide "
    "the arcs, to keep all of them.": LeftOut(pattern=ARCS_BEYOND_HALF, inside=frozenset({VERTEX, LWPOLYLINE, HATCH})),
    "Circles, arcs, ellipses and splines ({count}; those of a block once) became lines of short segments.": LeftOut(
        pattern=CURVES_IN_DXF, inside=frozenset({b"CIRCLE", b"ARC", b"ELLIPSE", SPLINE, HELIX})
    ),
    "Arcs and other curves in polylines and hatches ({count}) became lines of short segments.": LeftOut(
        pattern=ARCS_IN_POLYLINES, inside=frozenset({VERTEX, LWPOLYLINE, HATCH})
    ),
    "Insertions of blocks ({count}) became the parts of the blocks; names of blocks, and the tags of their attributes, "
    "were left out.": LeftOut(pattern=NAMED_BLOCKS, inside=frozenset({INSERT})),
    "Constant attributes of blocks ({count}) were left out. Make them texts to keep them.": LeftOut(
        pattern=CONSTANT_TEXTS, inside=frozenset({b"ATTDEF"}), releases="-3.7.1"
    ),
    "Data that other programs added to entities (XDATA, {count}) was left out.": LeftOut(pattern=XDATA),
    "Character codes in texts ({count}), such as %%065 or \\M+1826B, were not decoded.": LeftOut(
        words=CODED_DOUBLE_BYTES, pattern=CODED_CHARACTERS
    ),
    "Fractions and other stacked texts ({count}) lost what is between their parts: 1/2 became 12.": LeftOut(
        pattern=FRACTIONS
    ),
}
DXF = Format(
    name="Dxf",
    token="dxf",
    title="DXF",
    extensions=(".dxf",),
    reading=Reading(
        drivers=("DXF",),
        reader=Reader.DXF,
        environment={"DXF_ENCODING": "UTF-8"},
        declares=Declares.DXF,
        records_crs=False,
        trailer=b"EOF",
        unread=(*NO_UTF_16, BINARY_DXF),
        entity=ENTITY,
        left_out=left_out(_LEFT_OUT),
    ),
    writing=Writing(
        driver="DXF",
        reread=Reread(drivers=("DXF",), columns=False),
        extension=".dxf",
        media_type="image/vnd.dxf",
        options=("-explodecollections",),
        flattens=True,
        splits=frozenset({"MultiPoint", "MultiLineString", "MultiPolygon", "GeometryCollection"}),
        level_areas=True,
        null_geometry=False,
        tables=False,
        attributes=frozenset({LAYER}),
        value_losses=frozenset({"layer_names"}),
        records_crs=False,
        trailer=b"EOF",
    ),
)

WKT = Format(
    name="Wkt",
    token="wkt",
    title="WKT",
    extensions=(".wkt",),
    reading=Reading(
        drivers=("CSV",),
        reader=Reader.DELIMITED,
        delimiter="\t",
        only_geometries=True,
        records_crs=False,
        unread=(UTF_16_WITHOUT_MARK,),
    ),
    writing=Writing(
        driver="CSV",
        read_back="lines",
        extension=".wkt",
        media_type="text/plain; charset=utf-8",
        writer=Writer.LINES_OF_WKT,
        tables=False,
        attributes=frozenset(),
        m=True,
        records_crs=False,
    ),
)
