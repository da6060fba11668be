"""The columns of the format table: how a format is read, how it is written, what it can hold."""

from collections.abc import Mapping
from enum import StrEnum

import msgspec
from msgspec import structs

from service.formats.facts import FieldType
from service.formats.geometry import ALL_FAMILIES, Family
from service.formats.unread import Unread

SHARED_EXTENSION = ".zip"
"""The extension that several formats share, so that it identifies none."""


OF_RELEASES = "releases of GDAL: "
OF_LAYERS = "layers: "
"""How a condition begins that names releases, or layers, and no column."""
ANY_FLAT = "*flat"
"""The condition that a layer has geometries without elevations beside others."""


class Declares(StrEnum):
    """How the text of a file declares its encoding."""

    XML = "xml"
    DXF = "dxf"


class Reader(StrEnum):
    """How an upload is read into the work file."""

    OGR = "ogr"
    DOCUMENT = "document"
    """JSON: one document, or one per line."""
    LINES = "lines"
    """The same, but one document per line is expected."""
    DELIMITED = "delimited"
    WORKBOOK = "workbook"
    DATABASE = "database"
    GEOPACKAGE = "geopackage"
    ESRI_JSON = "esri_json"
    TOPOJSON = "topojson"
    PARTS = "parts"
    """Formats of several files; each set is a layer."""
    KML = "kml"
    """One document, or several, each with layers of its own."""
    GPX = "gpx"
    GML = "gml"
    DXF = "dxf"
    PARQUET = "parquet"


class Writer(StrEnum):
    """How a plan is written from the work file."""

    PER_LAYER = "per_layer"
    """One run per dataset, all into one target or each into a file of its own."""
    AT_ONCE = "at_once"
    """One run for all layers, because the driver cannot append to a file."""
    PLACES = "places"
    """CSV, with the geometry in columns."""
    WORKBOOK = "workbook"
    """Spreadsheets, by way of CSV, with the geometry in columns."""
    TRACKS = "tracks"
    """GPX: points and lines are layers with fixed names."""
    LINES_OF_WKT = "lines_of_wkt"
    PARQUET = "parquet"


class Packaging(StrEnum):
    """What is delivered."""

    FILE = "file"
    ARCHIVE = "archive"
    """The directory that the driver wrote, as a ZIP."""
    KMZ = "kmz"
    """The single file, in a ZIP, named doc.kml."""


class ColumnRule(StrEnum):
    """What column names are allowed."""

    ANY = "any"
    MEMBER = "member"
    """Column names are members of objects: even one without any character."""
    CASED_MEMBER = "cased member"
    """The same, and the case of letters may tell them apart."""
    CELL = "cell"
    """Column names are cells of the first row: without blanks around them, line ends, what XML lacks
    and quotation marks, which the driver of CSV, by way of which they are written, leaves out."""
    XML = "xml"
    ELEMENT = "element"
    """Column names are names of elements, for which XML has fewer characters than for other names."""
    GML = "gml"
    DBF = "dbf"
    MAPINFO = "mapinfo"
    GEODATABASE = "geodatabase"


class Bundle(msgspec.Struct, frozen=True):
    """Files in a ZIP that share a name and form a dataset, by their extensions."""

    main: str
    required: tuple[str, ...] = ()
    optional: Mapping[str, str] = {}
    """Files that may be missing, and the warning for each; "" if nothing is lost."""

    alone: str = ""
    """The warning if the main file comes without the others; "" if it must be in a ZIP."""
    lists_others: bytes = b""
    """What the main file has if the files only list others of the format, as a regular expression."""

    @property
    def extensions(self) -> tuple[str, ...]:
        """All extensions, that of the file to open first."""
        return (self.main, *self.required, *self.optional)


class Folder(msgspec.Struct, frozen=True):
    """A folder in a ZIP that is one file of a format."""

    extension: str
    mark: str
    """The file, in lower case, whose presence identifies the folder."""
    parts: str
    """A regular expression for the names of its files; other files are ignored."""
    index: str
    """The extension of the files that say where the rows of a table are."""
    data: str
    """The extension of the files that hold the rows."""
    descriptions: str
    """The file, in lower case, that describes the tables; what is left out is looked for in it."""


