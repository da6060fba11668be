"""Finds the geometry of a table: a column of WKT, or a pair of coordinate columns. Runs in the sandbox.

These columns are renamed to fixed names for the converter, and a .csvt file gives each column a type: GDAL guesses from
the first rows only, and turns codes with leading zeros into numbers.
"""

import csv
import re
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import reduce
from operator import or_
from typing import Annotated, Final, Literal, TextIO

import msgspec
from msgspec import Meta

from service.engine.jailed.exits import Exit
from service.engine.jailed.kinds import NUMBER, Kind, has_commas, is_ambiguous, is_pointed, kind_of_cell
from service.engine.jailed.place_names import find_pairs, is_height, plain, roles_of
from service.formats.crs_database import MAX_CODE
from service.formats.facts import MAX_COLUMNS, Count, Name

Ours = Literal["__x", "__y", "__z", "__wkt"]
X: Final = "__x"
Y: Final = "__y"
Z: Final = "__z"
WKT: Final = "__wkt"
_TYPES = {X: "Real", Y: "Real", Z: "Real", WKT: "String"}
WKT_NAMES = ("wkt", "ewkt", "geom", "geometry", "thegeom", "wkbgeometry", "geomwkt", "geometrywkt", "shape", "geojson")
GEOMETRY_TEXT = re.compile(
    r"\s*+(?:(?:SRID=\d+;)?\s*(?:(?:MULTI)?(?:POINT|LINESTRING|POLYGON|CURVE|SURFACE)"
    r"|GEOMETRYCOLLECTION|CIRCULARSTRING|COMPOUNDCURVE|CURVEPOLYGON|TIN|POLYHEDRALSURFACE|TRIANGLE)"
    r"(?:ZM?|M)?\b\s*+(?:(?:ZM?|M)\b\s*+)?+(?:\(|EMPTY\b)"
    r"|0[01][0-9A-F]{16,}\s*$|\{.*\"coordinates\")",
    re.IGNORECASE | re.DOTALL,
)
"""What a cell with a geometry begins with. A type alone is none: other columns hold such words, as "Point of sale"."""
GEOMETRY_VALUE = re.compile(r"\s*+[{0]|[A-Z0-9=;\s]+\(.*\d[\s,]\s*[-+.]?\d|.*\bEMPTY\s*$", re.IGNORECASE | re.DOTALL)
"""What is no name of a column: WKB, GeoJSON, or, in WKT, numbers side by side, perhaps with a comma, or EMPTY."""
WITH_PARTS = re.compile(r"[^(]*?(?:COLLECTION|CURVE|SURFACE)", re.IGNORECASE)
"""A geometry whose parts may have names of their own."""
BEHIND_PARTS = re.compile(r"\)[\s;]*+(?!EMPTY\b)[^\s,);]", re.IGNORECASE)
BEHIND_OTHERS = re.compile(r"\)[\s,;]*+(?!EMPTY\b)[^\s,;()]", re.IGNORECASE)
"""What follows the end of a geometry, of which the driver reads nothing."""
SRID_TEXT = re.compile(r"\s*SRID=(\d{1,9});\s*", re.IGNORECASE)
SRID_BYTES = re.compile(r"\s*(?:01[0-9A-F]{6}[26AE]0([0-9A-F]{8})|00[26AE]0[0-9A-F]{6}([0-9A-F]{8}))", re.IGNORECASE)
"""Extended WKB with a system: four bytes after the type, which has a flag for it; in either byte order."""
ATTACHED = re.compile(r"(?<=[A-Z])(?=ZM?\s*+(?:\(|EMPTY\b))", re.IGNORECASE)
"""Where a blank belongs into PointZ (1 2 3), as QGIS and SpatiaLite write it: the driver of GDAL 3.6 needs it."""
LEADING_ZEROS = re.compile(r"(?<![\d,.])0+(?=\d)")
DELIMITER = re.compile(r"[,;\t|]")
LINE_ENDS = re.compile(r"[\r\n]+")
"""The driver takes the first one for the end of the header, whatever the quotes."""
TAKEN = re.compile(r"WKT\Z|_WKT", re.IGNORECASE)
"""Names of columns whose texts the driver takes for geometries, unless it finds coordinates in two before them."""
MARK = "\ufeff"
"""A byte order mark, which the driver leaves out at the beginning of each row, unless it is in quotes."""


