"""Recognizes files of another kind than their names say, by their first bytes, so that a refusal can name the kind."""

import re
from codecs import BOM_UTF8
from collections.abc import Mapping
from contextlib import suppress

import msgspec

from service.errors import Rejection
from service.formats.format import Format
from service.formats.json_kinds import outermost_members
from service.formats.xml_root import HEAD_BYTES, ROOT

RENAME = "Name it {} and send it again."
ZIP_IT = "Put the files in it into a ZIP."
NOT_DOWNLOADED = "It may be a message or a sign-in page instead of a download: open it in a browser."
NO_FEATURES = "Such files hold no features."
TEXTS = frozenset({"csv", "wkt"})
"""Formats in which any text may be that no other format begins with."""
ZIPPED = frozenset({"kmz", "xlsx", "ods"})
JSON = frozenset({"geojson", "geojsonseq", "topojson", "esrijson"})
XML = TEXTS | {"kml", "gpx", "gml"}


class OtherKind(msgspec.Struct, frozen=True):
    """What files of a kind are, what helps, and the tokens of the formats whose files they may be."""

    name: str
    advice: str
    formats: frozenset[str] = frozenset()


STARTS: Mapping[bytes, OtherKind] = {
    rb"PK\x03\x04.{26}[^/\0]{1,200}\.kml": OtherKind("KMZ", RENAME.format(".kmz"), frozenset({"kmz"})),
    rb"PK\x03\x04.{26}\[Content_Types\]\.xml": OtherKind(
        "a workbook or another Office document", RENAME.format(".xlsx"), frozenset({"xlsx"})
    ),
    rb"PK\x03\x04.{26}mimetypeapplication/vnd\.oasis": OtherKind(
        "a sheet or another OpenDocument file", RENAME.format(".ods"), frozenset({"ods"})
    ),
    rb"PK\x03\x04": OtherKind("a ZIP archive", RENAME.format(".zip"), ZIPPED),
    rb"\x1f\x8b": OtherKind(
        "a gzip file", "Name it after the file in it, such as cities.csv.gz; put several files into a ZIP."
    ),
    rb"7z\xbc\xaf\x27\x1c": OtherKind("a 7-Zip archive", ZIP_IT),
    rb"Rar!\x1a\x07": OtherKind("a RAR archive", ZIP_IT),
    rb".{257}ustar(?:\0|  \0)": OtherKind("a tar archive", ZIP_IT),
    rb"SQLite format 3\0.{52}GP": OtherKind("a GeoPackage", RENAME.format(".gpkg"), frozenset({"gpkg"})),
    rb"SQLite format 3\0": OtherKind("an SQLite database", RENAME.format(".sqlite"), frozenset({"gpkg", "sqlite"})),
    rb"fgb\x03fgb": OtherKind("a FlatGeobuf", RENAME.format(".fgb"), frozenset({"flatgeobuf"})),
    rb"PAR1": OtherKind("Parquet", RENAME.format(".parquet"), TEXTS | {"geoparquet"}),
    rb"ARROW1\0\0": OtherKind("an Arrow table", "Save it as GeoParquet (.parquet)."),
    rb"\0\0\x27\x0a\0{20}": OtherKind(
        "a .shp of a Shapefile", "Put it into a ZIP with its .shx, .dbf and .prj.", frozenset({"shapefile"})
    ),
    rb"\xd0\xcf\x11\xe0": OtherKind("an Office document from before 2007", "Save a workbook as .xlsx."),
    rb"AC10\d\d\0": OtherKind("a DWG drawing", "Save it as DXF."),
    rb"%PDF-\d": OtherKind("a PDF", NO_FEATURES),
    rb"\x89PNG\r\n|\xff\xd8\xff|II\*\0|MM\0\*": OtherKind("an image", NO_FEATURES),
    rb"(?i)\s{0,99}<(?:!DOCTYPE\s{1,9}html|html[\s>])": OtherKind("a web page", NOT_DOWNLOADED),
    rb'\s{0,99}\{\s{0,99}"type"\s{0,9}:\s{0,9}"Feature(?:Collection)?"': OtherKind(
        "GeoJSON", RENAME.format(".geojson"), JSON
    ),
    rb"\s{0,99}[\[{]": OtherKind("JSON", RENAME.format(".geojson"), JSON | TEXTS),
}
"""By how they begin, as a regular expression; the first that matches decides."""
_ERROR = OtherKind("an error message from a server", "Look at it in a text editor, and download the file again.")
ROOTS: Mapping[str, OtherKind] = {
    "kml": OtherKind("KML", RENAME.format(".kml"), frozenset({"kml"})),
    "gpx": OtherKind("GPX", RENAME.format(".gpx"), frozenset({"gpx"})),
    "FeatureCollection": OtherKind("GML", RENAME.format(".gml"), frozenset({"gml"})),
    "html": OtherKind("a web page", NOT_DOWNLOADED),
    **dict.fromkeys(("ServiceExceptionReport", "ExceptionReport", "Error"), _ERROR),
    **dict.fromkeys(("osm", "osmChange"), OtherKind("OpenStreetMap XML", "Convert it into GeoJSON or GeoPackage.")),
    "TrainingCenterDatabase": OtherKind("TCX", "Convert it into GPX."),
    "qgis": OtherKind("a QGIS project or style", "Send the files that it names."),
    "svg": OtherKind("an image", NO_FEATURES),
}
"""By the outermost element of XML."""
JSON_MEMBERS: Mapping[str, OtherKind] = {
    "elements": OtherKind(
        "an Overpass result", "Export it as GeoJSON from Overpass Turbo, or convert it with osmtogeojson."
    ),
    **dict.fromkeys(
        ("locations", "timelineObjects", "semanticSegments"),
        OtherKind("a Google location history", "Convert it into GeoJSON or GPX."),
    ),
    "CityObjects": OtherKind("CityJSON", "Convert it into CityGML and name that .gml."),
    "asset": OtherKind("a glTF or 3D Tiles scene", NO_FEATURES),
    "tilejson": OtherKind("TileJSON, which says where map tiles are", NO_FEATURES),
    "stac_version": OtherKind("STAC metadata", "Send the files that it names."),
    "sources": OtherKind("a map style", "Send the files that it names."),
    "objectIds": OtherKind(
        "an answer of an ArcGIS server that holds no features",
        "Ask the server for them: with f=geojson, or f=json and outFields=*, and without returnCountOnly, "
        "returnIdsOnly and returnExtentOnly.",
    ),
    "currentVersion": OtherKind(
        "the description of an ArcGIS layer or service",
        "Download the features: add /query?where=1%3D1&outFields=*&f=geojson to the address of the layer.",
    ),
    **dict.fromkeys(("error", "errors"), _ERROR),
}
"""By a member of the outermost object of JSON that is not GeoJSON; the first row that applies decides."""
COUNT_OR_EXTENT = frozenset({"count", "extent"})
"""Members of an answer of an ArcGIS server that has no others; many files have them beside others."""
OF_GEOJSON = re.compile(rb'"(?:Feature|coordinates"|geometries")')
"""What GeoJSON has, and hardly any other JSON."""
JSON_ARRAY = OtherKind(
    "an array",
    "If it holds features, make it the member features of a FeatureCollection; if rows of a table, save it as CSV.",
)
OTHER_XML = OtherKind("XML", "If it is one of these, name it .kml, .gpx or .gml.", XML)
TEXT = OtherKind("text", "Name a table of such text .csv, or a document after its format.")
_STARTS = [(re.compile(start, re.DOTALL), kind) for start, kind in STARTS.items()]
BINARY = re.compile(rb"[\0-\x08\x0e-\x1a\x1c-\x1f]")


