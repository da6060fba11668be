"""What a dataset contains: layers, counts, geometry types, columns, coordinate system.

Facts about an untrusted file come from the sandbox as JSON; decoding them into these records validates them. No member
has a pattern: msgspec would match it as often as a hostile document repeats the member, in the event loop.
"""

import re
from collections import Counter
from collections.abc import Iterable, Mapping
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, ClassVar, Literal

import msgspec
from msgspec import Meta

from service.errors import Rejection
from service.formats.geometry import Family, dominant_type, families_of

MAX_LAYERS = 1000
MAX_COLUMNS = 2000
MOST_COMMAS = 3 << 18
"""Of a record that holds much of each column, as JSON of an untrusted process."""
MAX_NAMES_CHARACTERS = 1 << 20
"""The names of the columns of a layer in all: what is planned for them is planned in the event loop."""

Count = Annotated[int, Meta(ge=0, le=1 << 40)]
Name = Annotated[str, Meta(max_length=4096)]
Axis = Annotated[float, Meta(ge=0, le=1e9)]
Flattening = Annotated[float, Meta(ge=0)]
Meridian = Annotated[float, Meta(ge=-360, le=360)]
if TYPE_CHECKING:
    GeometryName = str
else:
    GeometryName = Literal[
        "Point", "MultiPoint", "LineString", "MultiLineString", "Polygon", "MultiPolygon", "GeometryCollection"
    ]
    """A name that is none of these ends decoding: a map is bounded only once all of it is decoded."""
_TABLE = re.compile(r"(?![-@])[^\x00-\x1f]*")


def is_table_name(text: str) -> bool:
    """Whether a table may have this name: it appears on command lines, and must not be mistaken for an option."""
    return _TABLE.fullmatch(text) is not None


def require_short_names(names: Iterable[str]) -> None:
    """Raise `Rejection` if the names of the columns of a layer are longer in all than they may be."""
    if sum(map(len, names)) > MAX_NAMES_CHARACTERS:
        raise Rejection("The names of the columns are too long. Shorten them and send the file again.")


class FieldType(StrEnum):
    """The types of values that a column holds."""

    TEXT = "text"
    INTEGER = "integer"
    REAL = "real"
    BOOLEAN = "boolean"
    DATE = "date"
    DATETIME = "datetime"
    TIME = "time"
    BINARY = "binary"


MOMENTS = frozenset({FieldType.DATE, FieldType.DATETIME, FieldType.TIME})
"""The types of dates and times."""
UNSET = -21121
"""The integer with which GDAL marks fields that are not set."""


class FormerType(StrEnum):
    """The types of columns that none of `FieldType` holds, and that were changed when they were read."""

    LIST = "list"
    """Also structures and maps; its values became texts of JSON."""
    TIME = "time"
    DURATION = "duration"
    UNSIGNED = "unsigned"
    """Whole numbers of 64 bits without a sign, of which some need the last bit."""
    DECIMAL = "decimal"


