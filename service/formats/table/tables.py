# ruff: noqa: S106 -- a token is a format's short name here
"""The rows of tables whose geometry is in ordinary columns: CSV and spreadsheets."""

from service.formats.format import ColumnRule, Format, Reader, Reading, Reread, Writer, Writing
from service.formats.table.xml_parts import XML_LOSSES
from service.formats.unread import ENCRYPTED_WORKBOOK, UTF_16_WITHOUT_MARK
from service.formats.values import TYPE_LOSSES

CSV_PLACES = (
    "HEADERS=YES",
    "X_POSSIBLE_NAMES=X",
    "Y_POSSIBLE_NAMES=Y",
    "Z_POSSIBLE_NAMES=Z",
    "GEOM_POSSIBLE_NAMES=WKT",
)
"""The header and the columns that hold the geometry in a CSV file that the service wrote."""

CSV = Format(
    name="Csv",
    token="csv",
    title="CSV",
    extensions=(".csv",),
    reading=Reading(
        drivers=("CSV",),
        reader=Reader.DELIMITED,
        records_crs=False,
        overflows=frozenset({"infinite"}),
        unread=(UTF_16_WITHOUT_MARK,),
    ),
    writing=Writing(
        driver="CSV",
        reread=Reread(
            drivers=("CSV",),
            options=CSV_PLACES,
            number_names=frozenset({"x", "y", "z"}),
            least_columns=2,
            changed_names=r'["\r\n]|^[ \t]|[ \t]$',
        ),
        value_losses=frozenset(
            {"beyond_15_digits", "lists", "booleans", "infinite", "near_infinite", "binary_texts", "empty_texts"}
        ),
        read_back="delimited",
        empty_is_null=True,
        extension=".csv",
        media_type="text/csv; charset=utf-8",
        writer=Writer.PLACES,
        options=("-lco", "STRING_QUOTING=IF_NEEDED"),
        uneven_rows="-3.8",
        reserved_columns=("WKT",),
        m=True,
        records_crs=False,
    ),
)

ODS = Format(
    name="Ods",
    token="ods",
    title="ODS",
    extensions=(".ods",),
    reading=Reading(
        drivers=("ODS",),
        reader=Reader.WORKBOOK,
        environment={"OGR_ODS_HEADERS": "FORCE"},
        records_crs=False,
        types_by_first_row=True,
        overflows=frozenset({"exponents", "infinite", "nans", "no_day"}),
        properties="meta.xml",
    ),
    writing=Writing(
        driver="ODS",
        empty_columns=False,
        reread=Reread(
            drivers=("ODS",), environment={"OGR_ODS_HEADERS": "FORCE"}, geometries=False, rows_by="opendocument"
        ),
        empty_is_null=True,
        value_losses=XML_LOSSES
        | TYPE_LOSSES
        | {"beyond_15_digits", "beyond_53_bits", "tiny", "zones", "empty_texts", "like_formulas", "uneven_space"},
        extension=".ods",
        media_type="application/vnd.oasis.opendocument.spreadsheet",
        writer=Writer.WORKBOOK,
        column_names=ColumnRule.CELL,
        multi_layer=True,
        m=True,
        records_crs=False,
        live_text="of:=",
        columns_elsewhere=1_024,
        max_layer_name=31,
        reserved_columns=("WKT",),
        unwritten_names="Field",
        max_rows=1_048_575,
    ),
)

XLSX = Format(
    name="Xlsx",
    token="xlsx",
    title="XLSX",
    extensions=(".xlsx",),
    reading=Reading(
        drivers=("XLSX",),
        reader=Reader.WORKBOOK,
        defers_columns=True,
        environment={"OGR_XLSX_HEADERS": "FORCE"},
        records_crs=False,
        overflows=frozenset({"exponents", "old_dates", "infinite", "nans"}),
        main_part="xl/workbook.xml",
        properties="docProps/core.xml",
        doubts_dates=True,
        unread=(ENCRYPTED_WORKBOOK,),
    ),
    writing=Writing(
        driver="XLSX",
        empty_columns=False,
        reread=Reread(drivers=("XLSX",), environment={"OGR_XLSX_HEADERS": "FORCE"}, geometries=False),
        empty_is_null=True,
        value_losses=XML_LOSSES
        | TYPE_LOSSES
        | {"beyond_15_digits", "beyond_53_bits", "leap_seconds", "zones", "old_dates", "empty_texts"}
        | {"like_escapes", "space_around"},
        extension=".xlsx",
        media_type="application/vnd.openxmlformats-officedocument.spreadsheetml.sheet",
        writer=Writer.WORKBOOK,
        column_names=ColumnRule.CELL,
        multi_layer=True,
        m=True,
        records_crs=False,
        max_layer_name=31,
        reserved_columns=("WKT",),
        unwritten_names="Field",
        max_rows=1_048_575,
        max_cell=32_767,
    ),
)
