"""Counts the values of each column that some target changes. Runs in the sandbox."""

import re
import sqlite3
from collections.abc import Iterator, Mapping, Sequence

from service.engine.jailed.gpkg import FID, quoted

EXPRESSIONS_A_QUERY = 150
"""SQLite compares each sum of a query with all others before it reads a row."""
NUMBERS = {"integer", "real"}
INFINITE = "abs({0}) > 1.7976931348623157e308"
SMALLEST = "5e-7"
BEFORE_1000 = "{0} < '1000-'"
"""Not '1000': SQLite would compare dates with the number."""
BEFORE_MARCH_1900 = "{0} < '1900-03-01'"
NO_DAY = "substr({0}, 9, 2) > '28' AND date(substr({0}, 1, 10), '+0 days') IS NOT substr({0}, 1, 10)"
BARE = "ltrim({0}, char(9, 10, 13, 32))"
"""A text without the blanks before it, which some programs ignore."""
LINE_SPACE = "'[' || char(9, 10, 13) || ']'"
SPACE = "'[ ' || char(9, 10, 13) || ']'"
SPACE_AROUND = f"{{0}} GLOB {SPACE} || '*' OR {{0}} GLOB '*' || {SPACE}"
IN_OBJECT = """instr('}}"''/ ' || char(9, 10, 13), substr({0}, 2, 1))"""
IN_ARRAY = (
    """instr(']"''/ [{{-0123456789' || char(9, 10, 13), substr({0}, 2, 1))"""
    " OR lower(substr({0}, 2, 3)) IN ('tru', 'fal', 'nul', 'nan', 'inf')"
)
"""What follows the first character of an object or an array of JSON, unlike identifiers and words in brackets."""
ESCAPE_MARK = "_x"
LIKE_ESCAPES = f"{{0}} GLOB '*{ESCAPE_MARK}{'[0-9A-Fa-f]' * 4}_*'"
"""A text with what programs that read workbooks take for one character, as A for _x0041_."""
CUT = "[0-9]." + "[0-9]" * 14 + "e+[0-9][0-9]"
"""A number of more than 15 digits as the drivers of workbooks write it if a text is below it."""
COUNTED: Mapping[str, Mapping[str, str]] = {
    "text": {
        "empty": "{0} = ''",
        "trailing_blanks": "{0} GLOB '* '",
        "leading_blanks": "{0} GLOB ' *'",
        "space_around": SPACE_AROUND,
        "uneven_space": f"{{0}} GLOB '*' || {LINE_SPACE} || '*' OR {{0}} GLOB '*  *' OR {SPACE_AROUND}",
        "carriage_returns": "instr({0}, char(13)) > 0",
        "control": "{0} GLOB '*[' || char(1) || '-' || char(8, 11, 12, 14) || '-' || char(31, 65534, 65535) || ']*'",
        "no_layer_names": "{0} GLOB '*[^]^-{{ !#-)+-.0-9@-[}}~]*'",
        "like_json": f"{{0}} GLOB '{{{{*}}}}' AND {IN_OBJECT} OR {{0}} GLOB '[[]*]' AND ({IN_ARRAY})",
        "like_markup": f"{BARE} GLOB '<*'",
        "like_formulas": f"{BARE} GLOB 'of:=*'",
        "like_escapes": LIKE_ESCAPES,
        "exponents": f"ltrim({{0}}, '-') GLOB '{CUT}' OR ltrim({{0}}, '-') GLOB '{CUT}[0-9]'",
        "like_numbers": (
            "CASE WHEN {0} GLOB '[- +.0-9]*' AND {0} NOT GLOB '*[^- +.0-9eEdD]*' THEN is_other_as_number({0} || '') END"
        ),
    },
    "integer": {
        "at_32_bits": "{0} IN (-2147483648, 2147483647)",
        "like_unset": "{0} = -21121",
        "beyond_32_bits": "{0} NOT BETWEEN -2147483648 AND 2147483647",
        "beyond_53_bits": "{0} NOT BETWEEN -9007199254740992 AND 9007199254740992",
        "inexact_in_dbf": "{0} NOT BETWEEN -99999999999999999 AND 999999999999999999",
    },
    "real": {
        "infinite": INFINITE,
        "tiny": f"{{0}} <> 0 AND abs({{0}}) < {SMALLEST}",
        "beyond_15_digits": (
            "abs({0}) >= 1e15 AND abs({0}) <= 9223372036854775808.0 AND CAST(printf('%.15g', {0}) AS REAL) <> {0}"
        ),
        "near_infinite": f"abs({{0}}) > 1.797693134862315e308 AND NOT {INFINITE}",
        "inexact_in_dbf": f"{{0}} <> 0 AND abs({{0}}) < {SMALLEST}",
        "beyond_dbf": f"({{0}} > 1e24 OR {{0}} < -1e23) AND NOT {INFINITE}",
    },
    "date": {"no_day": NO_DAY, "before_1000": BEFORE_1000, "before_march_1900": BEFORE_MARCH_1900},
    "datetime": {
        "no_day": NO_DAY,
        "leap_seconds": "substr({0}, 17, 3) = ':60'",
        "until_1970": "{0} <= '1970-01-01T00:00:00.999Z'",
        "before_march_1900": BEFORE_MARCH_1900,
        "fractions": "{0} GLOB '*.[0-9]*' AND NOT ({0} GLOB '*.000' OR {0} GLOB '*.000[Z+-]*')",
        "offsets": "{0} GLOB '*[+-][0-9][0-9]:[0-9][0-9]'",
        "zoned": "{0} GLOB '*Z' OR {0} GLOB '*[+-][0-9][0-9]:[0-9][0-9]'",
    },
}
"""What is counted in a column, by the type of its values; each entry is a condition on one value."""
LIKE_NUMBER = re.compile(r" *(?:[-+]?(?:\d+\.?\d*|\.\d+)(?:[eEdD](?:[-+]\d*|\d+))?|[-+]\.?|\.) *", re.ASCII)
"""What a program that infers types takes for a number; even a sign is one to some."""
AS_WRITTEN = re.compile(r"(?!-0$)-?(?:(?:0|[1-9]\d{0,17})|(?=-?.{2,16}$)(?:0|[1-9]\d*)\.\d*[1-9])", re.ASCII)
"""Numbers that it writes in the same way; others have signs, zeros or exponents that it omits, or too many digits."""
LOCATED = frozenset(
    {"beyond_15_digits", "exponents", "near_infinite", "beyond_dbf", "leap_seconds", "like_escapes", "no_day"}
)
"""What warnings name the first row of."""


