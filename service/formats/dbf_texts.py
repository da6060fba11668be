"""Finds texts of a .dbf that its driver cuts: at zero bytes, and the blanks at their beginning."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from struct import Struct

from service.formats.dbf_columns import DELETED, DbfColumn, record_bytes, records_of, that_hold_values
from service.formats.names import shown

BLANK, ZERO = b" ", b"\0"
NOTHING = BLANK + ZERO
KINDS: Mapping[str, Callable[[bytes], object]] = {
    "Texts of {column} in {layer} ({count}, first in feature {feature:,}) lost the blanks at their beginning.": (
        lambda text: text.startswith(BLANK) and text.lstrip(BLANK)[:1].strip(NOTHING)
    ),
    "Texts of {column} in {layer} ({count}, first in feature {feature:,}) were cut at a zero byte (NUL).": (
        lambda text: ZERO in text.rstrip(NOTHING)
    ),
}
"""The sentence about each kind of texts, and what finds one."""
MOST_TOLD = 20
MOST_FOUND = 500_000
"""How many texts are counted before the others are left uncounted; a crafted file unpacks to many times as many."""


def cut_texts(dbf: Path, columns: Sequence[DbfColumn], layer: str) -> list[str]:
    """What is told of the texts of `dbf`. Blocking."""
    found: dict[tuple[str, str], list[int]] = {}
    features, left, size = 0, MOST_FOUND, record_bytes(dbf)
    texts = [column for column in that_hold_values(columns, size) if column.kind == "C"]
    for records in records_of(dbf) if texts else ():
        for sentence, column, first, count in _cut(records, size, texts):
            found.setdefault((sentence, column), [0, features + first])[0] += count
            left -= count
        features += len(records) // size - records[::size].count(DELETED)
        if left <= 0:
            break
    told, least = repr(shown(layer)), "" if left > 0 else "at least "
    return [
        sentence.format(column=repr(shown(column)), layer=told, count=f"{least}{count:,}", feature=feature)
        for (sentence, column), (count, feature) in found.items()
    ][:MOST_TOLD]


def _cut(records: bytes, size: int, columns: Sequence[DbfColumn]) -> Iterator[tuple[str, str, int, int]]:
    """The sentence, the column, the first feature, from 1, and the number of texts of each kind among `records`."""
    has_zeros = ZERO in records
    for column in columns:
        if not has_zeros and BLANK not in records[column.start :: size]:
            continue
        empty = BLANK * column.width
        behind = size - column.start - column.width
        cells = Struct(f"1s{column.start - 1}x{column.width}s{behind}x").iter_unpack(records)
        odd = [
            (record, text)
            for record, (mark, text) in enumerate(cells, 1)
            if text != empty and (has_zeros or text.startswith(BLANK)) and mark != DELETED
        ]
        for sentence, is_of_kind in KINDS.items() if odd else ():
            if found := [record for record, text in odd if is_of_kind(text)]:
                first = found[0] - records[: found[0] * size : size].count(DELETED)
                yield sentence, column.name, first, len(found)
