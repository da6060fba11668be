"""Values that a target changes or leaves out: one row per kind, reported in one sentence with columns and counts."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from enum import StrEnum
from operator import attrgetter
from typing import TypeAlias

import msgspec

from service.formats.facts import MOMENTS, Field, FieldType, FormerType, Layer
from service.formats.format import Format, reading_of, writing_of
from service.formats.geometry import Family
from service.formats.names import first_of, values_of

TypedColumns: TypeAlias = Mapping[Family, Mapping[str, frozenset[FieldType]]]

TYPE_LOSSES = frozenset({"lists", "clock_times", "durations", "unsigned", "decimals"})
"""The kinds of values that targets with types of columns cannot hold as such, as keys of `VALUE_LOSSES`."""
KNOWN_BY_SCAN = TYPE_LOSSES | frozenset(
    {
        "before_1000",
        "binary",
        "beyond_15_digits",
        "binary_texts",
        "booleans",
        "carriage_returns",
        "control",
        "dates",
        "empty_texts",
        "infinite",
        "like_json",
        "leading_blanks",
        "long_integers",
        "moments",
        "near_infinite",
        "nulls",
        "trailing_blanks",
    }
)
"""What a scan of GeoJSON finds; the other kinds must be counted in a work file."""
LAYER = "Layer"
"""The column from which the driver of drawings takes the names of their layers."""
NULLS_BECOME = frozenset({FieldType.INTEGER, FieldType.REAL, FieldType.BOOLEAN, FieldType.TEXT})
"""The types for which a zero stands in for a missing value."""


class Aspect(StrEnum):
    """An aspect of a dataset that an output may be unable to hold, in the order of the documentation."""

    LAYERS = "Layers and features"
    GEOMETRIES = "Geometries"
    COORDINATES = "Coordinate systems"
    COLUMNS = "Columns"
    NUMBERS = "Types and numbers"
    TIMES = "Dates and times"
    TEXTS = "Text values"


class Loss(msgspec.Struct, frozen=True):
    """A kind of value, and the sentence about what becomes of the values of a column that are of it."""

    what: str
    """What cannot be held, for the documentation."""
    sentence: str
    count: str | Callable[[Field, Layer], int] = ""
    """How many values of a column are of the kind: a member of `Field`; "" if it has the name of the kind."""
    types: frozenset[FieldType] = frozenset()
    """The types of columns of which all values are of the kind, if it is one of types."""
    former: FormerType | None = None
    """The former type of such columns."""
    spared: frozenset[FieldType] = frozenset()
    """The types of which typed columns of the target hold all values."""
    aspect: Aspect = Aspect.NUMBERS
    """What such values belong to, in the documentation."""


VALUE_LOSSES: Mapping[str, Loss] = {
    "lists": Loss(
        "lists, structures and maps",
        "{target} is written without lists, structures and maps; {values} became JSON texts.",
        count="nested",
    ),
    "clock_times": Loss(
        "times of day",
        "{target} is written without times of day as a type; {values} became texts, such as 01:02:03.",
        former=FormerType.TIME,
        aspect=Aspect.TIMES,
    ),
    "durations": Loss(
        "durations",
        "{target} is written without durations as a type; {values} became texts, such as PT1.5S.",
        former=FormerType.DURATION,
        aspect=Aspect.TIMES,
    ),
    "unsigned": Loss(
        "unsigned 64-bit integers",
        "{target} is written without integers beyond 9,223,372,036,854,775,807; {values}, in columns with such "
        "numbers, became texts.",
        former=FormerType.UNSIGNED,
    ),
    "decimals": Loss(
        "exact decimals as a type",
        "{target} is written without decimal numbers as a type; {values} became floating-point numbers.",
        former=FormerType.DECIMAL,
    ),
    "booleans": Loss(
        "Booleans as a type",
        "{target} is written without true and false as a type; {values} became 1 or 0.",
        types=frozenset({FieldType.BOOLEAN}),
    ),
    "binary": Loss(
        "binary values",
        "Binary values ({values}) were left out, because {target} stores none.",
        types=frozenset({FieldType.BINARY}),
    ),
    "binary_texts": Loss(
        "binary values as distinct from texts",
        "{target} stores no binary values; {values} became texts.",
        types=frozenset({FieldType.BINARY}),
    ),
    "infinite": Loss("infinite numbers", "{target} has no infinite numbers; {values} became empty or a text."),
    "beyond_15_digits": Loss(
        "whole numbers of more than 15 digits in columns of decimals",
        "{target} is written with 15 digits of a decimal number; {values} that are longer whole numbers became "
        "others, such as 1234567890123460 for 1234567890123456. Store such numbers as integers or texts to keep them.",
    ),
    "near_infinite": Loss(
        "numbers beyond 1.797693134862315e308",
        "{target} is written with 15 digits of a number; {values} beyond 1.797693134862315e308, rounded to "
        "1.79769313486232e308, will be infinite or missing when programs read them.",
    ),
    "beyond_32_bits": Loss(
        "integers beyond 32 bits", "{target} stores integers of 32 bits; {values} became floating-point numbers."
    ),
    "like_unset": Loss(
        "the number -21121",
        "{target} is written with the number -21121 for a value that is missing; {values} became none. Store them as "
        "texts, or all of the column with decimals, to keep them.",
        count=lambda field, _: 0 if field.beyond_32_bits else field.like_unset,
    ),
    "long_integers": Loss(
        "integers beyond 32 bits as a type",
        "{target} is written without integers beyond 32 bits as a type; {values}, in columns with such numbers, became "
        "texts, and those of other columns of integers may have.",
        count=lambda field, _: field.filled or 0 if field.beyond_32_bits else 0,
    ),
    "beyond_53_bits": Loss(
        "integers beyond 53 bits", "{target} stores integers of 53 bits; the last digits of {values} changed."
    ),
    "tiny": Loss(
        "all digits of numbers below 0.0000005",
        "{target} stores 16 decimals of a number; {values} lost digits, or became 0.",
    ),
    "fractions": Loss(
        "fractions of seconds",
        "{target} stores times to the second; fractions of seconds were left out in {values}.",
        aspect=Aspect.TIMES,
    ),
    "leap_seconds": Loss(
        "leap seconds",
        "{target} has no leap seconds, such as 23:59:60; {values} became the next second.",
        aspect=Aspect.TIMES,
    ),
    "lost_leap_seconds": Loss(
        "leap seconds",
        "{target} has no leap seconds, such as 23:59:60; {values} became missing.",
        count="leap_seconds",
        aspect=Aspect.TIMES,
    ),
    "zones": Loss(
        "time zones",
        "{target} stores no time zones; they were left out in {values}.",
        count="zoned",
        aspect=Aspect.TIMES,
    ),
    "mixed_zones": Loss(
        "times with and without a time zone in one column",
        "{target} stores a time zone for all times of a column or for none; {values} without one will be read as UTC.",
        count=lambda field, _: (field.filled or 0) - field.zoned if field.zoned else 0,
        aspect=Aspect.TIMES,
    ),
    "offsets": Loss(
        "time zones other than UTC",
        "Times in other zones ({values}) were converted to UTC, because {target} stores no other.",
        aspect=Aspect.TIMES,
    ),
    "unzoned": Loss(
        "times without a time zone",
        "{target} stores times in UTC; {values} without a time zone will be read as UTC.",
        count=lambda field, _: (field.filled or 0) - field.zoned if field.type is FieldType.DATETIME else 0,
        aspect=Aspect.TIMES,
    ),
    "moments": Loss(
        "dates and times",
        "{target} has no dates and times; {values} became texts.",
        spared=frozenset({FieldType.DATETIME}),
        types=MOMENTS,
        aspect=Aspect.TIMES,
    ),
    "dates": Loss(
        "dates without a time",
        "{target} stores dates with times only; midnight was added to {values}.",
        types=frozenset({FieldType.DATE}),
        aspect=Aspect.TIMES,
    ),
    "before_1000": Loss(
        "dates before the year 1000",
        "{target} has no dates before the year 1000; {values} cannot be read by most programs.",
        aspect=Aspect.TIMES,
    ),
    "old_dates": Loss(
        "dates before March 1900",
        "{target} has no dates before March 1900; {values} may be shown as other days, or as numbers.",
        count="before_march_1900",
        aspect=Aspect.TIMES,
    ),
    "like_numbers": Loss(
        "texts that look like numbers as distinct from numbers",
        "{target} has no types without a schema; other programs may mistake {values} for numbers, and drop "
        "their leading zeros, plus signs, exponents or trailing zeros.",
        aspect=Aspect.TEXTS,
    ),
    "leading_blanks": Loss(
        "leading blanks",
        "{target} is written without blanks at the beginning of texts; they were left out of {values}.",
        aspect=Aspect.TEXTS,
    ),
    "trailing_blanks": Loss(
        "trailing blanks",
        "Programs such as QGIS leave out blanks at the end of texts in {target}, as in {values}.",
        aspect=Aspect.TEXTS,
    ),
    "space_around": Loss(
        "blanks and line ends around texts (in some programs)",
        "Excel and some other programs leave out blanks, tabs and line ends around texts in {target}, as in {values}.",
        aspect=Aspect.TEXTS,
    ),
    "uneven_space": Loss(
        "line ends, tabs and several blanks in a row (in some programs)",
        "Some programs, unlike LibreOffice, show line ends, tabs and several blanks in a row in {target} as one blank, "
        "and leave out those around texts, as in {values}. XLSX keeps those between words in all programs.",
        aspect=Aspect.TEXTS,
    ),
    "carriage_returns": Loss(
        "carriage returns",
        "{target} has no carriage returns; readers find line feeds in their place in {values}.",
        aspect=Aspect.TEXTS,
    ),
    "control": Loss(
        "control characters, U+FFFE and U+FFFF",
        "{target} has no control characters, nor U+FFFE and U+FFFF; they were left out of {values}.",
        aspect=Aspect.TEXTS,
    ),
    "layer_names": Loss(
        "layer names with characters outside ASCII, or such as `/` and `:`",
        "{target} is written with names of layers in ASCII; programs show {values} with other letters, or characters "
        "such as / and :, differently.",
        count=lambda field, _: field.no_layer_names if field.name == LAYER else 0,
        aspect=Aspect.TEXTS,
    ),
    "like_json": Loss(
        "texts that are JSON as distinct from objects and arrays",
        "Texts that are JSON objects or arrays ({values}) are stored by {target} as such objects and arrays.",
        aspect=Aspect.TEXTS,
    ),
    "like_markup": Loss(
        "texts that begin with `<`",
        "{target} is written with texts that begin like XML as elements; an apostrophe was put before {values}.",
        aspect=Aspect.TEXTS,
    ),
    "like_formulas": Loss(
        "texts that look like formulas",
        "Programs execute a text that begins with of:= when they open {target}; an apostrophe was put before {values}.",
        aspect=Aspect.TEXTS,
    ),
    "like_escapes": Loss(
        "texts with escapes such as `_x0041_`",
        "Programs take codes such as _x0041_ in {target} for one character; _x005F was put before those in {values}. "
        "Excel shows these texts as they were, some other programs show the added codes.",
        aspect=Aspect.TEXTS,
    ),
    "empty_texts": Loss(
        "empty texts as distinct from missing values",
        "{target} cannot tell an empty text from a missing value; {values} became missing.",
        count="empty",
        aspect=Aspect.TEXTS,
    ),
    "nulls": Loss(
        "missing values",
        "{target} has no missing values; 0 or an empty text stands in place of {values}.",
        count=lambda field, layer: (
            layer.features - field.filled if field.filled is not None and field.type in NULLS_BECOME else 0
        ),
    ),
}
"""What a target may do to values; `Writing.value_losses` names the kinds for each target."""


OVERFLOWS: Mapping[str, Loss] = {
    "infinite": Loss(
        "numbers from 1.8e308 on", "{source} holds numbers from 1.8e308 on, or infinite ones; {values} became infinite."
    ),
    "nans": Loss("numbers that are NaN", "{source} holds numbers that are NaN; {values} became missing."),
    "exponents": Loss(
        "numbers of more than 15 digits beside texts",
        "Columns of {source} hold both numbers and texts; {values} became texts of numbers with 15 digits, such as "
        "1.23456789012346e+16 for 12345678901234567. Store such numbers as texts to keep them.",
    ),
    "until_1970": Loss(
        "times before 1970",
        "{source} is read with times before 1970 to the second only; {values} may be one second late.",
    ),
    "old_dates": Loss(
        "dates before March 1900",
        "{source} holds dates before March 1900, in which programs differ: Excel shows {values} a day later.",
        count="before_march_1900",
    ),
    "no_day": Loss(
        "dates that do not exist",
        "{source} holds days that no calendar has, such as 2023-02-29; programs will read {values} as others, or as "
        "missing.",
    ),
    "at_32_bits": Loss(
        "integers beyond 32 bits",
        "{source} is read with integers of 32 bits; {values} became 2,147,483,647 or -2,147,483,648, unless "
        "they are these numbers.",
    ),
}
"""What reading may do to values; `Reading.overflows` names the kinds for each format."""


def reading_warnings(source: Format, layers: Sequence[Layer]) -> Iterator[str]:
    """A sentence for each kind of value in `layers` that reading the format `source` may have changed."""
    for kind in sorted(reading_of(source).overflows):
        yield from _told(kind, OVERFLOWS[kind], layers, {}, source=source.title)


def value_warnings(target: Format, layers: Sequence[Layer], kinds: frozenset[str] | None = None) -> Iterator[str]:
    """A sentence for each kind of value in `layers` that the format `target` changes or leaves out, or of `kinds`."""
    writing = writing_of(target)
    for kind, loss in VALUE_LOSSES.items():
        if kind in (writing.value_losses if kinds is None else kinds):
            yield from _told(kind, loss, layers, writing.typed_columns, target=target.title)


def _told(kind: str, loss: Loss, layers: Sequence[Layer], typed: TypedColumns, **title: str) -> Iterator[str]:
    """The sentence with the count of each column, none if there are no such values, and the first feature if known."""
    member = loss.count or kind
    counts: dict[str, int] = {}
    for layer in layers:
        for field, count in zip(layer.fields, _counted(loss, member, layer), strict=True):
            if count > 0 and not (field.type in loss.spared and _is_held(field, layer, typed)):
                counts[field.name] = counts.get(field.name, 0) + count
    if counts:
        firsts = ((layer.name, [getattr(field, f"first_{member}", 0) for field in layer.fields]) for layer in layers)
        yield loss.sentence.format(values=values_of(counts), **title) + first_of(firsts)


def _counted(loss: Loss, member: str | Callable[[Field, Layer], int], layer: Layer) -> Iterable[int]:
    """How many values of each column are of a kind, which `member` tells unless it is one of types."""
    if loss.types or loss.former:
        return [
            field.filled or 0 if field.type in loss.types or field.was is loss.former is not None else 0
            for field in layer.fields
        ]
    if callable(member):
        return [member(field, layer) for field in layer.fields]
    return map(attrgetter(member), layer.fields)


def _is_held(field: Field, layer: Layer, typed: TypedColumns) -> bool:
    families = layer.families
    return bool(families) and all(field.type in typed.get(family, {}).get(field.name, ()) for family in families)
