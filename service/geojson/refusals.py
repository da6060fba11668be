"""The reasons why a document cannot be analyzed: codes that may leave the sandbox, and their sentences."""

from collections.abc import Mapping
from enum import StrEnum

from service.errors import Rejection


class Reason(StrEnum):
    """Why a document cannot be read as GeoJSON."""

    EMPTY = "empty"
    NOT_UTF8 = "not_utf8"
    NOT_JSON = "not_json"
    TRUNCATED = "truncated"
    TOO_DEEP = "too_deep"
    NOT_GEOJSON = "not_geojson"
    NO_FEATURES = "no_features"
    BAD_GEOMETRY = "bad_geometry"
    OTHER_LINES = "other_lines"
    TOPOJSON = "topojson"
    ESRI_JSON = "esri_json"
    TOO_MANY_FIELDS = "too_many_fields"
    LONG_NAMES = "long_names"
    ZERO_IN_NAMES = "zero_in_names"
    NO_SCAN = "no_scan"


NOT_ALL_FEATURES = "Not every line of the file is a GeoJSON feature. Each line has to hold exactly one."
OTHER_JSON: Mapping[Reason, str] = {Reason.TOPOJSON: "TopoJSON", Reason.ESRI_JSON: "Esri JSON"}
"""Documents that are not GeoJSON but are converted anyway."""

MAX_NESTING = 900
"""The maximum nesting depth of objects and arrays: the decoder's own limit depends on Python's version."""
MAX_FIELDS = 2000
MAX_NAME_CHARACTERS = 4096

SENTENCES: Mapping[Reason, str] = {
    Reason.EMPTY: "The file is empty.",
    Reason.NOT_UTF8: "The file is not UTF-8 text, which GeoJSON must be. Save it as UTF-8 and send it again.",
    Reason.NOT_JSON: (
        "The file is not valid JSON{where}. Trailing commas, comments and single quotes, for example, are not valid "
        "JSON. Check it with a JSON validator and send it again."
    ),
    Reason.TRUNCATED: "The GeoJSON ends in the middle of the file. It is probably cut off; send the whole file.",
    Reason.TOO_DEEP: "Objects and arrays in the file are nested too deeply (hundreds of levels). Simplify them.",
    Reason.NOT_GEOJSON: (
        "The file is JSON but not GeoJSON: its outermost object must have a member type with the value "
        "FeatureCollection, Feature or the name of a geometry type. Export the data as GeoJSON and send it again."
    ),
    Reason.NO_FEATURES: "The FeatureCollection has no member features that is an array.",
    Reason.BAD_GEOMETRY: "The file is a single geometry whose coordinates do not match its type.",
    Reason.OTHER_LINES: NOT_ALL_FEATURES,
    Reason.TOPOJSON: "The file is TopoJSON. Convert it to GeoJSON first.",
    Reason.ESRI_JSON: "The file is Esri JSON. Export it as GeoJSON.",
    Reason.TOO_MANY_FIELDS: (
        f"The features have more than {MAX_FIELDS:,} different properties, more than a table can have columns. Leave "
        "some out and send the file again."
    ),
    Reason.LONG_NAMES: (
        "The names of the properties are too long to be columns of a table. Shorten them and send the file again."
    ),
    Reason.ZERO_IN_NAMES: (
        "The name of a property has a zero byte (\\u0000), at which programs end it, so that another may get its "
        "values. Change the name and send the file again."
    ),
    Reason.NO_SCAN: "The file could not be analyzed.",
}


class Unreadable(Rejection):
    """The document cannot be read as GeoJSON; `reason` says why, and `line` where if it is not 0."""

    def __init__(self, reason: Reason, line: int = 0) -> None:
        super().__init__(SENTENCES[reason].format(where=f": see line {line:,}" if line else ""))
        self.reason = reason
        self.line = line
