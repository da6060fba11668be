"""Translates the converter's messages into plain words, one row per message; none of their text is echoed."""

import re
from collections import defaultdict
from collections.abc import Iterator, Mapping
from itertools import islice

import msgspec

from sandbox.verdict import Ending, Verdict, plain_language
from service.engine.jailed.exits import Exit
from service.errors import NoRoom, Rejection
from service.formats.facts import FormerType
from service.formats.names import shown
from service.geojson.refusals import NOT_ALL_FEATURES


class Subject(msgspec.Struct, frozen=True, kw_only=True):
    """The subject of a run, for the message about its failure."""

    input: str
    target: str = ""
    """Empty while the file is read."""
    source_epsg: int | None = None
    target_epsg: int | None = None


class EngineDefect(Exception):
    """The converter could not be run or behaved unexpectedly; the text is for the log."""


class RunLost(EngineDefect):
    """The sandbox lost the run or could not start it, whatever the file."""


class UnreachableSystem(Rejection):
    """Some coordinates cannot be transformed to the target's system; they have not been counted yet."""


UNREACHABLE = re.compile(
    r"Failed to reproject|Unable to reproject|Full reprojection failed|Failed to transform"
    r"|tolerance condition error|Invalid coordinate|Invalid latitude|Reprojection failed",
    re.IGNORECASE,
)
REMEDY = (
    "They lie outside the area of the coordinate system. Is the file's own system correct? If not, send sourceEpsg; "
    "otherwise choose another targetEpsg."
)
"""What to do about coordinates that cannot be reprojected."""


TOO_MANY_LAYERS = "The file holds more layers than can be converted. Split it."
_INVALID = "The file is not a valid {input} file: it is damaged, cut off, or not what its extension says."
_UNEXPLAINED = "The file could not be converted to {target}: its content is damaged or is not what its name says."

