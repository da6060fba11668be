"""Tallies the values of one property over all features: the resulting column, and what is lost.

Values arrive as columns, many at a time. Regular values are counted by functions that run outside the Python
interpreter.
"""

import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import chain
from operator import attrgetter
from types import NoneType
from typing import Any, ClassVar

from service.formats.dbf_names import VALUE_BYTES
from service.formats.facts import FieldType
from service.geojson.datetimes import Fidelity, read_moment
from service.geojson.features import INT64_MAX
from service.geojson.findings import FieldFindings
from service.geojson.jsontext import LONG_NEGATIVE, holds_clamped, holds_long_negative, holds_nul, json_text

INT64_MIN = -INT64_MAX - 1
INTEGER_WIDTH = 18
LARGEST_OF_32_BITS = (1 << 31) - 1
EXACT_IN_REAL = 1 << 53
SMALLEST_LONG = 1e15
"""From here on, whole numbers may be others with 15 digits."""
LARGEST_IN_DBF, LEAST_IN_DBF = 1e24, -1e23
LARGEST_OF_15_DIGITS = 1.797693134862315e308
"""Larger ones, rounded to 15 digits, are infinite."""
SMALLEST_REAL = 5e-7
"""Below this, fewer than nine significant digits fit into the 15 decimals of a .dbf number."""
MOMENTS_CHARACTERS = 1 << 17
"""How many recent dates and times are cached: tables repeat the same days again and again."""

CONTROL = re.compile(r"[\x01-\x08\x0b\x0c\x0e-\x1f\ufffe\uffff]")
LIKE_JSON = re.compile(
    r"""\{\}|\{["'/ \t\n\r].*\}|\[\]|\[(?:["'/ \t\n\r\[{0-9-]|tru|fal|nul|nan|inf).*\]""", re.DOTALL | re.IGNORECASE
)
"""Texts that begin and end like objects or arrays; identifiers in braces and words in brackets do not."""

_LENGTHS = ("longest_bytes", "over_dbf_limit")
_OF_MOMENTS = (*_LENGTHS, "reworded_moments", "rounded_moments", "rounded_up")
_TOLD_OF_TYPE: Mapping[FieldType, tuple[str, ...]] = {
    FieldType.TEXT: _LENGTHS,
    FieldType.INTEGER: ("beyond_32_bits",),
    FieldType.REAL: (
        "integers_as_reals",
        "infinite",
        "nans",
        "beyond_15_digits",
        "near_infinite",
        "first_near_infinite",
        "beyond_dbf",
        "first_beyond_dbf",
    ),
    FieldType.DATE: (*_OF_MOMENTS, "before_1000"),
    FieldType.DATETIME: _OF_MOMENTS,
    FieldType.TIME: _OF_MOMENTS,
}
"""What is told of a column of a type, in addition to `_TOLD_OF_ALL`."""
_TOLD_OF_ALL = (
    "nested",
    "clamped_integers",
    "empty",
    "trailing_blanks",
    "cut_at_nul",
    "leading_blanks",
    "carriage_returns",
    "control",
    "like_json",
)
_TOLD = {kind: (*_TOLD_OF_ALL, *_TOLD_OF_TYPE.get(kind, ())) for kind in FieldType}
_COUNTS = {kind: attrgetter(*names) for kind, names in _TOLD.items()}
"""For each type: what is told of a column of it, and what returns that."""
_NUMBERS = (FieldType.BOOLEAN, FieldType.INTEGER, FieldType.REAL)


def joined_type(one: FieldType | None, other: FieldType) -> FieldType:
    """The type of a column that holds values of both types; None stands for a column with only nulls."""
    if one is None or one is other:
        return other
    if one in _NUMBERS and other in _NUMBERS:
        return max(one, other, key=_NUMBERS.index)
    if {one, other} == {FieldType.DATE, FieldType.DATETIME}:
        return FieldType.DATETIME
    return FieldType.TEXT


