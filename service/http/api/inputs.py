"""What endpoints take: the form fields, parameters and headers, each one row with its meaning and its bounds.

`params` reads by these rows, `openapi` describes them.
"""

from collections.abc import Callable, Mapping
from typing import Any, Literal

import msgspec

from service.formats.registry import OUTPUT_NAMES
from service.formats.request import DEFAULT_EPSG
from service.intake.form import FormSpec

MAX_DIGITS = 9
MAX_IDEMPOTENCY_KEY = 255
MAX_CHARACTERS = 2048
"""So many fit into a field in any alphabet."""
DEFAULT_JOBS = 20
MOST_JOBS = 100

Schema = Mapping[str, Any]
"""A JSON schema."""


class Kind(msgspec.Struct, frozen=True):
    """A kind of value: its schema, how its text is read, and what is said where `read` returns None."""

    schema: Schema
    read: Callable[[str], object]
    complaint: str = ""


class Field(msgspec.Struct, frozen=True):
    """A text part of a form; `many` ones may be repeated and stand beside the files by their place.

    `wish` is the member of `ConversionRequest` that it becomes, if any.
    """

    name: str
    description: str
    kind: Kind
    wish: str = ""
    many: bool = False

    @property
    def schema(self) -> Schema:
        """What one value looks like."""
        return self.kind.schema


class UploadForm(msgspec.Struct, frozen=True, kw_only=True):
    """The form of an upload: its file part, or parts, and its fields."""

    file_field: str
    file_description: str
    sample_file: str
    fields: tuple[Field, ...] = ()
    sample: Mapping[str, str] = {}
    many: bool = False
    rules: Schema = {}
    """Which fields go together, beyond what each of them says."""

    def spec(self) -> FormSpec:
        """Return what intake is told of it."""
        names = frozenset(field.name for field in self.fields)
        return FormSpec(file_field=self.file_field, fields=names, many=self.many)


class Parameter(msgspec.Struct, frozen=True, kw_only=True):
    """A value in the path, the query or a header."""

    name: str
    place: Literal["path", "query", "header"]
    description: str
    schema: Schema
    required: bool = False
    sample: str = ""


_BOOLEANS = {"true": True, "1": True, "false": False, "0": False}
_LARGEST = 10**MAX_DIGITS - 1
_EPSG_COMPLAINT = "must be a whole number: the EPSG code of a coordinate system, as 4326."


def read_number(text: str) -> int | None:
    """Return the whole number that `text` is, in ASCII digits; None if it is none."""
    digits = text.removeprefix("-")
    return int(text) if digits.isascii() and digits.isdigit() and len(digits) <= MAX_DIGITS else None


def _read_boolean(text: str) -> bool | None:
    return _BOOLEANS.get(text.lower())


_EPSG = Kind({"type": "integer", "minimum": -_LARGEST, "maximum": _LARGEST}, read_number, _EPSG_COMPLAINT)
_EPSG_OR_NONE = Kind({"type": "string", "pattern": f"^(-?[0-9]{{1,{MAX_DIGITS}}})?$"}, read_number, _EPSG_COMPLAINT)
_TEXT = Kind({"type": "string", "maxLength": MAX_CHARACTERS, "pattern": "^[^\\u0000]*$"}, str)
_OUTPUT = Kind({**_TEXT.schema, "examples": list(OUTPUT_NAMES)}, str)
_OUTPUTS = f"{', '.join(OUTPUT_NAMES)}; in any case, or a token or usual extension, as gpkg or .fgb"
_DEFAULT = "GeoJSON becomes Shapefile, everything else GeoJSON"

TARGET_EPSG = Field(
    "targetEpsg",
    f"EPSG code of the result's coordinate system, {DEFAULT_EPSG} where it is omitted. GeoJSON, KML, KMZ and GPX are "
    f"always {DEFAULT_EPSG}.",
    _EPSG,
    wish="target_epsg",
)