# The first matching row decides, so specific rows precede general ones.
_MESSAGES: Mapping[re.Pattern[str], str] = {
    re.compile(pattern, re.IGNORECASE): words
    for pattern, words in {
        r"source layer has no coordinate system": "The file does not record its coordinate system. Send its EPSG code "
        "as sourceEpsg.",
        r"crs not found|Failed to process SRS|Failed to lookup UOM": "The converter does not know the requested "
        "coordinate system. Send another targetEpsg or sourceEpsg.",
        r"vector tables\. Limiting to first|more than \d+ layers": TOO_MANY_LAYERS,
        r"failed to prepare SQL:? SELECT m\._rowid_": "A table of the {input} has no row numbers (WITHOUT ROWID), so "
        "it cannot be read. Create it again with a key of the type INTEGER PRIMARY KEY.",
        r"pragma table_xinfo\(.{1,400}\) failed: no such ": "A view of the {input} cannot be computed: it uses a "
        "table, column or function that does not exist. Repair or drop the view, and send the file again.",
        r"Latitude \S{1,40} is invalid": "A latitude is beyond 90 degrees, which {target} cannot hold. Correct it and "
        "send the file again; if the coordinates are in another system than degrees, send its EPSG code as sourceEpsg.",
        r"outside of \[-180": "Coordinates lie outside longitude and latitude, so the file is in another coordinate "
        "system than it records. Send the right EPSG code as sourceEpsg.",
        r"SET min_x = .{1,400}no such column: -?(?:Inf|NaN)|non-finite values are not allowed": "The file has "
        "coordinates that are infinite or not numbers (NaN). Correct them and send it again.",
        UNREACHABLE.pattern: "Coordinates cannot be transformed to {target_crs}. {unreachable}",
        r"no coordinate operation|Cannot find coordinate operations"
        r"|Failed to create coordinate transformation": "The file's coordinate system cannot be transformed to "
        "{target_crs}. Choose another targetEpsg.",
        r"out of memory|cannot allocate|bad_alloc|string or blob too big": "The conversion needs more memory than "
        "allowed; split the file or simplify it.",
        r"Parsing stopped|Too much accumulated memory": "The spreadsheet is larger than the converter can read. Save "
        "it as CSV and send that.",
        r"Too much (?:repeated )?data in": "A tag, text, comment or gap of the file is too long to be read: the file "
        "is damaged, or holds other data there. Leave that out and send the file again.",
        r"Too many nested|Too much nested|too complex|nesting depth|Too deep"
        r"|File probably corrupted \(million laugh": "The file is nested too deeply to be read. Simplify it and send "
        "it again.",
        r"Too many fields\. File probably corrupted": "The file has more kinds of elements in its points, routes or "
        "tracks, extensions among them, than the 99 that are read of {input}. Leave some extensions out and send it "
        "again.",
        # the statement that creates such a wide table fills the whole space for messages, so their end is lost
        r"too many (?:columns|fields)|more than \d+ columns|CREATE TABLE .{30000}": "The file has more columns than "
        "can be converted. Leave some out and send it again.",
        r"Error occurred in \S*filegdbtable": "A table of the geodatabase cannot be read: it is damaged or cut off, or "
        "has columns of types that ArcGIS Pro 3.2 introduced: integers of 64 bits, dates or times alone, or times with "
        "a zone. Save these as numbers or texts, or export the geodatabase as GeoPackage, and send it again.",
        r"Failed to parse field definition": "A column has a type that cannot be read, such as LargeInt. Give it "
        "another one, such as Float or Char, and send the file again.",
        r"Unexpected EOF while reading attribute record|Error during reading Record": "A .mid has fewer rows than its "
        ".mif has objects, or an empty row between others. Send the complete .mid that belongs to it.",
        r"Error during reading Geometry|invalid point line": "An object of a .mif cannot be read: it is cut off, or "
        "not on the lines where MIF has it. Write a Point, Line or Rect and its numbers, with blanks between them, on "
        "one line, and each position of a Pline, Multipoint or Region on a line of its own. Then send it again.",
        r"ogrdxf\w{1,40}\.cpp, \d{1,6}: error at line": "The drawing is damaged, cut off, or has an entity that cannot "
        "be read, such as a block that is inserted in 0 rows or columns (70 and 71 of INSERT). Make these 1, or save "
        "the drawing anew, and send it again.",
        r"Unrecognized geometry type|Geometry of feature \d+ .{0,2000}cannot be parsed": "The file has a geometry that "
        "cannot be read, such as a spline or a curve in an unusual notation. Save curves as lines or arcs, and send it "
        "again.",
        r"the required GeoPackage tables": "The file is a database, but lacks tables that every GeoPackage has. If it "
        "is an SQLite or SpatiaLite database, give it the extension of SQLite, and send it again.",
        r"Unable to open datasource|Unable to open EPSG|Failed to read|not well-formed|parsing (of|error|failed)"
        r"|XML parsing|JSON parsing|not recognized as|malformed|corrupt|is not a (database|valid)|invalid (dbf|shp|shx)"
        r"|unexpected end|mismatched tag|database disk image|Non increasing|Truncated|cannot be opened|Couldn't open"
        r"|Trying to guess feature locations": _INVALID,
        r"Geometry type of .{0,200} not supported|Only (simple )?geometr|Can't handle geometry|Unsupported geometry|"
        r"Attempt to write non-|Mismatched geometry type|is not compatible|"
        r"geometry type .{0,200} not (handled|supported)": "{target} cannot hold some geometries of this file. Choose "
        "another outputFormat, such as GeoPackage.",
        r"Cannot encode [XYZM] value": "{target} cannot hold a coordinate or measure (M) of the file that is missing, "
        "not a number or very large. Choose another outputFormat, such as GeoPackage.",
        r"Geometry must contain at least 2 points": "The file has a line of a single point, which {target} cannot "
        "hold. Correct it and send the file again, or choose another outputFormat, such as GeoPackage.",
        r"Unable to write feature|Terminating translation": "A feature of the file could not be written as {target}. "
        "Choose another outputFormat.",
    }.items()
}
INCOMPLETE = re.compile(
    r"Parsing stopped|Too much accumulated memory|not well-formed|Unable to write feature|Failed to reproject"
    r"|Non increasing|Terminating translation|database disk image is malformed|Failed to read"
    r"|Unable to open datasource|XML parsing of \S+ file failed|out of memory|cannot allocate"
    r"|Error occurred in \S*filegdbtable|Trying to guess feature locations|File probably corrupted|Too much nested XML"
    r"|Too much (?:repeated )?data in|vector tables\. Limiting to first",
    re.IGNORECASE,
)
"""Messages with which the output is incomplete although the exit code is 0."""