def refuse_other(row: Format, head: bytes) -> None:
    """Refuse a file that begins with `head` if that is how files of another format than `row` begin.

    Raises:
        Rejection: it does.
    """
    kind = _kind_of(head)
    if kind is not None and row.token not in kind.formats:
        raise Rejection(f"The file is not a valid {row.title} file: it is {kind.name}. {kind.advice}")


def refuse_without_features(head: bytes) -> None:
    """Refuse a whole JSON document `head` that has nothing of GeoJSON, if it is of a kind that can be named.

    Otherwise, it would be GeoJSON by its extension until it is read.

    Raises:
        Rejection: it is.
    """
    if OF_GEOJSON.search(head):
        return
    with suppress(msgspec.DecodeError, RecursionError):
        msgspec.json.decode(head, type=msgspec.Raw)
        refuse_other_json(head)


def refuse_other_json(head: bytes) -> None:
    """Refuse JSON that begins with `head`, is not GeoJSON, and has no features if it is of a kind that can be named.

    Raises:
        Rejection: it is.
    """
    names = {name for name, _ in outermost_members(head)}
    if names and names <= COUNT_OR_EXTENT:
        names = {"objectIds"}
    kind = None if "features" in names else next((kind for name, kind in JSON_MEMBERS.items() if name in names), None)
    if kind is None and head.lstrip().startswith(b"["):
        kind = JSON_ARRAY
    if kind is not None:
        raise Rejection(f"The file is JSON but not GeoJSON: it is {kind.name}. {kind.advice}")


def no_archive(head: bytes) -> Rejection:
    """The rejection of a file that begins with `head` and is no ZIP."""
    kind = _kind_of(head.removeprefix(BOM_UTF8)) or (None if BINARY.search(head) else TEXT)
    if kind is None or kind.formats & ZIPPED:
        return Rejection("The file is not a readable ZIP archive. Create the ZIP again.")
    return Rejection(f"The file is not a readable ZIP archive: it is {kind.name}. {kind.advice}")


def _kind_of(head: bytes) -> OtherKind | None:
    for start, kind in _STARTS:
        if start.match(head):
            return kind
    root = ROOT.match(head[:HEAD_BYTES])
    return None if root is None else ROOTS.get(root["name"].decode(), OTHER_XML)
