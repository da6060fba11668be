"""What is refused of tables, and what is told of them."""

from collections.abc import Iterator, Sequence
from itertools import chain
from typing import Annotated

from msgspec import Meta

from service.engine.jailed.delimited import are_consecutive_years
from service.engine.jailed.kinds import NUMBER
from service.engine.jailed.place_names import find_pairs, holds_both
from service.engine.jailed.places import Table, X, Y
from service.engine.reading.work_file import LISTED, TAKEN_FOR_WINDOWS, told_of
from service.errors import Rejection
from service.formats.facts import MAX_LAYERS
from service.formats.losses import PAIRS_UNREAD
from service.formats.names import listed, quotes, shown, values_of
from service.formats.request import ConversionRequest

FEWEST_NAMES = 2
"""How many names make a row a header although it lacks those before them."""
ZEROS_LEFT_OUT = "Zero bytes (NUL) within texts ({values}) were left out."
ROUNDED = "{values} lost digits: times are kept with millisecond precision, decimal numbers to the fifteenth digit."


_OF_COLUMNS = {
    "finer": ROUNDED,
    "rounded": "Decimals with more digits than floating-point numbers have ({values}) lost the last ones.",
    "returned": "Carriage returns in {values} became line feeds.",
    "stood_in": "Texts that stand for missing values, such as n/a or -, or units below the header turned the numbers, "
    "dates or times in their columns into texts ({values}). To keep numbers, empty these cells, and send the file "
    "again.",
    "longer": "Of {values}, only the first geometry was read, not what follows it. Put each into a row of its own.",
    "assumed": "Geometries without a coordinate system (SRID) beside others that name one ({values}) were read as "
    "coordinates in the same system.",
    "flat": "Elevations that are not decimal numbers ({values}) were left out. Write 12.5 for 12.5 m.",
}
"""What is told of values of some kinds, which tables count for each column."""
_OF_ROWS = {
    "zeros": "Zero bytes (NUL) in the file ({count}, first in line {0.first_zero:,}) were left out. If letters are "
    "wrong, save it as UTF-8 and send it again.",
    "unquoted": "Quotation marks around only the beginning of cells ({count}, first in row {0.first_unquoted:,}, not "
    "counting a header) were left out. To keep them, double them, and enclose the whole cell in quotation marks, as in "
    '"""Old"" town".',
    "blank": "Rows of separators alone ({count}, first in row {0.first_blank:,}, not counting a header) became "
    "features without values. To leave them out, delete them, and send the file again.",
    "open_row": "The quotation mark before a text in row {count}, not counting a header, is not closed: everything "
    "after it, to the end of the file, became one cell.",
}
"""What is told of rows of a table."""


Tables = Annotated[tuple[Table, ...], Meta(max_length=MAX_LAYERS)]


def require_places(tables: Sequence[Table], request: ConversionRequest) -> None:
    """Refuse tables without geometry columns if the request implies that there are some."""
    if any(table.places for table in tables) or not (request.place_fields or request.source_epsg is not None):
        return
    columns = listed(quotes(name for table in tables for name in table.columns), LISTED)
    if request.place_fields:
        named = " and ".join(f"{field}={shown(name)!r}" for field, name in request.place_fields.items())
        raise Rejection(f"The table has no such columns: {named}. Its columns are {columns}.")
    unnamed = f"Name them in xField and yField, or in wktField. {PAIRS_UNREAD}"
    remedy = next(chain(_split_otherwise(tables), _named_like_coordinates(tables), _unnamed(tables)), unnamed)
    raise Rejection(
        f"sourceEpsg was sent, but no columns of coordinates were found. {remedy} Leave sourceEpsg out to convert the "
        f"table without geometry. The columns are {columns}."
    )


def is_unplaced(tables: Sequence[Table]) -> bool:
    """Whether nothing became a geometry, and `table_warnings` does not say what to do about it."""
    advised = chain(_split_otherwise(tables), _named_like_coordinates(tables), _unnamed(tables))
    return not any(table.places for table in tables) and not any(advised)


def _split_otherwise(tables: Sequence[Table]) -> Iterator[str]:
    """What to do about rows that are a single cell, because something else separates their parts."""
    for table in tables:
        if table.split_by and not table.places:
            yield (
                f"The table has a single column, although {table.split_by} separate parts of each row. If these are "
                "columns, separate them by commas, and send the file again."
            )


