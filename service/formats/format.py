"""What one row of the format table says: how a format is read, how it is written, what it can hold."""

from collections.abc import Mapping
from enum import StrEnum
from types import MappingProxyType

import msgspec

from service.formats.geometry import ALL_FAMILIES, Family

SHARED_EXTENSION = ".zip"
"""The extension of several formats, so that it names none."""


class Reader(StrEnum):
    """How an upload gets into the work file."""

    OGR = "ogr"
    DOCUMENT = "document"
    """JSON, one text or one a line."""
    LINES = "lines"
    """The same, one a line to be expected."""
    DELIMITED = "delimited"
    WORKBOOK = "workbook"
    DATABASE = "database"
    PARTS = "parts"
    """Files of several parts, each a layer."""
    PARQUET = "parquet"


class Writer(StrEnum):
    """How a plan gets out of the work file."""

    PER_LAYER = "per_layer"
    """One run per dataset, all into one target or each into its own file."""
    AT_ONCE = "at_once"
    """One run for all layers: the driver cannot add to a file."""
    PLACES = "places"
    """CSV: geometry as columns."""
    WORKBOOK = "workbook"
    """Spreadsheets: through CSV, geometry as columns."""
    TRACKS = "tracks"
    """GPX: points and lines are layers of fixed names."""
    LINES_OF_WKT = "lines_of_wkt"
    PARQUET = "parquet"


class Delivery(StrEnum):
    """What is handed over."""

    FILE = "file"
    ARCHIVE = "archive"
    """The directory that the driver wrote, zipped."""
    KMZ = "kmz"
    """The one file, zipped as doc.kml."""


class ColumnRule(StrEnum):
    """What a column may be called."""

    ANY = "any"
    XML = "xml"
    DBF = "dbf"
    MAPINFO = "mapinfo"
    GEODATABASE = "geodatabase"


class Bundle(msgspec.Struct, frozen=True):
    """Files of one name that are a dataset together, by their extensions; a ZIP holds them."""

    main: str
    required: tuple[str, ...] = ()
    optional: Mapping[str, str] = MappingProxyType({})
    """Files that may be missing, and what the warning says then; "" where nothing is lost."""

    alone: str = ""
    """What the warning says when the main file comes without the others; "" where it has to be in a ZIP."""

    @property
    def extensions(self) -> tuple[str, ...]:
        """All of them, the file to open first."""
        return (self.main, *self.required, *self.optional)


class Folder(msgspec.Struct, frozen=True):
    """A folder in a ZIP that is one file of a format."""

    extension: str
    mark: str
    """The file in it, in lower case, by which it is known."""
    parts: str
    """What its files are called, as a regular expression; others are no part of it."""


class LeftOut(msgspec.Struct, frozen=True):
    """What the driver leaves out without a word: how the text of a file shows it, and the warning."""

    words: tuple[bytes, ...]
    sentence: str
    """With `{count}` for how often the words occur."""
    is_content: bool = False
    """Whether a file with nothing besides holds something, which cannot be converted."""
    column: str = ""
    """The column in which newer versions of the driver show it; the warning is given if it is not there."""


class Reading(msgspec.Struct, frozen=True, kw_only=True):
    """How a format is read."""

    drivers: tuple[str, ...]
    reader: Reader = Reader.OGR
    options: tuple[str, ...] = ()
    text_options: tuple[str, ...] = ()
    """What tells the driver to leave texts as they are that look like dates."""
    environment: Mapping[str, str] = MappingProxyType({})
    records_crs: bool = True
    json: bool = False
    """Whether values may be missing, lists or objects, which only another JSON format keeps as they are."""
    fixed_layers: bool = False
    """Whether the driver always shows the same layers, filled or not."""
    derived_layers: frozenset[str] = frozenset()
    """Layers that repeat what another one holds; they are no layers of their own."""
    derived_columns: frozenset[str] = frozenset()
    """The columns of derived layers in which there is nothing that other layers lack."""
    member: str = ""
    """The extension of the one document in an archive that is a file of this format."""
    delimiter: str = ""
    """The delimiter of its tables, "" where each file has to be looked at."""
    bundles: tuple[Bundle, ...] = ()
    """The sets of files in a ZIP that are a dataset of this format."""
    folder: Folder | None = None
    told_by: tuple[tuple[str, str], ...] = ()
    """The members of the outermost JSON object, with their values or "" for any, that tell the format from GeoJSON."""
    feature_word: bytes = b""
    """What every file with features has in its text."""
    left_out: tuple[LeftOut, ...] = ()
    trailer: bytes = b""
    """What a complete file ends with, white space aside, where the driver does not notice that it is cut off."""
    column_prefix: str = ""
    """What the driver puts before the names of columns that it does not know."""
    numbers: frozenset[str] = frozenset()
    """The columns that the format itself says to be numbers, where its driver guesses of all others."""
    guesses_types: bool = False
    """Whether the file types no values, so that types are made out from all of them, not from the driver's guess."""
    noise_columns: Mapping[str, tuple[str, ...]] = MappingProxyType({})
    """Columns that the driver makes up, and their values when nothing was there beside null. `*`: any column;
    a value that ends so stands for all that begin like it, `{layer}` for the layer's name."""