_EXITS = {
    Exit.TOO_MANY_LAYERS: TOO_MANY_LAYERS,
    Exit.TOO_MANY_COLUMNS: "The file has more columns than can be converted. Leave some out.",
    Exit.UNKNOWN_GEOMETRY: "The file holds geometries of a kind that cannot be converted. Save them as simple "
    "features.",
    Exit.NOT_A_TABLE: "The file is not a valid {input} file: no table was found in it.",
    Exit.NO_GEOMETRY_COLUMN: "No column of the file holds geometry that could be read.",
    Exit.STOPPED_EARLY: NOT_ALL_FEATURES,
    Exit.TOO_REPETITIVE: "The geometries of the file share lines so often that they become too large when each gets a "
    "copy. Split the file.",
    Exit.REPEATED_ROWS: "A sheet of the workbook has rows that follow more than 10,000 empty or equal ones, where its "
    "reader stops. Delete the empty rows, or save the sheet as CSV and send that.",
    Exit.OPEN_HEADER: "A quotation mark in the first row of the file is not closed, so all rows below belong to the "
    "same cell. Remove it or add the other, and send the file again.",
    Exit.NOT_UTF8: "Texts or names in the file are not UTF-8 text: the file is damaged, or in another "
    "encoding. Save it in UTF-8 and send it again.",
    Exit.DAMAGED: _INVALID,
    Exit.ENCRYPTED: "The {input} file, or a part of it, is encrypted. Save it without encryption and send it again.",
    Exit.NO_LAYERS: "The {input} holds no layers, so there is nothing to convert.",
    Exit.SEVERAL_SYSTEMS: "The geometries of a table name different coordinate systems (SRID). Split the table by "
    "system, and send each file on its own.",
    Exit.AMBIGUOUS_COMMAS: "The commas in the coordinates, as in 529,090, may be decimal commas or separate thousands. "
    "Save the file without thousands separators and with decimal points.",
    Exit.AMBIGUOUS_POINTS: "The points in the coordinates, as in 529.090, may be decimal points or separate thousands: "
    "other numbers in the file have decimal commas. Save the file without thousands separators, and with points or "
    "commas in all decimals.",
}
_NOT_UTF8 = re.compile(r"is not a valid UTF-8 string")
_RENAMED = re.compile(r"Field '(?P<old>[^'\n]{1,200})' already exists\. Renaming it as '(?P<new>[^'\n]{1,200})'")
_OTHER_TYPE = re.compile(
    r"does not (?:seem to )?natively support (?P<kind>\w*List|Time) type for field (?P<column>[^\n]{1,400}?)\. "
    r"(?:Misconversion|Converting)"
)
_FORMER = defaultdict(lambda: FormerType.LIST, Time=FormerType.TIME)
MISREAD = re.compile(
    r"Value '(?P<value>(?:(?!Value ')[\s\S]){1,2000}?)' of field (?P<column>[^\n]{1,400}) parsed incompletely to "
    r"(?:integer(?: 64)?|real) (?P<number>\S{1,30}?)\.?(?:\n|$)"
)
"""A text that is not a number, in a column that the file declares as numbers: only its beginning is kept."""
UNDEFINED_TYPE = re.compile(r"Field format '|' has multiple geometry fields")
"""A column of a GeoPackage whose type is not one for attributes: the driver leaves it out, or guesses."""
UNREAD_GEOMETRY = re.compile(r"Unable to read geometry")
"""A value of a GeoPackage that is not a geometry: the driver leaves it out."""
LONG_GAP = re.compile(r"Invalid row: (?P<row>\d{1,9})\. Too big gap")
"""Empty rows of a workbook, more than its driver makes features of; it counts rows from 0."""
MAX_FOUND = 20


def rejection(verdict: Verdict) -> Rejection:
    """Return what the client is told of a run that did not succeed."""
    kind = NoRoom if verdict.ending is Ending.DISK_FULL else Rejection
    return kind(plain_language(verdict))


def out_of_time() -> Rejection:
    """Return what the client is told of work on the upload that has taken the computing time of a run."""
    return rejection(Verdict(ending=Ending.CPU_TIME))


