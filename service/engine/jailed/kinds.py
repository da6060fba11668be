"""Tells what the cells of a table look like, and the type of a column that can hold all of them. Runs in the sandbox.

`text_kinds.c` in the fork server has the same rules.
"""

import re
from datetime import date
from decimal import Context, Decimal, InvalidOperation
from enum import IntFlag, auto
from math import isinf

NUMBER = re.compile(r"\s*[-+]?(?:\d+(?:[.,]\d*)?|[.,]\d+)(?:[eE][-+]?\d+)?\s*$", re.ASCII)


_WORDS = "- -- --- \u2013 \u2014 \u2212 * . .. ... ? n/a na n.a. n.d. nd nan null none nil \\n missing unknown k.a."
_ERRORS = "#n/a #div/0! #value! #ref! #num! #name? #null!"
STAND_INS = frozenset((*_WORDS.split(), *_ERRORS.split(), "n. a.", "no data"))
"""What cells say, in small letters, that have no value, in columns of numbers as well."""
_GREAT_EXPONENT = re.compile(r"[eE](?:\+\d{3}|\d{4})", re.ASCII)
NO_DIGITS = re.compile(r"[eE].*|[-.,]")
EXACT_DIGITS = 17
"""How many digits of a decimal its nearest floating-point number shows."""


class Kind(IntFlag):
    """What the cells of a column look like. A column has the kinds of all its cells, and its type follows from them."""

    NONE = 0
    TEXT = auto()
    WHOLE = auto()
    LONG = auto()
    """A whole number that a floating-point number may not represent exactly."""
    POINT = auto()
    """A decimal with a point or an exponent."""
    COMMA = auto()
    GROUPED = auto()
    """A number with a comma before its last three digits, which may belong to a decimal or separate thousands."""
    POINTED = auto()
    """The same with a point."""
    DAY = auto()
    MOMENT = auto()
    POINTS = auto()
    """A text with points that separate thousands, since a decimal comma follows: 1.234,5."""
    COMMAS = auto()
    """The same the other way round: 1,234.5."""
    CODE = auto()
    """Digits around an E, as in 1E5 and 12e3: a number beside decimals, but otherwise rather a code."""


_KINDS = (
    (Kind.WHOLE, re.compile(r"-?(?:0|[1-9]\d{0,14})$", re.ASCII)),
    (Kind.LONG, re.compile(r"-?[1-9]\d{15,17}$", re.ASCII)),
    (Kind.POINTED, re.compile(r"-?[1-9]\d{0,2}\.\d{3}$", re.ASCII)),
    (
        Kind.POINT,
        re.compile(r"-?(?:(?:0|[1-9]\d*)?\.\d+(?:[eE][-+]?\d+)?|(?:0|[1-9]\d*)[eE][-+]\d+)$", re.ASCII),
    ),
    (Kind.CODE, re.compile(r"-?(?:0|[1-9]\d*)[eE]\d+$", re.ASCII)),
    (Kind.GROUPED, re.compile(r"-?[1-9]\d{0,2},\d{3}$", re.ASCII)),
    (Kind.COMMA, re.compile(r"-?(?:0|[1-9]\d*)?,\d+(?:[eE][-+]?\d+)?$", re.ASCII)),
    (Kind.DAY, re.compile(r"\d{4}[-/]\d\d[-/]\d\d$", re.ASCII)),
    (
        Kind.MOMENT,
        re.compile(
            r"\d{4}[-/]\d\d[-/]\d\d[T ](?:[01]\d|2[0-3]):[0-5]\d(?::[0-5]\d(?:\.\d+)?)?"
            r"(?:Z|[-+](?:0\d|1[0-4])(?::?(?:00|15|30|45))?)?$",
            re.ASCII,
        ),
    ),
)
_SEPARATED = re.compile(r"\s*[-+]?[1-9]\d{0,2}(?:(?P<points>(?:\.\d{3})+),|(?:,\d{3})+\.)\d+\s*$", re.ASCII)
_DATES = Kind.DAY | Kind.MOMENT
_WITH_EXPONENT = Kind.POINT | Kind.COMMA | Kind.CODE
_DECIMALS = Kind.POINT | Kind.POINTED | Kind.COMMA | Kind.GROUPED
_TYPES = (
    ("Date", Kind.DAY),
    ("DateTime", _DATES),
    ("Integer64", Kind.WHOLE | Kind.LONG),
    ("Real", Kind.WHOLE | Kind.CODE | _DECIMALS),
)
"""Each type with the kinds that it can represent, the narrowest first."""
DECIMAL_COMMA = ";"
"""The delimiter of programs whose decimals have a comma."""


