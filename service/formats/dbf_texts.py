"""Finds texts of a .dbf that its driver cuts: at zero bytes, and the blanks at their beginning."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

from service.formats.dbf_cells import found_in
from service.formats.dbf_columns import DELETED, DbfColumn, record_bytes, that_hold_values
from service.formats.names import shown

BLANK, ZERO = b" ", b"\0"
NOTHING = BLANK + ZERO
KINDS: Mapping[str, Callable[[bytes], object]] = {
    "Texts of {column} in {layer} ({count:,}, first in feature {feature:,}) lost the blanks at their beginning.": (
        lambda text: text.startswith(BLANK) and text.lstrip(BLANK)[:1].strip(NOTHING)
    ),
    "Texts of {column} in {layer} ({count:,}, first in feature {feature:,}) were cut at a zero byte (NUL).": (
        lambda text: ZERO in text.rstrip(NOTHING)
    ),
}
"""The sentence about each kind of texts, and what finds one."""
ALIKE = bytes(byte if byte in NOTHING + DELETED else ord("a") for byte in range(256))
"""Makes texts of one form equal."""
MOST_TOLD = 20


def cut_texts(dbf: Path, columns: Sequence[DbfColumn], layer: str) -> list[str]:
    """What is told of the texts of `dbf`. Blocking."""
    texts = [column for column in that_hold_values(columns, record_bytes(dbf)) if column.kind == "C"]

    def may_be_cut(records: bytes, size: int) -> Iterator[tuple[DbfColumn, bytes]]:
        has_zeros, alike = ZERO in records, records.translate(ALIKE)
        return ((column, alike) for column in texts if has_zeros or BLANK in records[column.start :: size])

    told = repr(shown(layer))
    return [
        sentence.format(column=repr(shown(column.name)), layer=told, count=found.cells, feature=found.feature)
        for (sentence, column), found in found_in(dbf, texts, _judge, may_be_cut).items()
    ][:MOST_TOLD]


def _judge(_column: DbfColumn, mark: bytes, text: bytes) -> Iterator[str]:
    if mark != DELETED and (text.startswith(BLANK) or ZERO in text):
        yield from (sentence for sentence, is_of_kind in KINDS.items() if is_of_kind(text))