class Field(msgspec.Struct, frozen=True, gc=False):
    """A column. `longest_bytes` is the length of its longest value in UTF-8, or 0 if it holds no text."""

    name: Name
    type: FieldType = FieldType.TEXT
    longest_bytes: Count = 0
    over_dbf_limit: Count = 0
    """How many values are longer than a Shapefile can store."""
    filled: Count | None = None
    """How many values are not null, None if not counted. Only a work file yields the counts that follow."""
    total: float | None = None
    """The sum of the absolute values of its numbers."""
    empty: Count = 0
    trailing_blanks: Count = 0
    leading_blanks: Count = 0
    space_around: Count = 0
    """Texts that begin or end with a blank, a tab or a line end."""
    uneven_space: Count = 0
    """Texts with space around them, tabs, line ends, or several blanks in a row."""
    carriage_returns: Count = 0
    """Texts with one."""
    control: Count = 0
    """Texts with control characters other than tabs and line ends, or with U+FFFE or U+FFFF."""
    no_layer_names: Count = 0
    """Texts with characters that are changed in the names of layers of a drawing: not ASCII, or such as / and :."""
    like_json: Count = 0
    """Texts that begin and end like JSON objects or arrays."""
    like_markup: Count = 0
    """Texts that begin like XML, perhaps after blanks."""
    like_formulas: Count = 0
    """Texts that a spreadsheet program would execute."""
    like_escapes: Count = 0
    """Texts with what a workbook has for one character, such as _x0041_."""
    first_like_escapes: Count = 0
    """The number of the first feature with one, from 1."""
    like_numbers: Count = 0
    """Texts that other programs mistake for numbers and write differently, such as 00501, +5, 5. and 2D3."""
    exponents: Count = 0
    """Texts of a number with 15 digits and an exponent, as 1.23456789012346e+16."""
    first_exponents: Count = 0
    """The number of the first feature with one, from 1."""
    infinite: Count = 0
    nans: Count = 0
    """Numbers that are NaN, which a scan of GeoJSON counts as filled. Most results have none in their place. In a run
    that holds the upload they are missing, and so they are in a work file, for which the upload is asked."""
    at_32_bits: Count = 0
    """Integers that are the largest or the smallest of 32 bits."""
    like_unset: Count = 0
    """Integers that are `UNSET`."""
    beyond_32_bits: Count = 0
    beyond_53_bits: Count = 0
    """Integers that a floating-point number cannot represent exactly."""
    beyond_15_digits: Count = 0
    """Whole numbers of 64 bits in a column of floating-point numbers that are others with 15 digits."""
    first_beyond_15_digits: Count = 0
    """The number of the first feature with one, from 1; 0 if it is not known."""
    tiny: Count = 0
    """Numbers of which few significant digits are among the first 16 decimals."""
    near_infinite: Count = 0
    """Numbers that are infinite if they are written with 15 digits."""
    first_near_infinite: Count = 0
    """The number of the first feature with one, from 1; 0 if there is none or it is not known."""
    inexact_in_dbf: Count = 0
    """Numbers with more digits than a Shapefile can store."""
    beyond_dbf: Count = 0
    """Numbers that are too large for a Shapefile, which stores the first 24 characters of each."""
    first_beyond_dbf: Count = 0
    """The number of the first feature with one, as above."""
    fractions: Count = 0
    """Times with fractional seconds."""
    zoned: Count = 0
    """Times with a time zone."""
    leap_seconds: Count = 0
    """Times with the second 60."""
    first_leap_seconds: Count = 0
    """The number of the first feature with one, from 1."""
    no_day: Count = 0
    """Dates and times of a day that no calendar has."""
    first_no_day: Count = 0
    """The number of the first feature with one, from 1."""
    before_1000: Count = 0
    """Dates whose year has fewer than four digits."""
    until_1970: Count = 0
    """Times until the first second of 1970 in UTC, which some drivers round to a later second."""
    before_march_1900: Count = 0
    """Dates and times that spreadsheets cannot count from their first day."""
    offsets: Count = 0
    """Times in a zone other than UTC."""
    was: FormerType | None = None
    """Its type in the upload if reading has changed it; that of lists is not told here, but by `nested`."""
    nested: Count = 0
    """Lists, structures and maps, which became texts of JSON."""


class Datum(msgspec.Struct, frozen=True):
    """What a system without a code says of its datum, if its name alone says how to transform it."""

    name: Name
    axis: Axis = 0.0
    """The semi-major axis of its ellipsoid, in meters."""
    flattening: Flattening = 0.0
    """The inverse flattening of its ellipsoid; 0 for a sphere."""
    meridian: Meridian = 0.0
    """The longitude of the prime meridian of the system, in degrees."""


class Crs(msgspec.Struct, frozen=True):
    """The coordinate system that a layer records: whether it is known, and its EPSG code if it has one."""

    known: bool = False
    epsg: Annotated[int, Meta(ge=1, le=1 << 31)] | None = None
    name: Name = ""
    """The name of a system that no database of systems has, if the layer records one."""
    datum: Datum | None = None
    heights: Name = ""
    """What elevations are in a system without a code, if it describes that."""


class DeclaredGeometry(msgspec.Struct, frozen=True):
    """The type that a layer declares for geometries that it does not have."""

    type: GeometryName
    has_z: bool
    has_m: bool


class Flaw(StrEnum):
    """What may be wrong with a geometry as it is read."""

    HOLLOW = "hollow"
    """It had parts without any position, which were left out."""
    NOWHERE = "nowhere"
    """Its coordinates were infinite or not numbers; it became null."""
    HEIGHTLESS = "heightless"
    """It had elevations that were infinite or not numbers, which became 0."""
    UNCLOSED = "unclosed"
    """It has rings of areas that do not end where they begin."""
    SINGLE = "single"
    """It has lines, or rings of areas, of a single position."""
    OUTLYING = "outlying"
    """It has areas of which a hole begins outside of the outer ring."""
    NESTED = "nested"
    """It has an area around another one, and the outer ring of its first is counterclockwise."""
    AMBIGUOUS = "ambiguous"
    """It has a hole outside of all areas, or an area within another that has no hole there."""
    UNREADABLE = "unreadable"
    DAMAGED = "damaged"
    """It can be read only in part."""
    HALF_RAISED = "half_raised"
    """It has elevations in some positions and not in others."""
    LONGER = "longer"
    """It has positions of more than three numbers."""
    OTHER_SYSTEM = "other_system"
    """It, or its feature, names another coordinate system than the document."""


class Occurrence(msgspec.Struct, frozen=True, array_like=True):
    """How many features have something, and the number of the first of them, from 1; 0 if it is not known."""

    count: Count = 0
    first: Count = 0