class LeftOut(msgspec.Struct, frozen=True, kw_only=True):
    """Content that the driver drops silently: the words in a file that reveal it, and the warning."""

    sentence: str = ""
    """The warning; `{count}` is the number of occurrences of the words."""
    words: tuple[bytes, ...] = ()
    is_content: bool = False
    """Whether it is content that cannot be converted, so that a file with nothing else is refused."""
    alone: str = ""
    """What the refusal says instead of the warning, if not the same."""
    is_refused: bool = False
    """Whether a file with it is refused, because what is read would be wrong."""
    pattern: bytes = b""
    """A regular expression that reveals it as well; it takes linear time, and matches 16 KiB at most in real files.

    If it has groups, only the matches with a group count.
    """
    within: bytes = b""
    """What every match of the pattern contains, if most of a file does not: it is found in a fifth of the time."""
    sign: bytes = b""
    """A regular expression that finds something in every match of the pattern, in less than half of the time."""
    entities: frozenset[bytes] = frozenset()
    """The entities of a drawing that reveal it as well, by name; see `Reading.entity`."""
    inside: frozenset[bytes] = frozenset()
    """The entities in which the pattern matches, if they are few: elsewhere it is not searched for."""
    beside: bytes = b""
    """A regular expression without which the pattern reveals nothing; it is searched for until it is found."""
    column: str = ""
    """The column in which newer versions of the driver report it; the warning is given only without that column.

    `*` and a type stand for any column of that type, `ANY_FLAT` for geometries without elevations beside others.
    """
    releases: str = ""
    """The releases of GDAL whose driver drops it, as in `releases`; "" for all."""
    layers: tuple[str, ...] = ()
    """The layers that lose it, in small letters, if no others of the format do."""

    @property
    def condition(self) -> str:
        """What the warning depends on, in words that processes of different versions exchange; "" if on nothing."""
        if self.layers:
            return OF_LAYERS + " ".join(self.layers)
        return OF_RELEASES + self.releases if self.releases else self.column


def left_out(entries: Mapping[str, LeftOut]) -> tuple[LeftOut, ...]:
    """Return the entries of a table, with the sentences under which they are in it."""
    return tuple(structs.replace(entry, sentence=sentence) for sentence, entry in entries.items())


NAMED_REFERENCES = (b"&amp;", b"&lt;", b"&gt;", b"&quot;", b"&apos;")
NAMED_REFERENCE = rb"(?:" + b"|".join(NAMED_REFERENCES) + rb")"
"""What stands for a character of the text of XML that is no blank."""


class Alike(msgspec.Struct, frozen=True, kw_only=True):
    """In what features of a format may differ while text checks find the same in them, as regular expressions."""

    elements: bytes
    """What finds an element that is a feature; its name is the group that matches."""
    missing: bytes
    """How an element that only some features may have, such as that of a column, begins, up to the end of its tag."""
    text: bytes
    """A text."""
    texts: Mapping[bytes, tuple[bytes, ...]] = {}
    """By the names of elements, without prefixes: the kinds of their texts, of which those of one are alike."""
    attributes: Mapping[bytes, tuple[bytes, ...]] = {}
    """By the names of attributes: the kinds of their values."""


