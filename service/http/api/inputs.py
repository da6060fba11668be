"""The inputs of the endpoints: form fields, parameters and headers, each with its meaning and bounds.

`params` reads form fields and queries by these rows, but checks rules between fields and the syntax of headers itself.
`openapi` describes the rows.
"""

from collections.abc import Callable, Mapping
from typing import Any, Literal

import msgspec

from service.formats.registry import OUTPUT_NAMES
from service.formats.request import DEFAULT_EPSG
from service.intake.form import FormSpec

MAX_DIGITS = 9
MAX_IDEMPOTENCY_KEY = 255
MAX_SEARCH = 100
MAX_CHARACTERS = 2048
"""The longest field, in characters of any alphabet."""
DEFAULT_JOBS = 20
MOST_JOBS = 100
MOST_WAIT_SECONDS = 60

Schema = Mapping[str, Any]
"""A JSON schema."""


class ValueKind(msgspec.Struct, frozen=True):
    """A kind of value: its schema, its parser, and the complaint if `read` returns None."""

    schema: Schema
    read: Callable[[str], object]
    complaint: str = ""


class FormField(msgspec.Struct, frozen=True):
    """A text part of a form; with `many` it may be repeated, and each value applies to the file at its position.

    `wish` is the member of `ConversionRequest` that it sets, if any.
    """

    name: str
    description: str
    kind: ValueKind
    wish: str = ""
    many: bool = False

    @property
    def schema(self) -> Schema:
        """The schema of one value."""
        return self.kind.schema


class UploadForm(msgspec.Struct, frozen=True, kw_only=True):
    """The form of an upload: its file parts and its fields."""

    file_field: str
    file_description: str
    sample_file: str
    fields: tuple[FormField, ...] = ()
    sample: Mapping[str, str] = {}
    many: bool = False
    rules: Schema = {}
    """Rules between fields, in addition to each field's own."""

    def spec(self) -> FormSpec:
        """Return the form as intake needs it."""
        names = frozenset(field.name for field in self.fields)
        return FormSpec(file_field=self.file_field, fields=names, many=self.many)


class Parameter(msgspec.Struct, frozen=True):
    """A value in the path, the query or a header."""

    name: str
    place: Literal["path", "query", "header"]
    description: str
    schema: Schema
    required: bool = False
    sample: str = ""


_BOOLEANS = {"": False, "true": True, "1": True, "false": False, "0": False}
_LARGEST = 10**MAX_DIGITS - 1
_EPSG_COMPLAINT = "must be a whole number: the EPSG code of a coordinate system, such as 4326."


def read_number(text: str) -> int | None:
    """Parse a whole number in ASCII digits; None if `text` is not one."""
    digits = text.removeprefix("-")
    return int(text) if digits.isascii() and digits.isdigit() and len(digits) <= MAX_DIGITS else None


def read_boolean(text: str) -> bool | None:
    """Parse a boolean, an empty text being false; None if `text` is not one."""
    return _BOOLEANS.get(text.lower())


_EPSG = ValueKind({"type": "integer", "minimum": -_LARGEST, "maximum": _LARGEST}, read_number, _EPSG_COMPLAINT)
_EPSG_OR_NONE = ValueKind(
    {"type": "string", "pattern": f"^(-?[0-9]{{1,{MAX_DIGITS}}})?$"}, read_number, _EPSG_COMPLAINT
)
_TEXT = ValueKind({"type": "string", "maxLength": MAX_CHARACTERS, "pattern": "^[^\\u0000]*$"}, str)
_OUTPUT = ValueKind({"type": "string", "enum": list(OUTPUT_NAMES)}, str)
_OUTPUT_OR_NONE = ValueKind({"type": "string", "enum": ["", *OUTPUT_NAMES]}, str)
_OUTPUTS = f"{', '.join(OUTPUT_NAMES)}; in any case, or a token or usual extension, such as gpkg or .fgb"
_DEFAULT = "GeoJSON becomes Shapefile, everything else GeoJSON"

TARGET_EPSG = FormField(
    "targetEpsg",
    f"EPSG code of the result's coordinate system, {DEFAULT_EPSG} if omitted. GeoJSON, KML, KMZ and GPX are "
    f"always {DEFAULT_EPSG}.",
    _EPSG,
    wish="target_epsg",
)

_BOOLEAN = ValueKind(
    {
        "type": "string",
        "pattern": "^([Tt][Rr][Uu][Ee]|[Ff][Aa][Ll][Ss][Ee]|1|0)?$",
        "examples": ["true", "false"],
        "default": "false",
    },
    read_boolean,
    "must be true or false.",
)
_TABLES = "of CSV, XLSX or ODS; required if its name is unusual"
TABLE_FIELDS = (
    FormField("xField", f"The column with x, or longitude, {_TABLES}. Requires yField.", _TEXT, wish="x_field"),
    FormField("yField", f"The column with y, or latitude, {_TABLES}. Requires xField.", _TEXT, wish="y_field"),
    FormField("zField", "The column with elevations. Requires xField and yField.", _TEXT, wish="z_field"),
    FormField(
        "wktField",
        f"The column with geometries as WKT, WKB or GeoJSON {_TABLES}. Excludes the other three.",
        _TEXT,
        wish="wkt_field",
    ),
    FormField(
        "keepCoordinates",
        "Whether to write coordinates of an unknown system unchanged, as in drawings and local grids. Not for "
        "GeoJSON, GeoJSONSeq, KML, KMZ and GPX, which are always in longitude and latitude.",
        _BOOLEAN,
        wish="keep_coordinates",
    ),
)
_PAIR = ("xField", "yField")
TABLE_RULES: Schema = {
    "dependentRequired": {"xField": ["yField"], "yField": ["xField"], "zField": list(_PAIR)},
    "dependentSchemas": {"wktField": {"properties": dict.fromkeys((*_PAIR, "zField"), False)}},
}
"""Alternatives would say the same, but turn the form into a union of types in generated clients."""