def require_success(verdict: Verdict, subject: Subject) -> str:
    """Return the messages of a successful run.

    Raises:
        Rejection: the file is the cause, or exceeds the limits.
        RunLost: the service is the cause.
    """
    messages = verdict.untrusted_stderr.decode("utf-8", "replace")
    if verdict.ending is Ending.INTERNAL:
        raise RunLost(verdict.detail or shown(messages))
    if verdict.ending not in {Ending.EXIT, Ending.OK}:
        raise rejection(verdict)
    if verdict.ending is Ending.EXIT or INCOMPLETE.search(messages):
        kind = UnreachableSystem if UNREACHABLE.search(messages) else Rejection
        raise kind(explain(messages, subject))
    return messages


def require_program_success(verdict: Verdict, subject: Subject) -> None:
    """Check that one of our programs in the sandbox succeeded.

    Raises:
        Rejection: it gave a reason, or exceeded the limits.
        RunLost: the sandbox is the cause.
        EngineDefect: it failed without a known reason in the file.
    """
    if verdict.ending is Ending.OK:
        return
    if verdict.ending is Ending.INTERNAL:
        raise RunLost(verdict.detail)
    reason = _EXITS.get(Exit(verdict.exit_code)) if verdict.exit_code in set(Exit) else None
    if reason is not None:
        raise Rejection(_filled(reason, subject))
    if verdict.ending is Ending.EXIT:
        raise EngineDefect(verdict.detail or verdict.untrusted_stderr.decode("utf-8", "replace")[-2000:])
    raise rejection(verdict)


def explain(messages: str, subject: Subject) -> str:
    """Translate `messages`, the output of a failed converter, into a sentence for the client."""
    on_one_line = " ".join(messages.split())
    words = next((words for pattern, words in _MESSAGES.items() if pattern.search(on_one_line)), _UNEXPLAINED)
    blames_target = "{target}" in words and not subject.target
    return _filled(_INVALID if blames_target else words, subject)


def has_other_texts(messages: str) -> bool:
    """Whether the converter found texts that are not UTF-8, and copied them as they are."""
    return _NOT_UTF8.search(messages) is not None


def former_types(messages: str) -> dict[str, FormerType]:
    """The types of columns that the work file does not have, by column."""
    return {found["column"]: _FORMER[found["kind"]] for found in _OTHER_TYPE.finditer(messages)}


def find_changes(messages: str, *, values: bool = True) -> Iterator[str]:
    """Warnings about columns that the converter renamed and `values` that it changed while it read the file.

    It names a column behind its layer and a point; the layer is left out unless points are in either name.
    """
    for found in islice(_RENAMED.finditer(messages), MAX_FOUND):
        yield told_of_renamed(found["old"], found["new"])
    if gap := LONG_GAP.search(messages):
        row = int(gap["row"]) + 1
        yield (
            f"Too many rows before row {row:,} of a sheet are empty: they were left out, and so were all empty rows "
            "after it. Rows with values were kept; other empty rows are features without values."
        )
    misread: dict[str, re.Match[str]] = {}
    for found in MISREAD.finditer(messages) if values else ():
        if not _is_same(found["value"], found["number"]):
            of_layer = found["column"]
            misread.setdefault(of_layer if of_layer.count(".") > 1 else of_layer.rpartition(".")[2], found)
    for column, found in islice(misread.items(), MAX_FOUND):
        value = shown(found["value"].strip())
        yield (
            f"Values of {shown(column)!r} were read as numbers, as the file or its format declares: {value!r} became "
            f"{found['number']}. Write numbers like 12.5, or declare the column as text (string), to keep them."
        )


def told_of_renamed(old: str, new: str) -> str:
    """The warning about a column that the converter renamed."""
    return f"The column {shown(old)!r} has the name of another, ignoring case, and became {shown(new)!r}."


def _is_same(text: str, number: str) -> bool:
    """Whether a text is a number, perhaps between blanks, with the value that was read."""
    try:
        return float(text) == float(number)
    except ValueError:
        return False


def _filled(words: str, subject: Subject) -> str:
    target_crs = "the target system" if subject.target_epsg is None else f"EPSG:{subject.target_epsg}"
    return words.format(input=subject.input, target=subject.target, target_crs=target_crs, unreachable=REMEDY)
