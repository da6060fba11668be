"""Finds texts of a .dbf that its driver cuts: at zero bytes, and the blanks at their beginning."""

import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from struct import Struct

from service.formats.dbf_columns import CHUNK, HEADER_BYTES, RECORD_BYTES_AT, RECORDS_AT, DbfColumn, number_of
from service.formats.names import shown

FIRST_BLANK, ZERO = b" ", b"\0"
NOT_DELETED = b"\n "
WITHOUT_LINE_ENDS = bytes.maketrans(b"\n", b"\1")
"""What ends cells here has no place in them."""
KINDS: Mapping[str, re.Pattern[bytes]] = {
    "Texts of {column} in {layer} ({count:,}, first in feature {feature:,}) lost the blanks at their beginning.": (
        re.compile(rb"\n  ++[^ \0\n]")
    ),
    "Texts of {column} in {layer} ({count:,}, first in feature {feature:,}) were cut at a zero byte (NUL).": (
        re.compile(rb"\n [^\0\n]*+\0[ \0]*+[^ \0\n]")
    ),
}
"""The sentence about each kind of texts, and the record and text of one, up to what is behind blanks or zeros."""
MOST_TOLD = 20


def cut_texts(dbf: Path, columns: Sequence[DbfColumn], layer: str) -> list[str]:
    """What is told of the texts of `dbf`. Blocking."""
    found: dict[tuple[str, str], list[int]] = {}
    features = 0
    with dbf.open("rb") as file:
        head = file.read(HEADER_BYTES)
        size = number_of(head[RECORD_BYTES_AT])
        texts = [column for column in columns if column.kind == "C" and column.start + column.width <= size]
        file.seek(number_of(head[RECORDS_AT]))
        while texts and (records := file.read(size * max(1, CHUNK // size))):
            records = records[: len(records) // size * size]
            for sentence, column, first, count in _cut(records, size, texts):
                found.setdefault((sentence, column), [0, features + first])[0] += count
            features += len(records) // size - records[::size].count(b"*")
    told = repr(shown(layer))
    return [
        sentence.format(column=repr(shown(column)), layer=told, count=count, feature=feature)
        for (sentence, column), (count, feature) in found.items()
    ][:MOST_TOLD]


def _cut(records: bytes, size: int, columns: Sequence[DbfColumn]) -> Iterator[tuple[str, str, int, int]]:
    """The sentence, the column, the first feature, from 1, and the number of texts of each kind among `records`."""
    has_zeros = ZERO in records
    for column in columns:
        if not has_zeros and FIRST_BLANK not in records[column.start :: size]:
            continue
        behind = size - column.start - column.width
        cells = Struct(f"1s{column.start - 1}x{column.width}s{behind}x").iter_unpack(
            records.translate(WITHOUT_LINE_ENDS)
        )
        text = b"\n".join([b"", *map(b"".join, cells)])
        for sentence, pattern in KINDS.items():
            if first := pattern.search(text):
                yield sentence, column.name, text.count(NOT_DELETED, 0, first.end()), len(pattern.findall(text))
