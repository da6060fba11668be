# ruff: noqa: S106 -- a token is a format's short name here
"""The format table: every format, how it is read, how it is written, what it can hold.

A format is a row. Whatever differs between formats is a column, so adding a format is adding a row; code elsewhere asks
the columns and never compares names. The settings were tried against GDAL 3.6 on every pair of formats.
"""

from types import MappingProxyType

import msgspec

from service.errors import Rejection
from service.formats.dbf_names import VALUE_BYTES
from service.formats.format import ColumnRule, Delivery, Format, Reader, Reading, Writer, Writing
from service.formats.geometry import FAMILIES, NO_GEOMETRY, Family

WGS84 = 4326
SHARED_EXTENSION = ".zip"
"""The extension of several outputs, so that it names none."""
EXACT_TYPES = MappingProxyType(
    {name: ("-nlt", f"{name.upper()}{{z}}", "-dim", "XY{z}") for name in FAMILIES}
    | {"": ("-dim", "XY{z}"), NO_GEOMETRY: ("-nlt", "NONE")}
)
"""For drivers that take any type: the declared one, with Z always by name, since `-dim` alone may drop it."""
MULTI_TYPES = MappingProxyType(
    {
        "Point": ("-nlt", "POINT{z}", "-dim", "XY{z}"),
        "MultiPoint": ("-nlt", "MULTIPOINT{z}", "-dim", "XY{z}"),
        **dict.fromkeys(("LineString", "MultiLineString"), ("-nlt", "MULTILINESTRING{z}", "-dim", "XY{z}")),
        **dict.fromkeys(("Polygon", "MultiPolygon"), ("-nlt", "MULTIPOLYGON{z}", "-dim", "XY{z}")),
        NO_GEOMETRY: ("-nlt", "NONE"),
    }
)
SHAPE_TYPES = MappingProxyType(
    {
        "Point": ("-lco", "SHPT=POINT{z}"),
        "MultiPoint": ("-lco", "SHPT=MULTIPOINT{z}", "-nlt", "MULTIPOINT{z}"),
        **dict.fromkeys(("LineString", "MultiLineString"), ("-lco", "SHPT=ARC{z}")),
        **dict.fromkeys(("Polygon", "MultiPolygon"), ("-lco", "SHPT=POLYGON{z}")),
        NO_GEOMETRY: ("-lco", "SHPT=POINT"),
    }
)
"""A table becomes null shapes: without .shp and .shx nothing would recognise it as a shapefile again."""
TEXT_FOR_TIMES = "DateTime=String,Time=String"

_GEOJSON_DRIVERS = ("GeoJSON", "TopoJSON", "ESRIJSON", "GeoJSONSeq")
_GPX_DATASET = ("-dsco", "GPX_USE_EXTENSIONS=YES")
_KML_NOISE = MappingProxyType(
    {
        **dict.fromkeys(("Name", "description", "timestamp", "begin", "end", "drawOrder", "icon", "snippet"), ()),
        "tessellate": ("-1",),
        "extrude": ("0", "-1"),
        "visibility": ("-1",),
        "altitudeMode": ("absolute", "clampToGround"),
    }
)
_KML_OPTIONS = (
    "-mapFieldType",
    "Integer64=String,Date=String,DateTime=String,Time=String,Binary=String",
)
_KML = Writing(
    driver="KML",
    extension=".kml",
    media_type="application/vnd.google-earth.kml+xml",
    writer=Writer.AT_ONCE,
    options=_KML_OPTIONS,
    multi_layer=True,
    epsg=WGS84,
    column_names=ColumnRule.XML,
    wraps_dateline=True,
    z_options=("-dsco", "AltitudeMode=absolute"),
    trailer=b"</kml>",
)
GPX_NUMBERS = frozenset(
    [
        "ele",
        "magvar",
        "geoidheight",
        "sat",
        "hdop",
        "vdop",
        "pdop",
        "ageofdgpsdata",
        "dgpsid",
        "number",
        "route_fid",
        "route_point_id",
        "track_fid",
        "track_seg_id",
        "track_seg_point_id",
    ]
)