class Reread(msgspec.Struct, frozen=True, kw_only=True):
    """How a result is reread by a driver, and what of that can be compared with what was inspected."""

    drivers: tuple[str, ...]
    options: tuple[str, ...] = ()
    environment: Mapping[str, str] = MappingProxyType({})
    geometries: bool = True
    dimensions: bool = True
    """Whether Z and M are told apart from none."""
    columns: bool = True
    values: bool = True
    """Whether a value that is not null is read as such, and as the same number."""
    is_one: bool = False
    """Whether the features of all datasets are counted together, since its layers are its own."""
    least_columns: int = 0
    """How many columns its driver needs to tell lines apart from nothing."""


class Writing(msgspec.Struct, frozen=True, kw_only=True):
    """How a format is written and what it can hold."""

    driver: str
    extension: str
    """The extension of what is delivered."""
    media_type: str
    more_extensions: tuple[str, ...] = ()
    """Other usual extensions of such files, by which outputFormat may ask for one."""
    writer: Writer = Writer.PER_LAYER
    member: str = ""
    """The extension of what the driver writes, where that is not what is delivered."""
    crs_member: str = ""
    """The extension of the file beside each dataset that records its coordinate system, if one of its own does."""
    delivery: Delivery = Delivery.FILE
    options: tuple[str, ...] = ()
    multi_layer: bool = False
    derived_layers: bool = False
    """Whether layers that repeat others are worth keeping: in databases."""
    one_file_per_layer: bool = False
    epsg: int | None = None
    holds: frozenset[Family] = ALL_FAMILIES
    one_family: bool = False
    """A dataset holds one family; others go into datasets of their own."""
    type_options: Mapping[str, tuple[str, ...]] = MappingProxyType({})
    """How the driver is told a geometry type: by type, "" for mixed, "None" for a table; `{z}` is replaced."""
    json: bool = False
    """As in `Reading`."""
    curves: bool = False
    null_geometry: bool = True
    tables: bool = True
    """Whether a dataset without any geometry can be stored."""
    empty: bool = True
    """Whether a dataset without any feature can be read again."""
    root_attributes: str = ""
    """What the driver forgets to declare on the root element of XML."""
    shows_geometry_name: bool = False
    """Whether the geometry column's name stands in the output."""
    z: bool = True
    m: bool = False
    """Whether measures are kept."""
    empty_is_null: bool = False
    """Whether empty text cannot be told from a missing value."""
    read_back: str = ""
    """The program that reads a result back where no session is at hand; empty where its driver does, or the program
    that wrote it."""
    reread: Reread | None = None
    """How a driver reads a result back; None where none does, or a program does it better."""
    value_losses: frozenset[str] = frozenset()
    """The kinds of values that are changed or left out, as `values` counts them."""
    attributes: frozenset[str] | None = None
    """The only attributes that are kept; None: all."""
    first_encoding: str = ""
    """The encoding in which to write if all text fits into it, for readers that know no UTF-8."""
    degree_options: tuple[str, ...] = ()
    """What the driver needs to be told to keep precision in degrees within the date lines."""
    live_text: str = ""
    """What a text must not begin with, because a spreadsheet program would run it."""
    elevation_column: str = ""
    """The column from which the driver takes the elevation of points."""
    column_names: ColumnRule = ColumnRule.ANY
    reserved_columns: tuple[str, ...] = ()
    """What columns of the data cannot be called, because the driver's own are."""
    fid_names: tuple[str, ...] = ()
    geometry_names: tuple[str, ...] = ()
    records_crs: bool = True
    no_system: tuple[str, ...] = ("-a_srs", "NONE")
    """What makes the driver write coordinates without a system."""
    wraps_dateline: bool = False
    """Whether the driver has to be told to cut at the date line."""
    lines_driver: str = ""
    """The driver whose lines are gathered into a document where the format's own would harm collections."""
    max_rows: int | None = None
    max_columns: int | None = None
    max_text_bytes: int | None = None
    """Longer values are cut."""
    max_record_bytes: int | None = None
    max_cell: int | None = None
    """Longer values make a spreadsheet program complain."""
    splits: frozenset[str] = frozenset()
    """Geometry types of which the driver writes the parts as features of their own."""
    max_layer_name: int | None = None
    """How many characters a layer's name may have."""
    trailer: bytes = b""
    """What a complete file ends with, white space aside."""
    z_options: tuple[str, ...] = ()
    """What the driver needs to be told to keep elevations."""
    environment: Mapping[str, str] = MappingProxyType({})
    driver_is_optional: bool = False
    """Not every build of GDAL can write it (interface 1)."""
    loss_report: bool = False
    """Whether the answer comes with a data-loss report (interface 2.4)."""


class Format(msgspec.Struct, frozen=True, kw_only=True):
    """One format. `name` is its value of outputFormat, None for a format that is only read."""

    name: str | None
    token: str
    title: str
    extensions: tuple[str, ...] = ()
    reading: Reading | None = None
    writing: Writing | None = None


def reading_of(row: Format) -> Reading:
    """How `row` is read; only for formats that can be an input."""
    if row.reading is None:
        raise LookupError(row.token)
    return row.reading


def writing_of(row: Format) -> Writing:
    """How `row` is written; only for formats that can be an output."""
    if row.writing is None:
        raise LookupError(row.token)
    return row.writing