class Reading(msgspec.Struct, frozen=True, kw_only=True):
    """How a format is read."""

    drivers: tuple[str, ...]
    reader: Reader = Reader.OGR
    options: tuple[str, ...] = ()
    text_options: tuple[str, ...] = ()
    """Options that make the driver keep text that looks like dates."""
    environment: Mapping[str, str] = {}
    records_crs: bool = True
    has_labels: bool = False
    """Whether features may be labels whose text only their style holds."""
    is_padded: bool = False
    """Whether its records have fixed lengths, so that texts are mostly blanks."""
    json: bool = False
    """Whether values may be missing, lists or objects, which only another JSON format preserves."""
    rounds_long_negatives: str = ""
    """The releases of GDAL whose driver reads whole numbers as reals if one has a minus and 19 digits."""
    loses_unit: str = ""
    """The releases of GDAL whose driver mistakes the unit of conic systems, as `engine.jailed.parallels` says."""
    reads_logical: str = ""
    """The releases of GDAL whose driver reads logical columns as such, with all but true and `?` as false."""
    shortest_edges: bool = False
    """Whether an edge is the shortest way between its ends: one from 179 to -179 degrees crosses the date line."""
    only_geometries: bool = False
    """Whether a table of the format without any geometry is of another kind than its extension says."""
    fixed_layers: bool = False
    """Whether the driver always reports the same layers, filled or not."""
    derived_layers: Mapping[str, str] = {}
    """Layers that repeat the content of another one, by name with the name of that one; they do not count as layers."""
    derived_columns: frozenset[str] = frozenset()
    """Columns of derived layers that contain nothing beyond what other layers have."""
    member: str = ""
    """The extension of the documents in an archive, if files of this format are archives of documents."""
    main_part: str = ""
    """The part of its archives that lists the others, if they are workbooks whose driver knows only this name."""
    properties: str = ""
    """The member of its archives that holds what users wrote about the file, if they are workbooks."""
    has_texts_in_header: bool = False
    """Whether its header may hold what users wrote about the file, as that of FlatGeobuf."""
    delimiter: str = ""
    """The delimiter of its tables; "" if each file must be examined."""
    bundles: tuple[Bundle, ...] = ()
    """The sets of files in a ZIP that form a dataset of this format."""
    folder: Folder | None = None
    told_by: tuple[tuple[str, str], ...] = ()
    """The members of the outermost JSON object, with their values or "" for any, that distinguish it from GeoJSON."""
    declares: Declares | None = None
    """How its text declares its encoding, if drivers do not read all encodings that it may declare."""
    root: str = ""
    """The start tag of the element around all of its XML, if every file has the same one."""
    inside_root: frozenset[str] = frozenset()
    """The elements with which a file without that one may begin."""
    feature_word: bytes = b""
    """A word in the text of every file with features."""
    outline_word: bytes = b""
    """A word in the text of files that hold something else whose outline becomes a feature."""
    left_out: tuple[LeftOut, ...] = ()
    entity: bytes = b""
    """A regular expression that finds the name of each entity in its files, if they are drawings."""
    alike: Alike | None = None
    """If programs write its features one like another: what they may differ in."""
    trailer: bytes = b""
    """How a complete file ends, apart from white space, if the driver does not detect truncated files."""
    unread: tuple[Unread, ...] = ()
    """The files with its extension that the driver cannot read."""
    absent_measures: bool = False
    """Whether measures (M) below -1e38 stand for none."""
    directs_rings: bool = False
    """Whether the direction of a ring, not its place, says whether it is a hole."""
    unchecked_texts: bool = False
    """Whether the driver copies texts that are not UTF-8, although the format requires it, without a warning."""
    column_prefix: str = ""
    """What the driver puts before the names of columns that it does not know, or we before those that it would hide."""
    numbers: frozenset[str] = frozenset()
    """The columns that the format defines as numbers; the driver guesses the types of all others."""
    overflows: frozenset[str] = frozenset()
    """The kinds of values that reading may change, as keys of `OVERFLOWS`."""
    zoned_texts: bool = False
    """Whether its times are texts, of whose zones the driver keeps quarters of an hour only."""
    defers_columns: bool = False
    """Whether the driver, which has no lists, reads the columns of a layer only when it is asked for them."""
    doubts_dates: bool = False
    """Whether the driver may drop the times of dates, or take numbers for dates, unless the styles are made plain."""
    types_by_first_row: bool = False
    """Whether the driver takes types from the first row, and columns that begin empty for texts."""
    guesses_types: bool = False
    """Whether files have untyped values, so that types follow from all values and not from the driver's guess."""
    noise_columns: Mapping[str, tuple[str, ...]] = {}
    """Columns that the driver invents, and the values that they have, beside null, when the file has none. `*`: any
    column; a value that ends so stands for all that begin with it, `#` at its end for the number of the row, if all
    values of the column have it, and `{layer}` for the layer's name."""