FINER = re.compile(r".{19}\.\d{3}0*[1-9]")
"""A moment with fractions of milliseconds."""


@dataclass(frozen=True, slots=True)
class Wanted:
    """The columns that the client names as geometry; all empty if none is named."""

    x: str = ""
    y: str = ""
    z: str = ""
    wkt: str = ""

    def names(self) -> dict[Ours, str]:
        """The named columns, by their new names."""
        named: dict[Ours, str] = {X: self.x, Y: self.y, Z: self.z, WKT: self.wkt}
        return {ours: name for ours, name in named.items() if name}


@dataclass(slots=True)
class Column:
    """What was found in one column."""

    name: str
    type: str = "String"
    filled: int = 0
    kinds: Kind = Kind.NONE
    numbers: int = 0
    geometries: int = 0
    longer: int = 0
    """How many of them have something behind them, such as a second one."""
    finer: int = 0
    """How many of its times have fractions of milliseconds."""
    rounded: int = 0
    """How many of its decimals lose digits as floating-point numbers."""
    returned: int = 0
    """How many of its texts have carriage returns."""
    aside: int = 0
    """How many cells, that stand in for a value or name a unit, made texts of `others`."""
    others: Kind | None = None
    """What its other cells look like, since the first of these."""
    srids: set[int] = field(default_factory=set)
    """The systems that its geometries name."""
    named: int = 0
    """How many of its geometries name a system."""
    is_attached: bool = False
    """Whether the Z of some of them is attached to the name of a type."""
    may_be_coordinate: bool = False
    decimals: Kind = Kind.NONE
    """What its numbers with commas or points look like, if it may hold coordinates."""


Holding = Literal["", "xy", "xyz", "wkt"]
Counts = Annotated[Mapping[Name, Count], Meta(max_length=MAX_COLUMNS)]
Names = Annotated[tuple[Name, ...], Meta(max_length=MAX_COLUMNS)]
Pairs = Annotated[tuple[tuple[Name, Name], ...], Meta(max_length=MAX_COLUMNS)]


class Table(msgspec.Struct, frozen=True):
    """A normalized table: its name in the input, and how it holds geometry. Its position names its CSV file."""

    name: Name
    places: Holding
    delimiter: Annotated[str, Meta(min_length=1, max_length=1)] = ","
    columns: Names = ()
    """The names of its columns in the input."""
    originals: Mapping[Ours, Name] = {}
    """The names in the input of the columns that hold the geometry, by their new names."""
    others: Pairs = ()
    """Further pairs of columns that could be coordinates, which stay data."""
    placed: Count | None = None
    """How many rows must become a geometry, for the others lack all of what makes one; None if that is unknown."""
    srid: Annotated[int, Meta(ge=1, le=MAX_CODE)] | None = None
    renamed: Pairs = ()
    """Columns whose name is repeated, or has line ends or quotation marks, and their new names."""
    finer: Counts = {}
    """How many times in each of the columns of times have fractions of milliseconds, which are lost."""
    rounded: Counts = {}
    """How many decimals in each of the columns of numbers lose digits; in those of coordinates, they do not matter."""
    returned: Counts = {}
    """How many texts in each column have carriage returns, which become line feeds."""
    stood_in: Counts = {}
    """How many numbers, dates or times are texts because others of their column have no value, or name a unit."""
    longer: Counts = {}
    """How many cells in the column of geometries have something behind their geometry."""
    assumed: Counts = {}
    """How many cells in the column of geometries name no system, beside others that do."""
    strange: Count = 0
    """How many filled cells in the column of geometries do not begin with one."""
    flat: Counts = {}
    """How many cells in the column of elevations, if there is one, are no numbers."""
    lacks_names: bool = False
    """Whether its first row counts as data although it may be a header with a number as a name."""
    unnamed: Names = ()
    """The names made for columns with cells for which its header, or what was taken for it, has none."""
    has_only_texts: bool = False
    """Whether all of its columns hold texts, as they do if the header counts as data."""
    is_empty: bool = False
    """Whether no cell below its header is filled."""
    in_windows_1252: bool = False
    """Whether its text was taken for Windows-1252, because it is not in a Unicode encoding."""
    zeros: Count = 0
    """How many zero bytes it had, which were left out."""
    first_zero: Count = 0
    """The line of the first of them, from 1."""
    open_row: Count = 0
    """The last row, if it is a quoted text that does not end; from 1, not counting a header."""
    unquoted: Count = 0
    """How many cells go on behind a text in quotation marks, which are left out."""
    first_unquoted: Count = 0
    """The row of the first of them, from 1, not counting a header."""
    blank: Count = 0
    """How many rows have separators alone."""
    first_blank: Count = 0
    """The first of them, from 1, not counting a header."""
    split_by: Annotated[str, Meta(max_length=10)] = ""
    """What seems to separate the cells of its only column."""


