# ruff: noqa: S106 -- a token is a format's short name here
"""The rows of databases and of typed files that resemble them."""

from service.formats.format import (
    SHARED_EXTENSION,
    ColumnRule,
    Folder,
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
from service.formats.table.geometry_types import EXACT_TYPES, MULTI_TYPES
from service.formats.values import TYPE_LOSSES

GEODATABASE_WORDS = (
    "OBJECTID", "SHAPE", "ADD", "ALTER", "AND", "AS", "ASC", "BETWEEN", "BY", "COLUMN", "CREATE", "DATE", "DELETE",
    "DESC", "DROP", "EXISTS", "FOR", "FROM", "GROUP", "IN", "INSERT", "INTO", "IS", "LIKE", "NOT", "NULL", "OR",
    "ORDER", "SELECT", "SET", "TABLE", "UPDATE", "VALUES", "WHERE",
)  # fmt: skip
"""Names that no column of a File Geodatabase may have."""
CODES_LEFT_OUT = (
    "Lists of what codes in columns stand for ({count}), such as domains, were left out; the columns keep their codes."
)
RULES_LEFT_OUT = (
    "Rules for the values of columns ({count}), such as NOT NULL, UNIQUE, defaults and ranges, were left out; the "
    "values are the same."
)
HEIGHTS_LEFT_OUT = (
    "Vertical coordinate systems, which say what elevations are, were not read; elevations were kept as they are."
)
TITLES_LEFT_OUT = "Titles of columns ({count}) were left out; the columns keep their names."
RELATIONS_LEFT_OUT = "Relations between tables ({count}) were left out."
EPOCH_LEFT_OUT = (
    "The epoch of the coordinates, which the file records, was left out, also from transformations: between a system "
    "of the whole Earth and one that moves with a continent, places may be off by meters. If that matters, transform "
    "the file with its epoch first."
)
DESCRIPTIONS_LEFT_OUT = "Descriptions of the file or its layers ({count}) were left out."
DESCRIBED = rb"<(?:idAbs|idPurp|abstract|purpose)>(?!REQUIRED:)[^<\s]"
"""An element of metadata with a text of a user; some programs write what is required into each."""
_COLUMN = rb"<GPFieldInfoEx[\s>](?:[^<]++|<(?!/?GPFieldInfoEx[\s>]|/CatalogPath>))*+</GPFieldInfoEx>"
TITLED_LAYERS = (
    rb"</CatalogPath>\s*+<Name>([^<]{1,400}+)</Name>(?:[^<]++|"
    + _COLUMN
    + rb"|<(?!AliasName>|/?CatalogPath>|GPFieldInfoEx[\s>]))*+<AliasName>(?!\1</)[^<\s]"
)
"""A layer with an alias that differs from its name, behind its columns, which have aliases of their own.

So that no byte is read twice, no match goes on behind the path of another layer, nor a column behind another one.
"""
GEOPACKAGE = Format(
    name="GeoPackage",
    token="gpkg",
    title="GeoPackage",
    extensions=(".gpkg",),
    reading=Reading(
        drivers=("GPKG",), reader=Reader.GEOPACKAGE, defers_columns=True, zoned_texts=True, unchecked_texts=True
    ),
    writing=Writing(
        driver="GPKG",
        value_losses=TYPE_LOSSES,
        declares=True,
        reread=Reread(drivers=("GPKG",)),
        read_back="geopackage",
        extension=".gpkg",
        media_type="application/geopackage+sqlite3",
        options=("-gt", "unlimited"),
        no_system=(),
        multi_layer=True,
        derived_layers=True,
        m=True,
        type_options={**EXACT_TYPES, "": ("-nlt", "GEOMETRY")},
        curves=True,
        fid_names=("fid", "ogc_fid", "gpkg_fid"),
        reserved_layers="gpkg|sqlite_|rtree_|ogr_empty_table$",
        geometry_names=("geom", "geometry", "the_geom"),
    ),
)

SPATIALITE = Format(
    name="SpatiaLite",
    token="spatialite",
    title="SpatiaLite",
    writing=Writing(
        driver="SQLite",
        value_losses=TYPE_LOSSES,
        declares=True,
        hides_tables=True,
        reread=Reread(drivers=("SQLite",), tables=False),
        read_back="spatialite",
        extension=".sqlite",
        media_type="application/vnd.sqlite3",
        options=("-dsco", "SPATIALITE=YES", "-dsco", "INIT_WITH_EPSG=NO", "-lco", "LAUNDER=NO", "-gt", "65536"),
        multi_layer=True,
        derived_layers=True,
        m=True,
        # the driver refuses all features of a column that it has declared as three-dimensional geometries of any type
        type_options={**EXACT_TYPES, "": ("-nlt", "GEOMETRY")},
        fid_names=("ogc_fid", "fid", "pk_fid"),
        reserved_layers=(
            "sqlite_|idx_|(?:views_|virts_)?geometry_columns|vector_layers|geom_cols_ref_sys|spatial_ref_sys"
            "|spatialite_history|data_licenses|sql_statements_log|(?:SpatialIndex|ElementaryGeometries|KNN)$"
        ),
        reserved_columns=("ogc_fid", "rowid", "_rowid_"),  # taken for numbers of rows
        geometry_names=("geometry", "geom", "the_geom"),
        environment={"SPATIALITE_LOAD": "YES"},
    ),
)

SQLITE = Format(
    name=None,
    token="sqlite",
    title="SQLite",
    extensions=(".sqlite",),
    reading=Reading(
        drivers=("SQLite",),
        reader=Reader.DATABASE,
        options=("LIST_ALL_TABLES=YES",),
        column_prefix="__geomill_named_",
        zoned_texts=True,
        unchecked_texts=True,
    ),
)

_LEFT_OUT_OF_OPENFILEGDB = {
    CODES_LEFT_OUT: LeftOut(pattern=rb"<(?:\w{1,20}:)?GPCodedValueDomain2[\s>]|<SubtypeFieldName>[^<\s]"),
    RULES_LEFT_OUT: LeftOut(
        pattern=rb"<FieldType\b[^<>]{0,100}>esriFieldType(?!OID<|Geometry<|GlobalID<)\w{1,30}</FieldType>\s{0,20}"
        rb"<(?:IsNullable>false|Length>)|<DefaultValue(?:String|Numeric)?+\b[^<>]{0,100}>[^<]|<(?:\w{1,20}:)?GPRangeDomain2[\s>]"
    ),
    TITLES_LEFT_OUT: LeftOut(
        pattern=rb"<GPFieldInfoEx\b[^<>]{0,400}>\s*<Name>([^<]{1,400})</Name>\s*<AliasName>(?!\1</)[^<\s][^<]{0,400}</",
        within=b"<AliasName>",
    ),
    "Titles of layers (aliases, {count}) were left out; the layers keep their names.": LeftOut(
        pattern=TITLED_LAYERS, within=b"<AliasName>"
    ),
    HEIGHTS_LEFT_OUT: LeftOut(words=(b"<VCSWKID>",), releases="-3.10"),
    RELATIONS_LEFT_OUT: LeftOut(pattern=rb"<(?:\w{1,20}:)?DERelationshipClassInfo[\s>]"),
    DESCRIPTIONS_LEFT_OUT: LeftOut(pattern=DESCRIBED),
}
OPENFILEGDB = Format(
    name="OpenFileGdb",
    token="openfilegdb",
    title="OpenFileGDB",
    extensions=(SHARED_EXTENSION,),
    reading=Reading(
        drivers=("OpenFileGDB",),
        defers_columns=True,
        overflows=frozenset({"until_1970", "nans"}),
        left_out=left_out(_LEFT_OUT_OF_OPENFILEGDB),
        folder=Folder(
            ".gdb",
            "a00000001.gdbtable",
            r"gdb|timestamps|a[0-9a-f]{8}\.[\w.]{1,100}",
            index=".gdbtablx",
            data=".gdbtable",
            descriptions="a00000004.gdbtable",
        ),
    ),
    writing=Writing(
        driver="OpenFileGDB",
        declares=True,
        reread=Reread(drivers=("OpenFileGDB",)),
        value_losses=TYPE_LOSSES
        | {
            "booleans",
            "beyond_32_bits",
            "beyond_53_bits",
            "like_unset",
            "fractions",
            "leap_seconds",
            "offsets",
            "unzoned",
            "dates",
        },
        options=("-mapFieldType", "Integer64=Real", "-lco", "GEOMETRY_NAME=SHAPE"),
        column_names=ColumnRule.GEODATABASE,
        reserved_columns=GEODATABASE_WORDS,
        extension=".zip",
        media_type="application/zip",
        member=".gdb",
        delivery=Packaging.ARCHIVE,
        multi_layer=True,
        one_family=True,
        rings_alone=True,
        derived_layers=True,
        m=True,
        mixes_z=False,
        type_options=MULTI_TYPES,
        driver_is_optional=True,
    ),
)

UNSET = rb"\x7f\xad\xff\xff"
"""The number with which GDAL marks fields that are not set, as 32 bits."""
UNSET_NUMBERS = UNSET + rb"(?<=[\x00-\x07]" + UNSET + rb")\xff{0,3}+[^\xff]"
"""The same behind the number of a column, and not the half of a negative number of 64 bits."""
_LEFT_OUT_OF_FLATGEOBUF = {
    "The number -21121 in columns of 32 bits ({count} values) was read as no value. Save the columns with 64 bits to "
    "keep it.": LeftOut(pattern=UNSET_NUMBERS, within=b"\x7f\xad\xff\xff")
}

FLATGEOBUF = Format(
    name="FlatGeobuf",
    token="flatgeobuf",
    title="FlatGeobuf",
    extensions=(".fgb",),
    reading=Reading(
        drivers=("FlatGeobuf",),
        overflows=frozenset({"no_day", "nans"}),
        zoned_texts=True,
        unchecked_texts=True,
        has_texts_in_header=True,
        left_out=left_out(_LEFT_OUT_OF_FLATGEOBUF),
    ),
    writing=Writing(
        driver="FlatGeobuf",
        reread=Reread(drivers=("FlatGeobuf",)),
        value_losses=TYPE_LOSSES | {"dates"},
        options=("-mapFieldType", "Time=String"),
        extension=".fgb",
        media_type="application/vnd.flatgeobuf",
        m=True,
        mixes_z=False,
        type_options=EXACT_TYPES,
        curves=True,
        null_geometry=False,
        tables=False,
    ),
)

GEOPARQUET = Format(
    name="GeoParquet",
    token="geoparquet",
    title="GeoParquet",
    extensions=(".parquet",),
    reading=Reading(drivers=("Parquet",), reader=Reader.PARQUET),
    writing=Writing(
        driver="Parquet",
        declares=True,
        reread=Reread(drivers=("Parquet",)),
        value_losses=TYPE_LOSSES | {"leap_seconds", "mixed_zones", "offsets"},
        extension=".parquet",
        media_type="application/vnd.apache.parquet",
        writer=Writer.PARQUET,
        geometry_names=("geometry", "geom", "the_geom"),
        trailer=b"PAR1",
        driver_is_optional=True,
    ),
)