class FieldTally:
    """The tally of one property."""

    # Attributes of the class until they are counted: every column of a document has one of these tallies.
    type: FieldType | None = None
    values = 0
    nulls = 0
    longest_bytes = 0
    over_dbf_limit = 0
    nested = 0
    empty = 0
    trailing_blanks = 0
    cut_at_nul = 0
    leading_blanks = 0
    carriage_returns = 0
    control = 0
    like_json = 0
    before_1000 = 0
    inexact_integers = 0
    integers_as_reals = 0
    integers_over_width = 0
    clamped_integers = 0
    wide_integers = 0
    beyond_32_bits = 0
    long_negatives = 0
    tiny = 0
    beyond_dbf = 0
    beyond_15_digits = 0
    near_infinite = 0
    first_beyond_dbf = 0
    first_near_infinite = 0
    infinite = 0
    nans = 0
    booleans = 0
    integers = 0
    reals = 0
    reworded_moments = 0
    rounded_moments = 0
    rounded_up = 0
    kinds: frozenset[Any] = frozenset()
    """The types of what its lists hold."""

    def __init__(self) -> None:
        self._moments: dict[str, Fidelity] = {}
        self._moments_characters = 0

    def add(self, column: Sequence[Any]) -> None:
        """Count decoded JSON values."""
        self.values += len(column)
        types = set(map(type, column))
        for kind in types:
            values = column if len(types) == 1 else [value for value in column if type(value) is kind]
            self._ADDERS[kind](self, values)

    @property
    def is_to_locate(self) -> bool:
        """Whether it has counted numbers whose first feature it does not know."""
        return self.beyond_dbf > 0 and not (
            self.first_beyond_dbf and (self.first_near_infinite or not self.near_infinite)
        )

    def locate(self, numbered: Iterable[tuple[int, Any]]) -> None:
        """Find the first features with such numbers among values with the numbers of their features."""
        reals = [(number, value) for number, value in numbered if type(value) is float and math.isfinite(value)]
        self.first_beyond_dbf = self.first_beyond_dbf or _first(_is_beyond_dbf, reals)
        self.first_near_infinite = self.first_near_infinite or _first(_is_near_infinite, reals)

    def merge(self, other: "FieldTally") -> None:
        """Add the counts of another tally, for a column of this tally's type."""
        for counter in _COUNTERS:
            setattr(self, counter, getattr(self, counter) + getattr(other, counter))
        self.longest_bytes = max(self.longest_bytes, other.longest_bytes)

    def findings(self, name: str) -> FieldFindings:
        """The findings, for a column of the type that all values together require."""
        column = self.type or FieldType.TEXT
        inexact = {
            FieldType.INTEGER: self.inexact_integers if self.integers_over_width else 0,
            FieldType.REAL: self.inexact_integers + self.tiny,
        }
        rounded = {
            FieldType.INTEGER: self.wide_integers if self.long_negatives else 0,
            FieldType.TEXT: self.long_negatives,
        }
        told = dict(zip(_TOLD[column], _COUNTS[column](self), strict=True))
        told["rounded_integers"] = rounded.get(column, 0)
        if column is FieldType.TEXT:
            told |= {"reals_as_texts": self.reals, "others_as_texts": self.booleans + self.integers}
            told["mixes_lists"] = self._mixes_lists
        elif column in {FieldType.INTEGER, FieldType.REAL}:
            told["booleans_as_numbers"] = self.booleans
        filled = self.values - self.nulls
        return FieldFindings(name, column, filled=filled, inexact_in_dbf=inexact.get(column, 0), **told)

    @property
    def _mixes_lists(self) -> bool:
        """Whether the driver, which makes a column of one type for lists, would change some of its values."""
        is_beside_others = bool(self.kinds) and self.nested < self.values - self.nulls
        return is_beside_others or (len(self.kinds) > 1 and not self.kinds <= {int, float})

    def _add_nulls(self, values: Sequence[None]) -> None:
        self.nulls += len(values)

    def _add_booleans(self, values: Sequence[bool]) -> None:
        self.type = joined_type(self.type, FieldType.BOOLEAN)
        self.booleans += len(values)

    def _add_integers(self, values: Sequence[int]) -> None:
        self.type = joined_type(self.type, FieldType.INTEGER)
        self.integers += len(values)
        largest = max(map(abs, values))
        if largest > LARGEST_OF_32_BITS:
            self.beyond_32_bits += sum(not ~LARGEST_OF_32_BITS <= value <= LARGEST_OF_32_BITS for value in values)
        if largest >= SMALLEST_LONG:
            self.beyond_15_digits += sum(map(_is_beyond_15_digits, values))
        if largest <= EXACT_IN_REAL:
            return
        inexact = [value for value in values if int(float(value)) != value]
        self.inexact_integers += len(inexact)
        self.integers_as_reals += sum(INT64_MIN <= value <= INT64_MAX for value in inexact)
        self.integers_over_width += sum(len(str(value)) > INTEGER_WIDTH for value in values)
        self.clamped_integers += sum(not INT64_MIN <= value <= INT64_MAX for value in values)
        self.wide_integers += sum(abs(value) > EXACT_IN_REAL for value in values)
        self.long_negatives += sum(value <= LONG_NEGATIVE for value in values)

    def _add_reals(self, values: Sequence[float]) -> None:
        self.type = joined_type(self.type, FieldType.REAL)
        self.reals += len(values)
        sizes = list(map(abs, filter(None, values)))
        if sizes and not (min(sizes) >= SMALLEST_REAL and max(sizes) < SMALLEST_LONG and sum(sizes) < math.inf):
            self.infinite += sum(map(math.isinf, sizes))
            self.nans += sum(map(math.isnan, sizes))
            self.tiny += sum(size < SMALLEST_REAL for size in sizes)
            finite = list(filter(math.isfinite, values))
            self.beyond_dbf += sum(map(_is_beyond_dbf, finite))
            self.beyond_15_digits += sum(map(_is_beyond_15_digits, finite))
            self.near_infinite += sum(map(_is_near_infinite, finite))

    def _add_nested(self, values: Sequence[Any]) -> None:
        self.type = FieldType.TEXT
        self.nested += len(values)
        self.kinds |= set(map(type, chain.from_iterable(value for value in values if type(value) is list)))
        texts = list(map(json_text, values))
        self.clamped_integers += sum(map(holds_clamped, values, texts))
        self.long_negatives += sum(map(holds_long_negative, values, texts))
        self.cut_at_nul += sum(map(holds_nul, values))
        self._add_lengths(_sizes(texts))

    def _add_texts(self, values: Sequence[str]) -> None:
        together = "\0".join(values)
        if together.count("\0") >= len(values):
            values = self._cut_at_nul(values)
            together = "\0".join(values)
        if self.type is not FieldType.TEXT:
            self._look_for_moments(values)
            self.before_1000 += together.count("\x000") + together.startswith("0")
        self.empty += values.count("")
        self.trailing_blanks += together.count(" \0") + together.endswith(" ")
        self.leading_blanks += together.count("\0 ") + together.startswith(" ")
        if "{" in together or "[" in together:
            self.like_json += sum(map(_is_like_json, values))
        if not together.replace("\0", " ").isprintable():
            self._add_control(values)
        if together.isascii():
            self._add_lengths(list(map(len, values)))
        else:
            self._add_lengths(_sizes(values))

    def _add_control(self, values: Sequence[str]) -> None:
        odd = [value for value in values if not value.isprintable()]
        self.carriage_returns += sum("\r" in value for value in odd)
        self.control += sum(CONTROL.search(value) is not None for value in odd)

    def _cut_at_nul(self, values: Sequence[str]) -> list[str]:
        """The texts as the converter reads them: each ends at its first NUL."""
        self.cut_at_nul += sum("\0" in value for value in values)
        return [value.partition("\0")[0] for value in values]

    def _look_for_moments(self, values: Sequence[str]) -> None:
        if self._moments_characters > MOMENTS_CHARACTERS:
            self._forget_moments()
        ways = self._moments
        for text in set(values).difference(ways):
            column, ways[text] = read_moment(text)
            self._moments_characters += len(text)
            self.type = joined_type(self.type, column)
            if self.type is FieldType.TEXT:
                self._forget_moments()
                return
        kept = list(map(ways.__getitem__, values))
        self.reworded_moments += kept.count(Fidelity.BEGINNING)
        rounded_up = kept.count(Fidelity.ROUNDED_UP)
        self.rounded_moments += kept.count(Fidelity.ROUNDED) + rounded_up
        self.rounded_up += rounded_up

    def _forget_moments(self) -> None:
        self._moments.clear()
        self._moments_characters = 0

    def _add_lengths(self, lengths: list[int]) -> None:
        longest = max(lengths)
        self.longest_bytes = max(self.longest_bytes, longest)
        if longest > VALUE_BYTES:
            self.over_dbf_limit += sum(length > VALUE_BYTES for length in lengths)

    _ADDERS: ClassVar[Mapping[Any, Callable[["FieldTally", Sequence[Any]], None]]] = {
        NoneType: _add_nulls,
        bool: _add_booleans,
        int: _add_integers,
        float: _add_reals,
        str: _add_texts,
        list: _add_nested,
        dict: _add_nested,
    }