@dataclass(frozen=True, slots=True)
class Layout:
    """How a table is normalized: its description, the names of its columns in the CSV, and the text of its .csvt."""

    table: Table
    names: list[str]
    types: str
    geometry: int | None
    """The position of a column of WKT whose geometries the driver reads only as `as_read` writes them."""


def expect(columns: Iterable[Column], wanted: Wanted) -> None:
    """Mark the columns that may be coordinates, so that numbers in them are counted."""
    named = {plain(name) for name in (wanted.x, wanted.y, wanted.z) if name}
    for column in columns:
        key = plain(column.name)
        column.may_be_coordinate = key in named or is_height(column.name) or bool(roles_of(column.name)) or key == "z"


def look_at_cell(column: Column, cell: str) -> None:
    """Count whether a filled `cell` is a geometry or, if its column may hold coordinates, a number."""
    if column.may_be_coordinate and NUMBER.match(cell):
        column.numbers += 1
        if "," in cell or "." in cell:
            column.decimals |= kind_of_cell(LEADING_ZEROS.sub("", cell.strip().removeprefix("+")))
    elif GEOMETRY_TEXT.match(cell):
        column.geometries += 1
        column.longer += goes_on(cell)
        column.is_attached = column.is_attached or ATTACHED.search(cell) is not None
        srid = srid_of(cell)
        if srid:
            column.srids.add(srid)
            column.named += 1


def goes_on(cell: str) -> bool:
    """Whether something follows a geometry in WKT."""
    if cell.startswith(("{", "0")):
        return False
    behind = BEHIND_PARTS if WITH_PARTS.match(cell) else BEHIND_OTHERS
    return behind.search(cell) is not None


def srid_of(cell: str) -> int:
    """The system that a geometry in extended WKT or WKB names, or 0."""
    text = SRID_TEXT.match(cell)
    if text:
        return int(text[1])
    raw = SRID_BYTES.match(cell)
    if raw is None:
        return 0
    return int.from_bytes(bytes.fromhex(raw[1] or raw[2]), "little" if raw[1] else "big")


def as_read(cell: str) -> str:
    """A geometry without the system that it names, and with a blank before Z, as the converter's driver can read it."""
    srid = SRID_TEXT.match(cell)
    text = cell[srid.end() :] if srid else cell
    return ATTACHED.sub(" ", text) if GEOMETRY_TEXT.match(text) else text


def find_places(columns: Sequence[Column], wanted: Wanted) -> tuple[dict[int, Ours], list[tuple[int, int]]]:
    """The columns that hold the geometry, by position, with their new names; and other pairs that could.

    If `wanted` names columns that do not exist, there are none.
    """
    if wanted.names():
        return _named(columns, wanted), []
    texts = [at for at, column in enumerate(columns) if column.geometries and 2 * column.geometries >= column.filled]
    if texts:
        named = [at for at in texts if plain(columns[at].name) in WKT_NAMES]
        return {(named or texts)[0]: WKT}, []
    numbers = [(at, column.name) for at, column in enumerate(columns) if _holds_numbers(column)]
    pairs = find_pairs(numbers)
    if not pairs:
        return {}, []
    x, y = pairs[0]
    beside = next(role.beside for role in roles_of(columns[x].name) if role.is_x)
    places: dict[int, Ours] = {x: X, y: Y}
    z = next((at for at, name in numbers if is_height(name, beside)), None)
    return places if z is None else {**places, z: Z}, pairs[1:]


