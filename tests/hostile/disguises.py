"""Content that does not match the extension: GDAL recipes for other files, other formats, several formats at once."""

from tests.hostile.case import ANOTHER_KIND, REFUSED, Case, constant, text
from tests.hostile.packing import packed
from tests.support.data import lakes

EXTENSIONS = (
    ".geojson",
    ".json",
    ".geojsonl",
    ".kml",
    ".kmz",
    ".gpx",
    ".gpkg",
    ".csv",
    ".dxf",
    ".gml",
    ".fgb",
    ".sqlite",
    ".parquet",
    ".ods",
    ".xlsx",
)
VRT = (
    "<OGRVRTDataSource><OGRVRTLayer name='secret'><SrcDataSource>{csv}</SrcDataSource>"
    "<GeometryType>wkbNone</GeometryType></OGRVRTLayer></OGRVRTDataSource>"
)
VRT_BY_SQL = (
    "<OGRVRTDataSource><OGRVRTLayer name='secret'><SrcDataSource>{geojson}</SrcDataSource>"
    "<SrcSQL dialect='SQLITE'>SELECT * FROM secret</SrcSQL></OGRVRTLayer></OGRVRTDataSource>"
)
VRT_BY_HTTP = (
    "<OGRVRTDataSource><OGRVRTLayer name='secret'><SrcDataSource>/vsicurl/{url}/secret.csv</SrcDataSource>"
    "</OGRVRTLayer></OGRVRTDataSource>"
)
WFS = "<OGRWFSDataSource><URL>{url}/wfs?SERVICE=WFS</URL></OGRWFSDataSource>"
WMS = "<GDAL_WMS><Service name='WMS'><ServerUrl>{url}/wms?</ServerUrl></Service></GDAL_WMS>"
TRAINING = (
    "<?xml version='1.0'?><TrainingCenterDatabase xmlns="
    "'http://www.garmin.com/xmlschemas/TrainingCenterDatabase/v2'><Activities/></TrainingCenterDatabase>"
)
ESRI = (
    '{"displayFieldName": "a", "geometryType": "esriGeometryPoint", "spatialReference": {"wkid": 4326}, "fields": '
    '[{"name": "a", "type": "esriFieldTypeString"}], "exceededTransferLimit": true, '
    '"features": [{"attributes": {"a": "b"}, "geometry": {"x": 1, "y": 2}}]}'
)
PNG = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\0\1\0\0\0\1\x08\2\0\0\0\x90wS\xde"
ELF = b"\x7fELF\2\1\1" + bytes(57)
KINDS = {
    "a picture": PNG,
    "a program": ELF,
    "a page": b"<!DOCTYPE html><html><body>1,2</body></html>",
    "zeros": bytes(4096),
}


def _in_table(extension: str) -> str | None:
    """Any text is a CSV file of some kind; no other format accepts foreign content."""
    return None if extension == ".csv" else ANOTHER_KIND


CASES = {
    **{f"VRT as {ext}": Case(f"a{ext}", text(VRT), _in_table(ext)) for ext in EXTENSIONS},
    **{f"VRT with SQL as {ext}": Case(f"a{ext}", text(VRT_BY_SQL), _in_table(ext)) for ext in (".gml", ".csv", ".kml")},
    **{f"VRT by HTTP as {ext}": Case(f"a{ext}", text(VRT_BY_HTTP), _in_table(ext)) for ext in (".gpx", ".csv", ".kml")},
    **{f"WFS as {ext}": Case(f"a{ext}", text(WFS), _in_table(ext)) for ext in (".gml", ".csv", ".geojson")},
    "WMS as .gml": Case("a.gml", text(WMS), ANOTHER_KIND),
    "a training log as .gpx": Case("a.gpx", constant(TRAINING), ANOTHER_KIND),
    "pages of another server as .json": Case("a.json", constant(ESRI)),
    "VRT after a byte order mark": Case("a.kml", text(f"\ufeff{VRT}"), ANOTHER_KIND),
    "VRT in a ZIP as a shapefile": Case(
        "a.zip", lambda bait: packed({f"a.{part}": text(VRT)(bait) for part in ("shp", "shx", "dbf", "prj")}), REFUSED
    ),
    "VRT in a ZIP as GML": Case("a.zip", lambda bait: packed({"a.gml": text(VRT)(bait)}), ANOTHER_KIND),
    "VRT in a KMZ": Case("a.kmz", lambda bait: packed({"doc.kml": text(VRT)(bait)}), ANOTHER_KIND),
    "GeoJSON as .gpkg": Case("a.gpkg", constant(lakes()), ANOTHER_KIND),
    "GeoJSON as .parquet": Case("a.parquet", constant(lakes()), ANOTHER_KIND),
    "GeoJSON behind a ZIP's name": Case("a.zip", constant(lakes()), "not a readable ZIP"),
    "a ZIP with a page before it": Case(
        "a.zip", constant(b"<html><script>alert(1)</script>" + packed({"a.geojson": lakes()})), ""
    ),
    "GeoJSON with a ZIP behind it": Case("a.geojson", constant(lakes() + packed({"a.kml": b"<kml/>"})), REFUSED),
    **{
        f"{kind} as {ext}": Case(f"a{ext}", constant(content), _in_table(ext))
        for kind, content in KINDS.items()
        for ext in (".geojson", ".kml", ".gpx", ".dxf", ".xlsx", ".csv")
    },
}
