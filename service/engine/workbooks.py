"""Finds what the driver of workbooks mistakes or leaves out, before it reads one.

The run that will hold the workbook examines it and, if the driver would mistake formats of cells, writes a copy that it
understands. `jailed.styles` does both where there is no such run, or the two could differ.
"""

from collections.abc import Callable, Iterable, Iterator
from typing import Annotated, ClassVar

import msgspec
from msgspec import Meta

from service.engine.jailed import opendocument, styles
from service.engine.session import Answer, Session
from service.engine.session_loading import in_open_run
from service.engine.workspace import Workplace
from service.formats.facts import Count
from service.formats.format import Reading
from service.formats.properties import COMMENTS, LINKS

PLAIN_FILE = "plain"
ROUNDED = (
    "Whole numbers with more digits than a floating-point number has ({count:,}) lost the last ones in columns of "
    "decimals: {columns}.{first} Store them as texts to keep them."
)
FIRST = " The first is in row {:,} of its sheet."
ROWS_FOUND = (
    *("hidden_sheets", "hidden_columns", "hidden_rows", "first_hidden_rows"),
    *("blank_rows", "first_blank_rows", "totals", "first_totals", "mixed", "first_mixed"),
    *("unlike", "first_unlike"),
)
"""What `jailed.sheet_rows` finds."""
TO_LEAVE_OUT = "To leave them out, delete them, and send the workbook again."
JAILED = (styles.__name__, opendocument.__name__)


FoundCells = Annotated[dict[Annotated[str, Meta(max_length=20)], Count], Meta(max_length=60)]
"""What a workbook holds that its driver does not tell: how often, by kind.

Whole numbers that no floating-point number is are `rounded`; the other kinds are those of `_SENTENCES`. `first_` and a
kind is the row of the first in its sheet, or the lowest row in any sheet, from 1.
"""


def rounded_in(found: FoundCells) -> str:
    """The sentence for the client if `columns` are of decimals and may hold numbers that were rounded."""
    first = FIRST.format(found.get("first_rounded", 0))
    count = found.get("rounded", 0)
    return ROUNDED.format(count=count, first=first, columns="{columns}") if count else ""


def workbook_warnings(found: FoundCells) -> Iterator[str]:
    """The sentences for the client."""
    for name, sentence in _SENTENCES.items():
        if count := found.get(name):
            row = found.get(f"first_{name}")
            yield sentence.format(count=count, first=FIRST.format(row) if row else "")