def lay_out(name: str, header: Sequence[str], columns: Sequence[Column], *, wanted: Wanted, delimiter: str) -> Layout:
    """Find the geometry of a table, and rename columns for the driver.

    Exits if its geometries name several systems, or if coordinates may have thousands separators.
    """
    places, others = find_places(columns, wanted)
    _require_clear_decimals(columns, places, delimiter)
    _make_readable(columns, places)
    table = describe(name, columns, (places, others))
    told = msgspec.structs.replace(
        table,
        renamed=_renames(header, table.columns),
        lacks_names=_lacks_names(header, columns),
        unnamed=_unnamed(header, columns),
    )
    names = [places.get(at, column.name) for at, column in enumerate(columns)]
    is_odd = table.srid is not None or any(column.is_attached for column in columns)
    geometry = next((at for at, ours in places.items() if ours == WKT and is_odd), None)
    return Layout(told, names, _types_of(columns, places), geometry)


def _make_readable(columns: Sequence[Column], places: Mapping[int, str]) -> None:
    """Rename columns whose names the driver leaves out or takes for those of geometries; `places` have new names."""
    end = max((at for at, ours in places.items() if ours in {X, Y}), default=len(columns))
    kept = [column.name if at in places else _readable(column, is_before=at < end) for at, column in enumerate(columns)]
    for column, name in zip(columns, unique_names(kept), strict=True):
        column.name = name


def _readable(column: Column, *, is_before: bool) -> str:
    is_taken = is_before and column.type == "String" and TAKEN.match(column.name)
    name = without_quotes(column.name)
    return f"{name.lstrip('_')}_" if is_taken else name


def without_quotes(name: str) -> str:
    """`name` as other columns than places have it."""
    return name.replace('"', "_")


def _require_clear_decimals(columns: Sequence[Column], places: Mapping[int, str], delimiter: str) -> None:
    """Exit if commas or points in coordinates may separate thousands: read as decimals, they would be elsewhere."""
    every = reduce(or_, (column.kinds | column.decimals for column in columns), Kind.NONE)
    found = [columns[at].decimals for at in places]
    if any(is_ambiguous(decimals, delimiter, every) for decimals in found):
        sys.exit(Exit.AMBIGUOUS_COMMAS)
    if has_commas(every, delimiter, Kind.COMMA | Kind.GROUPED) and any(map(is_pointed, found)):
        sys.exit(Exit.AMBIGUOUS_POINTS)


def describe(name: str, columns: Sequence[Column], found: tuple[Mapping[int, Ours], list[tuple[int, int]]]) -> Table:
    """The table with the columns that `find_places` found.

    Exits if its geometries name several systems.
    """
    places, others = found
    geometries = [columns[at] for at, ours in places.items() if ours == WKT]
    srids = {srid for column in geometries for srid in column.srids}
    if len(srids) > 1:
        sys.exit(Exit.SEVERAL_SYSTEMS)
    return Table(
        name,
        kind_of(places),
        placed=_count_placed(columns, places),
        columns=tuple(column.name for column in columns),
        originals={ours: columns[at].name for at, ours in places.items()},
        others=tuple((columns[x].name, columns[y].name) for x, y in others),
        finer={column.name: column.finer for column in columns if column.finer and column.type == "DateTime"},
        rounded={
            column.name: column.rounded
            for at, column in enumerate(columns)
            if column.rounded and column.type == "Real" and at not in places
        },
        stood_in={
            column.name: column.filled - column.aside
            for at, column in enumerate(columns)
            if column.aside and at not in places
        },
        longer={column.name: column.longer for column in geometries},
        assumed={column.name: column.geometries - column.named for column in geometries if srids},
        strange=sum(column.filled - column.geometries for column in geometries),
        returned={
            column.name: column.returned
            for at, column in enumerate(columns)
            if column.returned and places.get(at) != WKT
        },
        flat={columns[at].name: columns[at].filled - columns[at].numbers for at, ours in places.items() if ours == Z},
        srid=next(iter(srids), None),
        has_only_texts=all(column.type == "String" for column in columns),
        is_empty=not any(column.filled for column in columns),
    )