FORMATS: tuple[Format, ...] = (
    Format(
        name="GeoJson",
        token="geojson",
        title="GeoJSON",
        extensions=(".geojson", ".json"),
        reading=Reading(
            drivers=_GEOJSON_DRIVERS,
            reader=Reader.DOCUMENT,
            options=("ARRAY_AS_STRING=YES",),
            text_options=("DATE_AS_STRING=YES",),
            json=True,
        ),
        writing=Writing(
            driver="GeoJSON",
            value_losses=frozenset({"infinite"}),
            read_back="json",
            extension=".geojson",
            media_type="application/geo+json",
            options=("-lco", "RFC7946=YES"),
            epsg=WGS84,
            json=True,
            lines_driver="GeoJSONSeq",
            trailer=b"}",
        ),
    ),
    Format(
        name="Shapefile",
        token="shapefile",
        title="Shapefile",
        extensions=(".zip",),
        reading=Reading(drivers=("ESRI Shapefile",), reader=Reader.SHAPEFILE),
        writing=Writing(
            driver="ESRI Shapefile",
            value_losses=frozenset({"binary"}),
            read_back="shapefile",
            empty_is_null=True,
            extension=".zip",
            media_type="application/zip",
            member=".shp",
            crs_member=".prj",
            delivery=Delivery.ARCHIVE,
            options=("-lco", "ENCODING=UTF-8", "-mapFieldType", TEXT_FOR_TIMES),
            multi_layer=True,
            one_file_per_layer=True,
            loss_report=True,
            one_family=True,
            m=True,
            type_options=SHAPE_TYPES,
            max_text_bytes=VALUE_BYTES,
            max_record_bytes=65_534,
            max_columns=2_046,
            column_names=ColumnRule.DBF,
        ),
    ),
    Format(
        name="Csv",
        token="csv",
        title="CSV",
        extensions=(".csv",),
        reading=Reading(drivers=("CSV",), reader=Reader.DELIMITED, records_crs=False),
        writing=Writing(
            driver="CSV",
            read_back="delimited",
            empty_is_null=True,
            extension=".csv",
            media_type="text/csv; charset=utf-8",
            writer=Writer.PLACES,
            options=("-lco", "STRING_QUOTING=IF_NEEDED"),
            reserved_columns=("WKT",),
            m=True,
            records_crs=False,
        ),
    ),
    Format(
        name="Gml",
        token="gml",
        title="GML",
        extensions=(".gml",),
        reading=Reading(
            drivers=("GML",),
            options=("WRITE_GFS=NO",),
            environment=MappingProxyType({"GML_FIELDTYPES": "ALWAYS_STRING"}),
            guesses_types=True,
            noise_columns=MappingProxyType({"gml_id": ("{layer}.*",)}),
        ),
        writing=Writing(
            driver="GML",
            value_losses=frozenset({"leading_zeros"}),
            extension=".gml",
            media_type="application/gml+xml; version=3.2",
            writer=Writer.AT_ONCE,
            options=(
                "-dsco",
                "FORMAT=GML3.2",
                "-dsco",
                "XSISCHEMA=OFF",
                "-dsco",
                "WRITE_FEATURE_BOUNDED_BY=NO",
            ),
            multi_layer=True,
            curves=True,
            column_names=ColumnRule.XML,
            geometry_names=("geometryProperty", "geometry", "the_geom"),
            shows_geometry_name=True,
            root_attributes='xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance"',
            trailer=b"FeatureCollection>",
        ),
    ),
    Format(
        name="GeoPackage",
        token="gpkg",
        title="GeoPackage",
        extensions=(".gpkg",),
        reading=Reading(drivers=("GPKG",)),
        writing=Writing(
            driver="GPKG",
            read_back="geopackage",
            extension=".gpkg",
            media_type="application/geopackage+sqlite3",
            options=("-gt", "unlimited"),
            no_system=(),
            multi_layer=True,
            derived_layers=True,
            m=True,
            type_options=EXACT_TYPES,
            curves=True,
            fid_names=("fid", "ogc_fid", "gpkg_fid"),
            geometry_names=("geom", "geometry", "the_geom"),
        ),
    ),
    Format(
        name="Gpx",
        token="gpx",
        title="GPX",
        extensions=(".gpx",),
        reading=Reading(
            drivers=("GPX",),
            environment=MappingProxyType({"GPX_ELE_AS_25D": "YES"}),
            fixed_layers=True,
            derived_layers=frozenset({"route_points", "track_points"}),
            column_prefix="ogr_",
            numbers=GPX_NUMBERS,
            noise_columns=MappingProxyType({"*": ()}),
        ),
        writing=Writing(
            driver="GPX",
            extension=".gpx",
            media_type="application/gpx+xml",
            writer=Writer.TRACKS,
            options=(
                "-dsco",
                "GPX_USE_EXTENSIONS=YES",
                "-mapFieldType",
                "Integer64=String",
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
    ),
    Format(
        name="Kml",
        token="kml",
        title="KML",
        extensions=(".kml",),
        reading=Reading(drivers=("LIBKML",), noise_columns=_KML_NOISE),
        writing=_KML,
    ),
    Format(
        name="Kmz",
        token="kmz",
        title="KMZ",
        extensions=(".kmz",),
        reading=Reading(drivers=("LIBKML",), member=".kml", noise_columns=_KML_NOISE),
        writing=msgspec.structs.replace(
            _KML, extension=".kmz", media_type="application/vnd.google-earth.kmz", member=".kml", delivery=Delivery.KMZ
        ),
    ),
    Format(
        name="FlatGeobuf",
        token="flatgeobuf",
        title="FlatGeobuf",
        extensions=(".fgb",),
        reading=Reading(drivers=("FlatGeobuf",)),
        writing=Writing(
            driver="FlatGeobuf",
            value_losses=frozenset({"dates"}),
            extension=".fgb",
            media_type="application/vnd.flatgeobuf",
            m=True,
            type_options=EXACT_TYPES,
            curves=True,
            null_geometry=False,
            tables=False,
        ),
    ),
    Format(
        name="GeoJsonSeq",
        token="geojsonseq",
        title="GeoJSON text sequence",
        extensions=(".geojsonl",),
        reading=Reading(
            drivers=_GEOJSON_DRIVERS,
            reader=Reader.LINES,
            options=("ARRAY_AS_STRING=YES",),
            text_options=("DATE_AS_STRING=YES",),
            json=True,
        ),
        writing=Writing(
            driver="GeoJSONSeq",
            value_losses=frozenset({"infinite"}),
            read_back="json",
            extension=".geojsonl",
            more_extensions=(".jsonl", ".ndjson", ".geojsons"),
            media_type="application/x-ndjson",
            epsg=WGS84,
            wraps_dateline=True,
            json=True,
            trailer=b"}",
        ),
    ),
    Format(
        name="Dxf",
        token="dxf",
        title="DXF",
        extensions=(".dxf",),
        reading=Reading(drivers=("DXF",), records_crs=False, trailer=b"EOF"),
        writing=Writing(
            driver="DXF",
            extension=".dxf",
            media_type="image/vnd.dxf",
            options=("-explodecollections",),
            splits=frozenset({"MultiPoint", "MultiLineString", "MultiPolygon", "GeometryCollection"}),
            null_geometry=False,
            tables=False,
            attributes=frozenset({"Layer", "Text", "Linetype"}),
            records_crs=False,
            trailer=b"EOF",
        ),
    ),
    Format(
        name="MapInfo",
        token="mapinfo",
        title="MapInfo TAB",
        writing=Writing(
            driver="MapInfo File",
            value_losses=frozenset({"binary", "beyond_32_bits", "nulls"}),
            extension=".zip",
            media_type="application/zip",
            member=".tab",
            delivery=Delivery.ARCHIVE,
            multi_layer=True,
            one_file_per_layer=True,
            empty=False,
            z=False,
            column_names=ColumnRule.MAPINFO,
            first_encoding="CP1252",
            degree_options=("-lco", "BOUNDS=-180,-90,180,90"),
            splits=frozenset({"MultiPoint", "GeometryCollection"}),
            time_zones=False,
            max_text_bytes=VALUE_BYTES,
        ),
    ),
    Format(
        name="Ods",
        token="ods",
        title="ODS",
        extensions=(".ods",),
        reading=Reading(
            drivers=("ODS",),
            reader=Reader.WORKBOOK,
            environment=MappingProxyType({"OGR_ODS_HEADERS": "FORCE"}),
            records_crs=False,
        ),
        writing=Writing(
            driver="ODS",
            value_losses=frozenset({"infinite", "beyond_53_bits"}),
            extension=".ods",
            media_type="application/vnd.oasis.opendocument.spreadsheet",
            writer=Writer.WORKBOOK,
            multi_layer=True,
            m=True,
            records_crs=False,
            time_zones=False,
            live_text="of:=",
            max_layer_name=31,
            reserved_columns=("WKT",),
            max_rows=1_048_575,
        ),
    ),
    Format(
        name="Xlsx",
        token="xlsx",
        title="XLSX",
        extensions=(".xlsx",),
        reading=Reading(
            drivers=("XLSX",),
            reader=Reader.WORKBOOK,
            environment=MappingProxyType({"OGR_XLSX_HEADERS": "FORCE"}),
            records_crs=False,
        ),
        writing=Writing(
            driver="XLSX",
            value_losses=frozenset({"infinite", "beyond_53_bits"}),
            extension=".xlsx",
            media_type="application/vnd.openxmlformats-officedocument.spreadsheetml.sheet",
            writer=Writer.WORKBOOK,
            multi_layer=True,
            m=True,
            records_crs=False,
            time_zones=False,
            max_layer_name=31,
            reserved_columns=("WKT",),
            max_rows=1_048_575,
            max_cell=32_767,
        ),
    ),
    Format(
        name="SpatiaLite",
        token="spatialite",
        title="SpatiaLite",
        writing=Writing(
            driver="SQLite",
            read_back="spatialite",
            extension=".sqlite",
            media_type="application/vnd.sqlite3",
            options=("-dsco", "SPATIALITE=YES", "-dsco", "INIT_WITH_EPSG=NO", "-lco", "LAUNDER=NO", "-gt", "65536"),
            multi_layer=True,
            derived_layers=True,
            m=True,
            type_options=EXACT_TYPES,
            fid_names=("ogc_fid", "fid", "pk_fid"),
            geometry_names=("geometry", "geom", "the_geom"),
            environment=MappingProxyType({"SPATIALITE_LOAD": "YES"}),
        ),
    ),
    Format(
        name="GeoParquet",
        token="geoparquet",
        title="GeoParquet",
        extensions=(".parquet",),
        reading=Reading(drivers=("Parquet",), reader=Reader.PARQUET),
        writing=Writing(
            driver="Parquet",
            extension=".parquet",
            media_type="application/vnd.apache.parquet",
            writer=Writer.PARQUET,
            geometry_names=("geometry", "geom", "the_geom"),
            trailer=b"PAR1",
            driver_is_optional=True,
        ),
    ),
    Format(
        name="OpenFileGdb",
        token="openfilegdb",
        title="OpenFileGDB",
        writing=Writing(
            driver="OpenFileGDB",
            value_losses=frozenset({"beyond_53_bits", "fractions", "zones", "dates"}),
            extension=".zip",
            media_type="application/zip",
            member=".gdb",
            delivery=Delivery.ARCHIVE,
            multi_layer=True,
            one_family=True,
            derived_layers=True,
            m=True,
            type_options=MULTI_TYPES,
            driver_is_optional=True,
        ),
    ),
    Format(
        name="Wkt",
        token="wkt",
        title="WKT",
        writing=Writing(
            driver="CSV",
            extension=".wkt",
            media_type="text/plain; charset=utf-8",
            writer=Writer.LINES_OF_WKT,
            tables=False,
            attributes=frozenset(),
            m=True,
            records_crs=False,
        ),
    ),
    Format(
        name=None,
        token="sqlite",
        title="SQLite",
        extensions=(".sqlite",),
        reading=Reading(drivers=("SQLite",), reader=Reader.DATABASE, options=("LIST_ALL_TABLES=YES",)),
    ),
)


def _output_words(row: Format) -> tuple[str, ...]:
    """What a written format is called: by its name, its token, its extensions with and without the dot."""
    writing = row.writing
    if writing is None or row.name is None:
        return ()
    found = {*row.extensions, *writing.more_extensions, writing.extension, writing.member} - {"", SHARED_EXTENSION}
    return (row.name.casefold(), row.token, *found, *(extension.removeprefix(".") for extension in found))


OUTPUT_NAMES = tuple(row.name for row in FORMATS if row.name is not None)
_BY_OUTPUT_WORD = MappingProxyType({word: row for row in reversed(FORMATS) for word in _output_words(row)})
"""Outputs by all that they are called; where two share an extension the first row has it."""
_BY_TOKEN = MappingProxyType({row.token: row for row in FORMATS})
_BY_EXTENSION = MappingProxyType({extension: row for row in FORMATS for extension in row.extensions})
_DEFAULT_OUTPUTS = MappingProxyType({"geojson": "shapefile"})
"""Where the default direction is not GeoJSON (interface 1)."""

INPUT_EXTENSIONS = tuple(_BY_EXTENSION)


def find_output(text: str) -> Format:
    """The format that `text`, a value of outputFormat, names: its name, token or an extension, in any case.

    Raises:
        Rejection: there is none; the message lists the valid names.
    """
    row = _BY_OUTPUT_WORD.get(text.strip().casefold())
    if row is None:
        raise Rejection(f"{text[:40]!r} is not an output format. Valid are: {', '.join(OUTPUT_NAMES)}.")
    return row


def default_output(source: Format) -> Format:
    """The output for an input of the format `source` when outputFormat is omitted (interface 1)."""
    return _BY_TOKEN[_DEFAULT_OUTPUTS.get(source.token, "geojson")]


def by_extension(extension: str) -> Format | None:
    """The input format of files with `extension` (".kml", any case), or None."""
    return _BY_EXTENSION.get(extension.casefold())


def by_token(token: str) -> Format:
    """The format with `token`.

    Raises:
        KeyError: there is none.
    """
    return _BY_TOKEN[token]