_SENTENCES = {
    "uncalculated": "The workbook holds no results for some of its formulas ({count:,}); their cells are empty. Open "
    "and save it in a spreadsheet program, which calculates them, and send it again.",
    "escaped": "Characters that the workbook writes as escapes, such as _x000D_ ({count:,}), may have stayed escapes.",
    "late": "Times with 0.001 or 0.999 s ({count:,}) may have become whole seconds when the workbook was read.",
    "named": "Cells of the first row that are dates or times ({count:,}) became names of columns as numbers, such as "
    "45293. Write them as texts.",
    "iso": "Dates that the workbook writes in the ISO notation ({count:,}) are texts, such as 2024-01-02T03:04:05. "
    "For dates, save the workbook as an ordinary .xlsx (not Strict Open XML) and send it again.",
    "errors": "Cells that hold errors of formulas ({count:,}) are texts such as #N/A, even in columns of numbers and "
    "dates.{first}",
    "timed": "Dates with a time of day that their format does not show ({count:,}) lost the time.{first} To keep the "
    "times, give these cells a format with hours.",
    "dated": "Times of day with a date, or of 24 hours and more, that their format does not show ({count:,}) lost the "
    "days.{first} To keep the days, give these cells a format with days, or with elapsed hours ([h]).",
    "elapsed": "Elapsed times ({count:,}) are numbers of days, such as 1.5 for 36:00:00.{first}",
    "padded": "Zeros that formats show before numbers, as in 00501, were left out of cells ({count:,}). To keep the "
    "zeros, store these as texts.",
    "worded": "Words and signs that formats show beside numbers, as in 5 km and 5 €, were left out of cells "
    "({count:,}).{first} To keep them, put them into the names of columns, or store these cells as texts.",
    "percent": "Percentages ({count:,}) are fractions, such as 0.5 for 50 %.{first}",
    "live": "Texts that begin with of:= ({count:,}) would be calculated when they are read; an apostrophe was put "
    "before them.",
    "phonetic": "Phonetic guides of texts (furigana, {count:,}) were left out.",
    "comments": COMMENTS,
    "drawings": "Drawings on cells ({count:,}), such as images, were left out, with their texts.",
    "merged": "Merged cells ({count:,}) have their value in the first row and column only; in the others it is missing."
    "{first} If it belongs to all of them, undo the merging, fill the empty cells, and send the workbook again.",
    "covered": "Values of cells that merged cells cover ({count:,}) were left out. To keep them, undo the merging of "
    "these cells.",
    "hidden_sheets": "Sheets that the workbook hides ({count}) were read like all others. " + TO_LEAVE_OUT,
    "hidden_columns": "Columns that the workbook hides ({count}) were read like all others. " + TO_LEAVE_OUT,
    "hidden_rows": "Rows that the workbook hides, such as by a filter ({count:,}), were read like all others.{first} "
    + TO_LEAVE_OUT,
    "blank_rows": "Empty rows between others ({count:,}) became features without values.{first} If notes, totals or "
    "another table follow, delete these or move them to another sheet, and send the workbook again.",
    "totals": "Rows with sums of the values in other rows ({count:,}) were read like all others.{first} "
    + TO_LEAVE_OUT,
    "mixed": "Texts below the header turned the numbers, dates or times in their columns into texts ({count:,}), "
    "unless these are coordinates.{first} To keep numbers, empty the cells with these texts, such as units or n/a, and "
    "send the workbook again.",
    "unlike": "Dates, times of day and numbers beside one another in the same column ({count:,}) became texts, such as "
    "2024/01/02, 12:30:00 and 45293, or, beside dates with a time, times of day became those of 1899-12-30.{first} "
    "Give all cells of the column the same kind of format, and send the workbook again.",
    "links": LINKS,
    "finer": "Times with more digits than those of milliseconds ({count:,}) were rounded.{first}",
}
"""What is told of each member of what was found."""


class Moments(msgspec.Struct, frozen=True, array_like=True):
    """The cells of a format: times that become whole seconds, those in the first row, and texts.

    And those with a time of day, those beyond one day, and all numbers, each with the lowest of their rows; and the
    fewest digits of whole numbers.
    """

    late: Count
    named: Count
    texts: Count
    timed: Count
    first_timed: Count
    dated: Count
    first_dated: Count
    numbers: Count
    first_number: Count
    fewest_digits: Count


class Examined(Answer, frozen=True):
    """What the open run found; not `ok` if the other program must examine the workbook."""

    most_commas: ClassVar[int] = 1 << 18
    """Texts with escapes take longer than other values."""
    codes: Annotated[tuple[Annotated[str, Meta(max_length=255)], ...], Meta(max_length=200)] = ()
    """The formats of cells in use that the workbook defines itself."""
    built_in: Annotated[tuple[Count, ...], Meta(max_length=200)] = ()
    """The numbers of the other formats in use."""
    moments: Annotated[tuple[Moments, ...], Meta(max_length=400)] = ()
    """For each of these formats, what matters should it be one of moments."""
    uncalculated: Count = 0
    escaped: Count = 0
    errors: Count = 0
    first_error: Count = 0
    rounded: Count = 0
    first_rounded: Count = 0
    truths: Count = 0
    merged: Count = 0
    first_merged: Count = 0
    hidden_sheets: Count = 0
    hidden_columns: Count = 0
    hidden_rows: Count = 0
    first_hidden_rows: Count = 0
    blank_rows: Count = 0
    first_blank_rows: Count = 0
    totals: Count = 0
    first_totals: Count = 0
    mixed: Count = 0
    first_mixed: Count = 0
    unlike: Count = 0
    first_unlike: Count = 0

    def found(self) -> FoundCells:
        """What the driver does not tell."""
        kinds = (styles.MOMENTS, styles.ONLY_DATES, styles.ONLY_CLOCKS, styles.ELAPSED_TIMES)
        moments, dates, clocks, elapsed = (self._of(kind.has) for kind in kinds)
        worded, percent = self._of(styles.shows_words), self._of(styles.shows_percent)
        return {
            "uncalculated": self.uncalculated,
            "escaped": self.escaped,
            "late": sum(of.late for of in moments),
            "named": sum(of.named for of in moments),
            "errors": self.errors,
            "first_errors": self.first_error,
            "timed": sum(of.timed for of in dates),
            "first_timed": _first(of.first_timed for of in dates),
            "dated": sum(of.dated for of in clocks),
            "first_dated": _first(of.first_dated for of in clocks),
            "elapsed": sum(of.numbers for of in elapsed),
            "first_elapsed": _first(of.first_number for of in elapsed),
            "worded": sum(of.numbers for of in worded),
            "first_worded": _first(of.first_number for of in worded),
            "percent": sum(of.numbers for of in percent),
            "first_percent": _first(of.first_number for of in percent),
            "padded": sum(of.numbers for of, code in self._each() if of.fewest_digits in styles.padded_by(code)),
            "rounded": self.rounded,
            "first_rounded": self.first_rounded,
            "truths": self.truths,
            "merged": self.merged,
            "first_merged": self.first_merged,
            **{name: getattr(self, name) for name in ROWS_FOUND},
        }

    def is_clear(self) -> bool:
        """Whether the driver takes no text for a date, and knows all built-in formats."""
        has_texts = any(of.texts for of in self._of(styles.MOMENTS.has))
        return self.ok and not self.messages and not has_texts and not any(map(styles.is_east_asian, self.built_in))

    def _of(self, is_of_kind: Callable[[str | int], bool]) -> list[Moments]:
        """What there is of the formats of a kind."""
        return [of for of, code in self._each() if is_of_kind(code)]

    def _each(self) -> Iterator[tuple[Moments, str | int]]:
        """What there is of each format."""
        codes: list[str | int] = [*self.codes, *self.built_in]
        return zip(self.moments, codes, strict=False)