class Reread(msgspec.Struct, frozen=True, kw_only=True):
    """How a driver reads a result back, and which of the facts can be compared then."""

    drivers: tuple[str, ...]
    options: tuple[str, ...] = ()
    environment: Mapping[str, str] = {}
    geometries: bool = True
    dimensions: bool = True
    """Whether the driver reports Z and M correctly."""
    columns: bool = True
    tables: bool = True
    """Whether it finds datasets without geometry."""
    number_names: frozenset[str] = frozenset()
    """The names, in small letters, of columns in which it reads nothing but numbers."""
    values: bool = True
    """Whether a value that is not null is read as not null, and as the same number."""
    is_one: bool = False
    """Whether the features of all datasets are counted together, because the driver's layers are fixed."""
    doubts_system: bool = False
    """Whether the driver may silently record no coordinate system, or another one than WGS 84 if it was told so."""
    least_columns: int = 0
    """How many columns its driver needs to recognize lines at all."""
    changed_names: str = ""
    """What its driver leaves out of names of columns, or takes for the end of them all, as a regular expression."""
    rows_by: str = ""
    """The reader of `jailed.readback` that counts the rows of results in which the driver stops before the end."""


class Writing(msgspec.Struct, frozen=True, kw_only=True):
    """How a format is written, and what it can hold."""

    driver: str
    extension: str
    """The extension of the result."""
    media_type: str
    more_extensions: tuple[str, ...] = ()
    """Other usual extensions of such files; outputFormat may use them."""
    writer: Writer = Writer.PER_LAYER
    member: str = ""
    """The extension of what the driver writes, if it differs from that of the result."""
    crs_member: str = ""
    """The extension of the file beside each dataset that records its coordinate system, if there is one."""
    delivery: Packaging = Packaging.FILE
    options: tuple[str, ...] = ()
    options_in_place: tuple[str, ...] = ()
    """Those with which some releases write the same, but in less time, if a plan `is_in_place` and names no system."""
    in_place: str = ""
    """The releases of GDAL whose driver does so, as in `releases`."""
    multi_layer: bool = False
    derived_layers: bool = False
    """Whether layers that repeat others are kept: in databases."""
    one_file_per_layer: bool = False
    epsg: int | None = None
    holds: frozenset[Family] = ALL_FAMILIES
    one_family: bool = False
    """Whether a dataset holds one family, so that others go into datasets of their own."""
    flattens: bool = False
    """Whether its driver refuses Multi geometries of points within collections, which one step takes apart."""
    rings_alone: bool = False
    """Whether an area is nothing but rings: which of them are holes of which areas follows from where they lie."""
    turns_holes: str = ""
    """The releases of GDAL whose driver may give holes with elevations the direction of areas, as in `releases`."""
    type_options: Mapping[str, tuple[str, ...]] = {}
    """Options for a geometry type: by type, "" for mixed, "None" for a table; `{z}` is replaced."""
    json: bool = False
    """As in `Reading`."""
    curves: bool = False
    null_geometry: bool = True
    tables: bool = True
    """Whether a dataset without any geometry can be stored."""
    hides_tables: bool = False
    """Whether its driver lists such datasets only if told to list all tables."""
    declares: bool = False
    """Whether a dataset without any geometry can declare of which type and in which system they would be."""
    empty: bool = True
    """Whether a dataset without any feature can be read again."""
    empty_columns: bool = True
    """Whether a dataset without any feature keeps its columns."""
    root_attributes: str = ""
    """An attribute that the driver fails to declare on the root element of its XML."""
    shows_geometry_name: bool = False
    """Whether the name of the geometry column appears in the output."""
    z: bool = True
    mixes_z: bool = True
    """Whether one dataset can hold features with and without elevations."""
    m: bool = False
    """Whether measures are kept."""
    empty_is_null: bool = False
    """Whether empty text and a missing value are the same."""
    read_back: str = ""
    """The program that reads a result back if no session is held; empty if the driver does, or the program that wrote
    it."""
    reread: Reread | None = None
    """How a driver reads a result back; None if no driver does, or a program does it better."""
    empty_columns_lost: frozenset[str] = frozenset()
    """The columns that vanish if they have no value, in lower case; `*`: all columns."""
    value_losses: frozenset[str] = frozenset()
    """The kinds of values that are changed or left out, as keys of `VALUE_LOSSES`."""
    numbers_for_logical: str = ""
    """The releases of GDAL whose driver writes true and false as numbers, as in `releases`, if not all do."""
    uneven_rows: str = ""
    """The releases of GDAL whose driver may put separators behind the last column, as in `releases`."""
    attributes: frozenset[str] | None = None
    """The only attributes that are kept; None for all."""
    first_encoding: str = ""
    """The encoding to use if it can represent all text, for readers that do not know UTF-8."""
    bounds_option: str = ""
    """The option for the area outside of which the driver keeps no coordinates."""
    live_text: str = ""
    """A beginning that text must not have, perhaps after blanks: a program would execute it, or take it for markup."""
    elevation_column: str = ""
    """The column from which the driver takes the elevation of points."""
    column_names: ColumnRule = ColumnRule.ANY
    reserved_columns: tuple[str, ...] = ()
    """Names that the driver uses for its own columns."""
    unwritten_names: str = ""
    """With what names begin that number the columns from 1: if those of a layer all do, its driver writes none."""
    geometry_elements: frozenset[str] = frozenset()
    """Names that would make a column a geometry, in exactly these letters."""
    stripped_prefix: str = ""
    """What its driver leaves out at the beginning of the names of columns."""
    time_columns: frozenset[str] = frozenset()
    """Names, in small letters, under which some readers find nothing but dates and times."""
    typed_columns: Mapping[Family, Mapping[str, frozenset[FieldType]]] = {}
    """By family: names of elements of the format, and the only types of values that they hold unchanged."""
    fid_names: tuple[str, ...] = ()
    geometry_names: tuple[str, ...] = ()
    records_crs: bool = True
    records_compound: bool = True
    """Whether readers know the system of a result if it is a compound one, with heights."""
    needs_every_axis: bool = False
    """Whether programs cannot read coordinates that lack an axis of their system."""
    no_system: tuple[str, ...] = ("-a_srs", "NONE")
    """Options that make the driver write coordinates without a system."""
    wraps_dateline: bool = False
    """Whether the driver cuts at the date line only if told to."""
    lines_options: tuple[str, ...] = ()
    """The options of the next one."""
    lines_driver: str = ""
    """The driver whose lines are joined to a document if the format's own driver would damage collections."""
    max_rows: int | None = None
    own_columns: Mapping[Family, frozenset[str]] = {}
    """By family: the columns that its driver always reads, if it reads only `max_with_own` in all."""
    max_with_own: int = 0
    max_text_bytes: int | None = None
    """Longer values are cut."""
    max_readable_text_bytes: int | None = None
    """Of longer values, programs take the file for damaged."""
    max_record_bytes: int | None = None
    max_columns: int | None = None
    columns_elsewhere: int | None = None
    """How many columns many other programs read."""
    widths: Mapping[FieldType, int] = {}
    """The bytes that values of a type take in a record; other types are stored as texts."""
    text_bytes: int | None = None
    """The bytes that each text takes in a record, if the driver does not choose as few as the longest one needs."""
    level_areas: bool = False
    """Whether an area has one elevation, that of its first point."""
    max_cell: int | None = None
    """Spreadsheet programs complain about longer values."""
    splits: frozenset[str] = frozenset()
    """Geometry types whose parts the driver writes as separate features."""
    max_layer_name: int | None = None
    """The maximum length of a layer's name, in characters."""
    reserved_layers: str = ""
    """How names of tables begin that the format keeps for itself, as a regular expression, in any case."""
    trailer: bytes = b""
    """How a complete file ends, apart from white space."""
    endings: Mapping[str, bytes] = {}
    """What packing adds to files of an extension, because the driver takes long to write it."""
    z_options: tuple[str, ...] = ()
    """Options that make the driver keep elevations."""
    environment: Mapping[str, str] = {}
    driver_is_optional: bool = False
    """Whether some builds of GDAL cannot write it (interface 1)."""
    loss_report: bool = False
    """Whether the response contains a data-loss report (interface 2.4)."""


class Format(msgspec.Struct, frozen=True, kw_only=True):
    """One format. `name` is its value of outputFormat, None for a format that is only read."""

    name: str | None
    token: str
    title: str
    extensions: tuple[str, ...] = ()
    reading: Reading | None = None
    writing: Writing | None = None


def reading_of(row: Format) -> Reading:
    """How `row` is read; only for input formats."""
    if row.reading is None:
        raise LookupError(row.token)
    return row.reading


def writing_of(row: Format) -> Writing:
    """How `row` is written; only for output formats."""
    if row.writing is None:
        raise LookupError(row.token)
    return row.writing