Flaws = Annotated[Mapping[Flaw, Occurrence], Meta(max_length=len(Flaw))]
"""The flaws that occur among the geometries of a layer."""


class Shapes(msgspec.Struct, frozen=True, kw_only=True):
    """What is known of the features of a layer and their geometries, however it was found."""

    features: Count
    empty_geometries: Count = 0
    """How many geometries had no position at all when they were read."""
    flaws: Flaws = {}
    has_z: bool = False
    flat_geometries: Count = 0
    """Geometries without elevations, in a layer in which others have them."""
    sloping_areas: Count = 0
    """Areas whose points have different elevations."""
    has_m: bool = False
    unmeasured_geometries: Count = 0
    """Geometries without measures, in a layer in which others have them."""
    longest_geometry_bytes: Count = 0
    extent: tuple[float, float, float, float] | None = None
    """Smallest x and y, largest x and y, in the layer's own system."""
    first_beyond_degrees: Count = 0
    """The number of the first feature whose coordinates cannot be degrees, from 1; 0 if there is none."""


class Layer(Shapes, frozen=True, kw_only=True, gc=False):
    """A layer as read. `table` is its name in the work file, `name` the one in the upload."""

    name: Name
    table: Name = ""
    geometry_types: Annotated[Mapping[GeometryName, Count], Meta(max_length=7)] = {}
    collection_parts: Annotated[Mapping[GeometryName, Count], Meta(max_length=7)] = {}
    """The parts of its collections: one Multi geometry per family and collection."""
    null_geometries: Count = 0
    """Features without a geometry, also those that had an empty one."""
    has_curves: bool = False
    surfaces: Count = 0
    """Geometries that were polyhedral surfaces, TINs or triangles and became polygons when they were read."""
    crs: Crs = Crs()
    declared: DeclaredGeometry | None = None
    """The type of its geometries if it has none yet; None if it has some, or does not say what they may be."""
    fields: Annotated[tuple[Field, ...], Meta(max_length=MAX_COLUMNS)] = ()
    guessed_columns: Annotated[tuple[Name, ...], Meta(max_length=MAX_COLUMNS)] = ()
    """Columns that may contain text but look like numbers and were read as such."""
    unplaced_rows: Count = 0
    """Rows of a table whose coordinates or geometry could not be read; their texts were put back as columns."""
    first_unplaced_row: Count = 0
    """The number of the first of these rows, from 1, without the header."""
    mended_texts: Count = 0
    """Texts in another encoding than the file declares, which were taken for Windows-1252, or cut UTF-8."""
    first_mended: Count = 0
    """The number of the first feature with one, from 1."""
    is_derived: bool = False
    """Whether it repeats what another layer holds; it is not counted then."""

    def flaws_without(self, flaw: Flaw) -> Flaws:
        """Its flaws but one, which is told elsewhere."""
        return {name: occurrence for name, occurrence in self.flaws.items() if name is not flaw}

    @property
    def is_spatial(self) -> bool:
        """Whether any feature has a geometry."""
        return any(self.geometry_types.values())

    @property
    def families(self) -> frozenset[Family]:
        """The geometry families that occur."""
        return families_of(tuple(filter(self.geometry_types.get, self.geometry_types)))


class Facts(msgspec.Struct, frozen=True, kw_only=True):
    """What a source contains, in all layers.

    If `in_work_file`, the work file exists, and the plan may read it instead of the upload. If `is_unplaced`, a table
    has no geometries, and the warnings do not say what to do about it.
    """

    most_commas: ClassVar[int] = MOST_COMMAS
    layers: Annotated[tuple[Layer, ...], Meta(max_length=MAX_LAYERS)] = ()
    warnings: Annotated[tuple[Name, ...], Meta(max_length=100)] = ()
    in_work_file: bool = False
    is_unplaced: bool = False

    def __post_init__(self) -> None:
        """Check the names of tables; here, because for each layer it would cost more than decoding it."""
        if not all(is_table_name(layer.table) for layer in self.layers):
            raise ValueError("not the name of a table")

    @property
    def feature_count(self) -> int:
        """The number of features in all layers (interface 2.1)."""
        return sum(layer.features for layer in self.layers if not layer.is_derived)

    @property
    def histogram(self) -> Counter[str]:
        """How often each geometry type occurs in all layers."""
        total: Counter[str] = Counter()
        for layer in self.layers:
            total.update({} if layer.is_derived else layer.geometry_types)
        return total

    @property
    def geometry_type(self) -> str:
        """The dominant geometry type as GeoJSON names it, "None" for a table (interface 2.1, 2.6)."""
        return dominant_type(self.histogram)

    @property
    def is_spatial(self) -> bool:
        """Whether any feature of any layer has a geometry."""
        return any(layer.is_spatial for layer in self.layers)
