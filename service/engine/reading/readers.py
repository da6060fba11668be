"""Reads an upload into memory or into the work file, whatever its format is.

Only the input's own driver and GeoPackage are registered while the untrusted file is read.
"""

from collections.abc import Awaitable, Callable, Mapping

import msgspec

from service.engine.jailed import (
    column_types,
    delimited,
    gml_systems,
    kml_names,
    lines,
    mif_lines,
    parallels,
    relabel,
    shape_records,
    sheets,
    topojson,
)
from service.engine.reading.databases import read_database, read_geopackage
from service.engine.reading.esri_json import read_esri_json
from service.engine.reading.files import read_json, read_parts, read_single
from service.engine.reading.gml import read_gml
from service.engine.reading.gpx import read_gpx
from service.engine.reading.kml import read_kml
from service.engine.reading.tables import read_delimited, read_parquet, read_workbook
from service.engine.reading.topojson import read_topojson
from service.engine.reading.work_file import WorkFile
from service.engine.workspace import Workplace
from service.formats.format import Reader, reading_of
from service.formats.request import ConversionRequest
from service.formats.source import Source

JAILED = tuple(
    module.__name__
    for module in (
        delimited,
        sheets,
        column_types,
        gml_systems,
        kml_names,
        relabel,
        lines,
        mif_lines,
        parallels,
        shape_records,
        topojson,
    )
)
_READERS: Mapping[Reader, Callable[[Workplace, Source], Awaitable[WorkFile]]] = {
    Reader.OGR: read_single,
    Reader.DXF: read_single,
    Reader.DOCUMENT: read_json,
    Reader.LINES: read_json,
    Reader.PARTS: read_parts,
    Reader.KML: read_kml,
    Reader.GPX: read_gpx,
    Reader.GML: read_gml,
    Reader.DATABASE: read_database,
    Reader.GEOPACKAGE: read_geopackage,
    Reader.ESRI_JSON: read_esri_json,
    Reader.TOPOJSON: read_topojson,
}
_TABLE_READERS: Mapping[Reader, Callable[[Workplace, Source, ConversionRequest], Awaitable[WorkFile]]] = {
    Reader.DELIMITED: read_delimited,
    Reader.WORKBOOK: read_workbook,
    Reader.PARQUET: read_parquet,
}
"""The readers of files whose geometry may be in ordinary columns, which the request may name."""


async def read_into_work_file(place: Workplace, source: Source, request: ConversionRequest) -> WorkFile:
    """Fill the work file with the content of `source`.

    Raises:
        Rejection: the file cannot be read, or lacks the columns that `request` names.
    """
    reader = reading_of(source.format).reader
    if reader in _TABLE_READERS:
        return await _TABLE_READERS[reader](place, source, request)
    found = await _READERS[reader](place, source)
    if request.place_fields:
        unused = " and ".join(request.place_fields)
        ignored = f"{unused} was not used: {source.format.title} stores geometry, not coordinate columns."
        found = msgspec.structs.replace(found, warnings=(*found.warnings, ignored))
    return found