def _named_like_coordinates(tables: Sequence[Table]) -> Iterator[str]:
    """What to do about columns that would be coordinates by their names, if their cells were numbers."""
    for table in tables:
        pairs = [] if table.places or table.is_empty else find_pairs(list(enumerate(table.columns)))
        if pairs:
            x, y = (repr(shown(table.columns[at])) for at in pairs[0])
            yield (
                f"The columns {x} and {y} are named like coordinates, but too few of their cells are decimal numbers, "
                "so they did not become points. Write 50.5 for 50°30'N, and -7.25 for 7°15'W."
            )
        both = [] if pairs or table.places else [name for name in table.columns if holds_both(name)]
        if both:
            yield f"{shown(both[0])!r} is named like a column with both coordinates. {PAIRS_UNREAD}"


def table_warnings(tables: Sequence[Table]) -> Iterator[str]:
    """What is told of tables that were read."""
    if any(table.in_windows_1252 for table in tables):
        yield TAKEN_FOR_WINDOWS.format(what="The file", remedy="Send the file in UTF-8")
    for table in tables:
        yield from told_of(table, _OF_ROWS)
    yield from _split_otherwise(tables)
    yield from _named_like_coordinates(tables)
    if any(table.lacks_names for table in tables):
        yield (
            "The first row holds numbers, so it counts as data, and the columns are called field_1, field_2 and so on. "
            "If it is a header, change the names that are numbers."
        )
    yield from _unnamed(tables)
    renamed = [pair for table in tables for pair in table.renamed]
    if renamed:
        pairs = listed([f"{shown(old)!r} became {shown(new)!r}" for old, new in renamed], LISTED)
        yield (
            "Columns were renamed because their names are repeated, have line ends or quotation marks, or begin like "
            f"those of geometries in WKT: {pairs}."
        )
    for kind, sentence in _OF_COLUMNS.items():
        if counts := {name: count for table in tables for name, count in getattr(table, kind).items() if count}:
            yield sentence.format(values=values_of(counts, LISTED))
    yield from _further_places(tables)


def _further_places(tables: Sequence[Table]) -> Iterator[str]:
    """What is told of tables in which several pairs of columns could be coordinates."""
    for table in tables:
        if table.others:
            x, y = (shown(name) for ours, name in table.originals.items() if ours in {X, Y})
            others = ", ".join(f"{shown(a)!r} and {shown(b)!r}" for a, b in table.others[:LISTED])
            yield (
                f"The coordinates were taken from {x!r} and {y!r}. {others} could be coordinates too and stayed data; "
                "send xField and yField to choose."
            )


def _unnamed(tables: Sequence[Table]) -> Iterator[str]:
    """What is told of tables whose first row may be a title, or empty: names are made for the rest of it.

    A header above the numbers or labels of rows, as pandas writes, lacks only the names before all others. Above
    several columns of labels, it is a title if nothing in the table is a number, because a header counts as data.
    The driver names no column of a sheet whose first row is empty or the only one.
    """
    for table in tables:
        of_driver = [name for number, name in enumerate(table.columns, 1) if name == f"Field{number}"]
        made = of_driver if table.name else [*table.unnamed]
        is_above_labels = made == [*table.columns[: len(made)]] and len(table.columns) >= len(made) + FEWEST_NAMES
        is_title = not table.name and table.has_only_texts and len(made) > 1
        what = repr(shown(table.name)) if table.name else "the file"
        if made and made == of_driver == [*table.columns]:
            yield (
                f"The first row of {what} is empty or the only row, so all rows count as data: the columns are called "
                f"{listed(quotes(made), LISTED)}. If there is a header, delete the rows above it, and send the file "
                "with rows below it."
            )
        elif made and (is_title or not is_above_labels):
            yield (
                f"The first row of {what} does not seem to name all columns: "
                f"{listed(quotes(made), LISTED)}. If the header is in a lower row, it counts as data: delete the rows "
                "above it."
            )


def numbered_headers(tables: Sequence[Table]) -> Iterator[str]:
    """What is told of sheets whose first row, always taken for a header, looks like data: half of it are numbers."""
    odd: dict[str, list[str]] = {}
    for table in tables:
        numbers = [name for name in table.columns if NUMBER.match(name)]
        if numbers and 2 * len(numbers) >= len(table.columns) and not are_consecutive_years(numbers):
            odd[table.name] = numbers
    if odd:
        first = listed(quotes(next(iter(odd.values()))), LISTED)
        yield (
            f"The first row of {listed(quotes(odd), LISTED)} was read as names of columns, although it holds numbers, "
            f"such as {first}. If it is data, it is missing in the result: insert a row with names above it, and send "
            "the file again."
        )