def _count_placed(columns: Sequence[Column], places: Mapping[int, Ours]) -> int | None:
    """How many rows must become a geometry; a lone elevation would be lost, and is not looked for."""
    counts = {count for at in places for count in (columns[at].filled, columns[at].numbers or columns[at].geometries)}
    return counts.pop() if len(counts) == 1 and Z not in places.values() else None


def kind_of(places: Mapping[int, str]) -> Holding:
    """How a table holds its geometry."""
    return "wkt" if WKT in places.values() else "xyz" if Z in places.values() else "xy" if places else ""


def unique_names(names: Sequence[str]) -> list[str]:
    """`names` without line ends, and without empty or repeated ones."""
    taken: set[str] = set()
    times: dict[str, int] = {}
    found = []
    for number, raw in enumerate(names, 1):
        name = base = LINE_ENDS.sub(" ", raw.strip()) or f"field_{number}"
        again = times.get(key := base.casefold(), 1)  # starting again takes seconds for thousands of long names
        while name.casefold() in taken:
            again += 1
            name = f"{base}_{again}"
        times[key] = again
        taken.add(name.casefold())
        found.append(name)
    return found


def _renames(names: Sequence[str], written: Sequence[str]) -> tuple[tuple[str, str], ...]:
    """Which of `names` were changed in `written`: repeated ones, and those with line ends or quotation marks."""
    return tuple((old.strip(), new) for old, new in zip(names, written, strict=False) if old.strip() not in {"", new})


def _lacks_names(header: Sequence[str], columns: Iterable[Column]) -> bool:
    """Whether a table without a `header` has texts, so that its first row may be one."""
    return not header and any(column.type == "String" and not column.geometries for column in columns)


def _unnamed(header: Sequence[str], columns: Iterable[Column]) -> tuple[str, ...]:
    """The names made for columns that have cells but none in the `header`, if the table has one."""
    named = {at for at, cell in enumerate(header) if cell.strip()}
    made = [column.name for at, column in enumerate(columns) if column.filled and at not in named]
    return tuple(made) if header else ()


def _types_of(columns: Sequence[Column], places: Mapping[int, str]) -> str:
    """Return the text of the .csvt that gives the types of `columns`."""
    types = [_TYPES.get(places.get(at, ""), column.type) for at, column in enumerate(columns)]
    return ",".join(f'"{name}"' for name in types)


def write_rows(file: TextIO, delimiter: str, names: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
    """Write a header and rows; a single column gets an empty second one, which the driver ignores.

    Without a delimiter in its first line, the driver does not accept a file as CSV. It passes over those in quotes.
    """
    alone = [""] if len(names) == 1 else []
    writer = csv.writer(file, delimiter=delimiter, lineterminator="\n")
    quoting = csv.writer(file, delimiter=delimiter, lineterminator="\n", quoting=csv.QUOTE_ALL)
    header = quoting if any(map(DELIMITER.search, names)) or names[0].startswith(MARK) else writer
    header.writerow([*names, *alone])
    for row in rows:
        is_marked = bool(row) and str(row[0]).startswith(MARK)
        (quoting if is_marked else writer).writerow([*row[:1], ""] if alone else row)


def with_plain_geometries(rows: Iterable[Sequence[object]], at: int) -> Iterator[list[object]]:
    """`rows` with the geometries in the column `at` in a form that the driver reads."""
    for row in rows:
        cells = list(row)
        if len(cells) > at and isinstance(cells[at], str):
            cells[at] = as_read(str(cells[at]))
        yield cells


def _named(columns: Sequence[Column], wanted: Wanted) -> dict[int, Ours]:
    """The wanted columns, by exact name or else without regard to case and quotation marks; none unless all exist."""
    found: dict[int, Ours] = {}
    for ours, name in wanted.names().items():
        exact = [at for at, column in enumerate(columns) if column.name == name]
        alike = [at for at, column in enumerate(columns) if _alike(column.name) == _alike(name)]
        if not exact and not alike:
            return {}
        found[(exact or alike)[0]] = ours
    return found


def _alike(name: str) -> str:
    return without_quotes(name).casefold()


def _holds_numbers(column: Column) -> bool:
    return column.filled > 0 and 2 * column.numbers >= column.filled
