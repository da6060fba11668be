"""The format table: every format, how it is read, how it is written, what it can hold.

A format is a row, and differences between formats are columns, so a new format is a new row. Other code reads the
columns; it compares tokens only to tell whether two rows are the same format. The settings were tested with GDAL
3.6, 3.10 and 3.13 on every pair of formats; rows say where releases differ.
"""

from service.formats.format import Format
from service.formats.table.databases import FLATGEOBUF, GEOPACKAGE, GEOPARQUET, OPENFILEGDB, SPATIALITE, SQLITE
from service.formats.table.drawings import DXF, MAPINFO, SHAPEFILE, WKT
from service.formats.table.gml import GML
from service.formats.table.gpx import GPX
from service.formats.table.json_family import ESRIJSON, GEOJSON, GEOJSONSEQ, TOPOJSON
from service.formats.table.kml import KML, KMZ
from service.formats.table.tables import CSV, ODS, XLSX

FORMATS: tuple[Format, ...] = (
    GEOJSON,
    SHAPEFILE,
    CSV,
    GML,
    GEOPACKAGE,
    GPX,
    KML,
    KMZ,
    FLATGEOBUF,
    GEOJSONSEQ,
    DXF,
    MAPINFO,
    ODS,
    XLSX,
    SPATIALITE,
    GEOPARQUET,
    OPENFILEGDB,
    WKT,
    SQLITE,
    TOPOJSON,
    ESRIJSON,
)
"""All rows, in the order of lists; if two formats share an extension, the first row takes precedence."""