_BOOLEAN = Kind(
    {
        "type": "string",
        "pattern": "^([Tt][Rr][Uu][Ee]|[Ff][Aa][Ll][Ss][Ee]|1|0)?$",
        "examples": ["true", "false"],
        "default": "false",
    },
    _read_boolean,
    "must be true or false.",
)
_TABLES = "of CSV, XLSX or ODS; needed where its name is unusual"
TABLE_FIELDS = (
    Field("xField", f"The column with x, or longitude, {_TABLES}. Goes with yField.", _TEXT, wish="x_field"),
    Field("yField", f"The column with y, or latitude, {_TABLES}. Goes with xField.", _TEXT, wish="y_field"),
    Field("zField", "The column with elevations, beside xField and yField.", _TEXT, wish="z_field"),
    Field(
        "wktField",
        f"The column with geometries as WKT, WKB or GeoJSON {_TABLES}. Goes without the other three.",
        _TEXT,
        wish="wkt_field",
    ),
    Field(
        "keepCoordinates",
        "Whether to write coordinates of an unknown system as they are, as those of drawings and local grids. Not for "
        "GeoJSON, GeoJSONSeq, KML, KMZ and GPX, which are always in longitude and latitude.",
        _BOOLEAN,
        wish="keep_coordinates",
    ),
)
_PAIR = ("xField", "yField")
_WITHOUT_PAIR = dict.fromkeys((*_PAIR, "zField"), False)
TABLE_RULES: Schema = {
    "anyOf": [
        {"properties": {**_WITHOUT_PAIR, "wktField": False}},
        {"properties": {"wktField": False}, "required": list(_PAIR)},
        {"properties": _WITHOUT_PAIR, "required": ["wktField"]},
    ]
}

INCLUDE_WALLET = Field(
    "includeWallet",
    "Whether to fill remainingConversions, remainingBytes and newWalletBalanceCents: true, false, 1 or 0, in any case.",
    _BOOLEAN,
)

CONVERSION = UploadForm(
    file_field="file",
    file_description="The file; its extension says what it is. A ZIP around one file is unwrapped.",
    sample_file="lakes.geojson",
    fields=(
        Field("outputFormat", f"The target: {_OUTPUTS}. Omitted: {_DEFAULT}.", _OUTPUT, wish="output"),
        TARGET_EPSG,
        Field(
            "sourceEpsg",
            "EPSG code that the coordinates are in; overrides what the file records, and is needed where it records "
            "none.",
            _EPSG,
            wish="source_epsg",
        ),
        Field("layer", "The one layer to convert out of several.", _TEXT, wish="layer"),
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
        Field(
            "outputFormats",
            f"The targets, by the place of their files: {_OUTPUTS}. Empty or omitted: {_DEFAULT}.",
            _OUTPUT,
            wish="output",
            many=True,
        ),
        TARGET_EPSG,
        Field(
            "sourceEpsgs",
            "The EPSG codes that the coordinates are in, by the place of their files; empty for a file that records "
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
    name="limit",
    place="query",
    description="How many jobs, the newest first.",
    schema={"type": "integer", "minimum": 1, "maximum": MOST_JOBS, "default": DEFAULT_JOBS},
    sample="5",
)

IDEMPOTENCY_KEY = Parameter(
    name="Idempotency-Key",
    place="header",
    description="The same key with the same file and fields returns the first answer for 24 hours and counts once.",
    schema={"type": "string", "minLength": 1, "maxLength": MAX_IDEMPOTENCY_KEY, "pattern": "^[!-~]([ -~]*[!-~])?$"},
)

PREFER = Parameter(
    name="Prefer",
    place="header",
    description="respond-async: answer as soon as the upload is accepted (RFC 7240).",
    schema={"type": "string", "examples": ["respond-async"]},
)

JOB_ID = Parameter(
    name="jobId", place="path", description="The job.", schema={"type": "string"}, required=True, sample="JOB_ID"
)

OBJECT_KEY = Parameter(
    name="key", place="path", description="The stored result.", schema={"type": "string"}, required=True, sample="KEY"
)
DOWNLOAD_NAME = Parameter(
    name="name", place="path", description="Its name.", schema={"type": "string"}, required=True, sample="NAME"
)
LINK_PARAMETERS = tuple(
    Parameter(name=name, place="query", description=meaning, schema={"type": "string"}, required=True)
    for name, meaning in (
        ("type", "Its media type."),
        ("expires", "The second at which the link ends, in Unix time."),
        ("signature", "What proves all of it."),
    )
)
RANGE = Parameter(
    name="Range",
    place="header",
    description="The bytes wanted, as in bytes=0-1023 (RFC 9110).",
    schema={"type": "string"},
)
IF_NONE_MATCH = Parameter(
    name="If-None-Match",
    place="header",
    description="The ETag of a copy that is here already.",
    schema={"type": "string"},
)
ASSET = Parameter(
    name="asset", place="path", description="A part of the page.", schema={"type": "string"}, required=True
)
