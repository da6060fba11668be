"""Has the open run of a session normalize a CSV file, with the same result as `jailed.delimited`.

The run counts; this module decides what follows from the names of the columns. Files for which the two could differ are
left to that program.
"""

import io
from collections.abc import Sequence
from typing import Annotated, ClassVar, Literal

import msgspec
from msgspec import Meta

from service.engine.jailed.delimited import OURS, UNDERSTOOD
from service.engine.jailed.places import Column, Table, Wanted, expect, lay_out, unique_names, write_rows
from service.engine.session import Answer, Session
from service.engine.session_loading import in_open_run
from service.engine.workspace import Workplace
from service.formats.facts import MAX_COLUMNS, Count, Name, require_short_names
from service.formats.format import Reading

TYPES_OF_OURS = f"{OURS}t"


class CellCounts(msgspec.Struct, frozen=True):
    """A column: how many cells are filled, look like numbers or like geometries; the type that fits all cells.

    `finer` is the number of times with fractions of milliseconds, `returned` that of texts with carriage returns,
    `aside` that of texts that alone made texts of the others.
    """

    filled: Count
    numbers: Count
    geometries: Count
    finer: Count
    returned: Count
    aside: Count
    type: Literal["String", "Integer64", "Real", "Date", "DateTime"]


class Looked(Answer, frozen=True):
    """What was found in a file; not `ok` if the other program must examine it."""

    most_commas: ClassVar[int] = 1 << 18
    """Texts with escapes take longer than other values."""
    header: Annotated[tuple[Name, ...], Meta(max_length=MAX_COLUMNS)] = ()
    """The header row; empty if the first row is data."""
    columns: Annotated[tuple[CellCounts, ...], Meta(max_length=MAX_COLUMNS)] = ()
    width: Annotated[int, Meta(ge=0, le=MAX_COLUMNS)] = 0
    """The number of cells in the first row; columns beyond it have no names."""
    data_at: Count = 0
    """The offset of the data in bytes."""
    delimiter: Annotated[str, Meta(max_length=1)] = ""
    blank: Count = 0
    first_blank: Count = 0


async def tabulate(place: Workplace, file: str, wanted: Wanted, delimiter: str, reading: Reading) -> Table | None:
    """Normalize `file`, whose `delimiter` may be known; return None if `jailed.delimited` has to do so."""
    return await in_open_run(place, reading, lambda session: make_table(session, file, wanted, delimiter))


async def make_table(session: Session, file: str, wanted: Wanted, delimiter: str) -> Table | None:
    """The same in a run that is open.

    Raises:
        SessionOver: the run has ended.
        Rejection: the names in its header are too long.
    """
    looked = await session.ask(Looked, "look", file, delimiter)
    is_doubtful = len(looked.columns) == 1 and not delimiter  # it may have another delimiter
    if not looked.ok or looked.delimiter not in UNDERSTOOD or is_doubtful:
        return None
    require_short_names(looked.header)
    columns = columns_of(looked, wanted)
    layout = lay_out("", looked.header, columns, wanted=wanted, delimiter=looked.delimiter)
    written = io.StringIO()
    write_rows(written, looked.delimiter, layout.names, ())
    head = (OURS, str(looked.data_at), written.getvalue(), TYPES_OF_OURS, layout.types)
    done = await session.ask(Answer, "head", file, *head)
    seen = {"delimiter": looked.delimiter, "blank": looked.blank, "first_blank": looked.first_blank}
    return msgspec.structs.replace(layout.table, **seen) if done.ok else None


def columns_of(looked: Looked, wanted: Wanted) -> Sequence[Column]:
    """The columns as `jailed.delimited` describes them."""
    names = unique_names([*looked.header, *[""] * (len(looked.columns) - len(looked.header))])
    columns = [Column(name, seen.type, seen.filled) for name, seen in zip(names, looked.columns, strict=True)]
    expect(columns[: looked.width], wanted)
    for column, seen in zip(columns, looked.columns, strict=True):
        column.numbers = seen.numbers if column.may_be_coordinate else 0
        column.geometries = seen.geometries
        column.finer = seen.finer
        column.returned = seen.returned
        column.aside = seen.aside
    return columns