def kind_of_cell(cell: str) -> Kind:
    """What a filled `cell` looks like."""
    kind = next((kind for kind, pattern in _KINDS if pattern.match(cell)), Kind.TEXT | separators_in(cell))
    is_none = kind & _DATES and not is_in_calendar(cell)
    return Kind.TEXT if is_none or (kind & _WITH_EXPONENT and _is_unread(cell)) else kind


def stands_in(cell: str) -> bool:
    """Whether a text says that there is no value."""
    return cell.strip(" \t\r\n").lower() in STAND_INS


def _is_unread(number: str) -> bool:
    """Whether the driver finds no value in a number: if it is infinite and its exponent has four characters or more."""
    return _GREAT_EXPONENT.search(number) is not None and isinf(float(number.replace(",", ".")))


def separators_in(text: str) -> Kind:
    """What a text shows to separate thousands, wherever it is."""
    found = _SEPARATED.match(text)
    return Kind.NONE if not found else Kind.POINTS if found["points"] else Kind.COMMAS


def loses_digits(number: str, kind: Kind) -> bool:
    """Whether a cell of `kind` is a decimal with digits that the floating-point number it becomes does not have.

    Programs that write more digits than they know write those of the floating-point number, or zeros.
    """
    if len(number) <= EXACT_DIGITS or not kind & (Kind.POINT | Kind.COMMA | Kind.CODE):
        return False
    significant = len(NO_DIGITS.sub("", number).strip("0"))
    if significant <= EXACT_DIGITS:
        return False
    try:
        exact = Decimal(number.replace(",", "."))
        return Context(prec=significant).create_decimal(float(exact)) != exact
    except InvalidOperation:  # of an exponent that no number has
        return False


def type_of(kinds: Kind, delimiter: str, others: Kind = Kind.NONE) -> str:
    """The type of a column with cells of `kinds`; text if a type would change what some of them say.

    A comma before three digits is a decimal's if other cells, or the delimiter, show that decimals have commas, and
    none of `others`, the kinds of all cells of the table, shows that they have points. A point before three digits is a
    decimal's unless these show that decimals have commas.
    """
    is_doubtful = is_ambiguous(kinds, delimiter, others) or (is_pointed(kinds) and has_commas(others, delimiter))
    is_doubtful = is_doubtful or (Kind.CODE in kinds and not kinds & _DECIMALS)
    if not kinds or is_doubtful:
        return "String"
    return next((name for name, held in _TYPES if kinds in held), "String")


def has_commas(kinds: Kind, delimiter: str, shown_by: Kind = Kind.COMMA) -> bool:
    """Whether cells of `kinds` in a table show that its decimals have commas: those of `shown_by` beside semicolons."""
    return Kind.POINTS in kinds or (delimiter == DECIMAL_COMMA and bool(kinds & shown_by))


def is_ambiguous(kinds: Kind, delimiter: str, others: Kind) -> bool:
    """Whether commas in the cells of a column may be those of decimals or separate thousands, as in `others`."""
    is_shown = Kind.COMMA in kinds or (delimiter == DECIMAL_COMMA and Kind.COMMAS not in others)
    return Kind.GROUPED in kinds and not is_shown


def is_pointed(kinds: Kind) -> bool:
    """Whether all points in the cells of a column may separate thousands."""
    return Kind.POINTED in kinds and Kind.POINT not in kinds


def is_in_calendar(text: str) -> bool:
    """Whether the date at the beginning of `text`, with two characters between its numbers, exists."""
    try:
        date(int(text[:4]), int(text[5:7]), int(text[8:10]))
    except ValueError:
        return False
    return True