_KINDS = frozenset({"booleans", "integers", "reals"})
"""Not those of ids, which are written as they are where a feature has an id."""
_COUNTERS = tuple(
    name
    for name, start in vars(FieldTally).items()
    if start == 0 and name not in {"longest_bytes", *_KINDS} and not name.startswith("first_")
)


def _is_beyond_dbf(value: float) -> bool:
    return not LEAST_IN_DBF <= value <= LARGEST_IN_DBF


def _is_beyond_15_digits(value: float) -> bool:
    return SMALLEST_LONG <= abs(value) <= INT64_MAX + 1 and float(f"{value:.15g}") != float(value)


def _is_near_infinite(value: float) -> bool:
    return abs(value) > LARGEST_OF_15_DIGITS


def _first(is_of_kind: Callable[[float], bool], numbered: Iterable[tuple[int, float]]) -> int:
    return next((number for number, value in numbered if is_of_kind(value)), 0)


def _is_like_json(text: str) -> bool:
    return LIKE_JSON.fullmatch(text) is not None


def _sizes(texts: Sequence[str]) -> list[int]:
    """The size of each text in bytes of UTF-8; an unpaired surrogate counts like its replacement."""
    try:
        return list(map(len, map(str.encode, texts)))
    except UnicodeEncodeError:
        return [len(text.encode("utf-8", "surrogatepass")) for text in texts]