def value_counts(
    connection: sqlite3.Connection, table: str, kinds: Mapping[str, str]
) -> dict[str, dict[str, float | None]]:
    """For each column of `table`, by its type in `kinds`: how many values are filled and meet each condition.

    Also the first row of those that are `LOCATED`, and of numbers the sum of absolute values, None if it is infinite.
    """
    connection.create_function("is_other_as_number", 1, is_other_as_number, deterministic=True)
    found: dict[str, dict[str, float | None]] = {
        name: dict.fromkeys(("filled", *counts_of(kind)), 0) for name, kind in kinds.items()
    }
    _count(connection, table, [(name, "filled", f"count({quoted(name)})") for name in kinds], found)
    _count(connection, table, list(_wanted({name: kinds[name] for name in kinds if found[name]["filled"]})), found)
    return found


def is_other_as_number(text: str) -> bool:
    """Whether a program that infers types takes `text` for a number and would write that differently."""
    return LIKE_NUMBER.fullmatch(text) is not None and AS_WRITTEN.fullmatch(text) is None


def counts_of(kind: str) -> Iterator[str]:
    """The names of what is counted in a column of a type, in addition to the values that it is `filled` with."""
    yield from ["total"] if kind in NUMBERS else []
    for what in COUNTED.get(kind, {}):
        yield from [what, f"first_{what}"] if what in LOCATED else [what]


def _wanted(kinds: Mapping[str, str]) -> Iterator[tuple[str, str, str]]:
    for name, kind in kinds.items():
        if kind in NUMBERS:
            yield name, "total", f"total(abs({quoted(name)} + 0.0))"
        for what, condition in COUNTED.get(kind, {}).items():
            is_met = condition.format(quoted(name))
            yield name, what, f"sum({is_met})"
            if what in LOCATED:
                yield name, f"first_{what}", f"min(CASE WHEN {is_met} THEN {FID} END)"


def _finite(count: float | None) -> float | None:
    value = count or 0
    return value if abs(value) < float("inf") else None


def _count(
    connection: sqlite3.Connection,
    table: str,
    wanted: Sequence[tuple[str, str, str]],
    found: Mapping[str, dict[str, float | None]],
) -> None:
    """Put what each expression finds into `found`, by the column and the name beside it."""
    for start in range(0, len(wanted), EXPRESSIONS_A_QUERY):
        part = wanted[start : start + EXPRESSIONS_A_QUERY]
        listed = ", ".join(expression for _, _, expression in part)
        row = connection.execute(f"SELECT {listed} FROM {quoted(table)}").fetchone()  # noqa: S608 -- quoted
        for (name, what, _), count in zip(part, row, strict=True):
            found[name][what] = _finite(count)