INCLUDE_WALLET = FormField(
    "includeWallet",
    "Whether to fill remainingConversions, remainingBytes and newWalletBalanceCents: true, false, 1 or 0.",
    _BOOLEAN,
)

CONVERSION = UploadForm(
    file_field="file",
    file_description="The file; its extension determines its format. A ZIP that contains one file is unpacked.",
    sample_file="lakes.geojson",
    fields=(
        FormField("outputFormat", f"The target: {_OUTPUTS}. Omitted: {_DEFAULT}.", _OUTPUT, wish="output"),
        TARGET_EPSG,
        FormField(
            "sourceEpsg",
            "EPSG code of the input's coordinates; overrides what the file records, and is required if it records "
            "none.",
            _EPSG,
            wish="source_epsg",
        ),
        FormField("layer", "The layer to convert, if there are several.", _TEXT, wish="layer"),
        *TABLE_FIELDS,
        INCLUDE_WALLET,
    ),
    sample={"outputFormat": "GeoPackage"},
    rules=TABLE_RULES,
)

BATCH = UploadForm(
    file_field="files",
    file_description="The files, each under this name.",
    sample_file="lakes.geojson",
    fields=(
        FormField(
            "outputFormats",
            f"The targets, in the order of the files: {_OUTPUTS}. Empty or omitted: {_DEFAULT}.",
            _OUTPUT_OR_NONE,
            wish="output",
            many=True,
        ),
        TARGET_EPSG,
        FormField(
            "sourceEpsgs",
            "The EPSG codes of the inputs' coordinates, in the order of the files; empty for a file that records "
            "its own.",
            _EPSG_OR_NONE,
            wish="source_epsg",
            many=True,
        ),
        *TABLE_FIELDS,
    ),
    sample={"outputFormats": "Kml"},
    many=True,
    rules=TABLE_RULES,
)

ANALYSIS = UploadForm(
    file_field="file", file_description="A GeoJSON document, .geojson or .json.", sample_file="lakes.geojson"
)

LIMIT = Parameter(
    "limit",
    "query",
    "The number of jobs to return, newest first.",
    {"type": "integer", "minimum": 1, "maximum": MOST_JOBS, "default": DEFAULT_JOBS},
    sample="5",
)

_DAY = {"type": "string", "format": "date"}
FIRST_DAY = Parameter("from", "query", "The first day (UTC); omitted: the first of the month of the last.", _DAY)
LAST_DAY = Parameter("to", "query", "The last day (UTC); omitted: today.", _DAY)

DOWNLOAD = Parameter(
    "download",
    "query",
    "true: respond with the result itself; with status 422 and the record if the file was not converted.",
    {name: rule for name, rule in _BOOLEAN.schema.items() if name != "examples"},  # true is none beside Prefer
)

WAIT = Parameter(
    "wait",
    "query",
    "The number of seconds to wait for the end of the job before responding.",
    {"type": "integer", "minimum": 0, "maximum": MOST_WAIT_SECONDS, "default": 0},
    sample="30",
)

ONLY = Parameter(
    "only",
    "query",
    "open: cancel the job if it is open, and keep the result of one that has completed.",
    {"type": "string", "enum": ["open"]},
)

SEARCH = Parameter(
    "search",
    "query",
    "Words of the name or area of a system, or its code. Omitted: systems with short names.",
    {"type": "string", "maxLength": MAX_SEARCH},
    sample="utm 33n",
)

IDEMPOTENCY_KEY = Parameter(
    "Idempotency-Key",
    "header",
    "A repeat with the same key, file and fields returns the first response for 24 hours and counts once.",
    {"type": "string", "minLength": 1, "maxLength": MAX_IDEMPOTENCY_KEY, "pattern": "^[!-~]([ -~]*[!-~])?$"},
)

PREFER = Parameter(
    "Prefer",
    "header",
    "respond-async: respond as soon as the upload is accepted (RFC 7240).",
    {"type": "string", "examples": ["respond-async"]},
)

JOB_ID = Parameter("jobId", "path", "The job.", {"type": "string"}, required=True, sample="JOB_ID")

OBJECT_KEY = Parameter("key", "path", "The stored result.", {"type": "string"}, required=True, sample="KEY")
DOWNLOAD_NAME = Parameter("name", "path", "Its name.", {"type": "string"}, required=True, sample="NAME")
LINK_PARAMETERS = tuple(
    Parameter(name, "query", meaning, {"type": "string"}, required=True)
    for name, meaning in (
        ("type", "Its media type."),
        ("expires", "When the link expires, in Unix time."),
        ("signature", "HMAC signature of the link."),
    )
)
RANGE = Parameter("Range", "header", "The requested bytes, such as bytes=0-1023 (RFC 9110).", {"type": "string"})
IF_NONE_MATCH = Parameter(
    "If-None-Match", "header", "The ETag of a copy that the client already has.", {"type": "string"}
)
ASSET = Parameter("asset", "path", "A part of the page.", {"type": "string"}, required=True)