def _first(rows: Iterable[int]) -> int:
    return min(filter(None, rows), default=0)


class Sought(Answer, frozen=True):
    """Whether a part of the workbook holds one of some texts or covered values, or rows beyond its driver's reach."""

    holds: bool = False
    stops: bool = False


async def prepare_workbook(place: Workplace, file: str, extension: str, reading: Reading) -> tuple[str, FoundCells]:
    """Examine the workbook `file`; return the file for its driver, and what was found.

    Raises:
        SessionOver: it took too long, as it would in any other run.
        Rejection: it exceeded other limits.
    """
    plain = f"{PLAIN_FILE}{extension}"
    if not reading.doubts_dates:
        return await _in_plain_texts(place, file, plain, reading)
    found = await in_open_run(place, reading, lambda session: _examine(session, file, plain))
    return found or await _by_program(place, styles.__name__, file, plain)


async def _in_plain_texts(place: Workplace, file: str, plain: str, reading: Reading) -> tuple[str, FoundCells]:
    """The ODS workbook `file`, or a copy with all of its texts and times as the driver reads them, if need be."""
    sought = await in_open_run(
        place, reading, lambda session: session.ask(Sought, "seek", file, opendocument.MEMBER, *opendocument.SOUGHT)
    )
    is_odd = sought is not None and sought.ok and sought.holds
    if sought is not None and sought.ok and not sought.holds and not sought.stops:
        return file, {}
    return await _by_program(place, opendocument.__name__, file, plain, *([opendocument.IS_ODD] if is_odd else []))


async def _by_program(place: Workplace, module: str, file: str, plain: str, *known: str) -> tuple[str, FoundCells]:
    """The same by one of our programs."""
    told = await place.call(module, FoundCells, file, plain, *known)
    return plain if await place.has(plain) else file, told


async def _examine(session: Session, file: str, plain: str) -> tuple[str, FoundCells] | None:
    """The same by the run that will hold the workbook; None if `jailed.styles` must look."""
    examined = await session.ask(Examined, "examine", file)
    name = await _with_plain_formats(session, file, plain, examined)
    return None if name is None else (name, examined.found())


async def _with_plain_formats(session: Session, file: str, plain: str, examined: Examined) -> str | None:
    """The workbook, or a copy whose formats the driver understands; None if the run cannot tell or make it."""
    if not examined.is_clear():
        return None
    codes = {code: styles.understood(code) for code in examined.codes}
    doubtful = [text for pair in codes.items() if pair[0] != pair[1] for text in pair]
    if not doubtful:
        return file
    copied = await session.ask(Answer, "restyle", file, plain, *doubtful)
    return plain if copied.ok else None
