"""Checks that the driver of a GeoPackage reads all values: SQLite stores any value in any column."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Annotated

from msgspec import Meta

from service.engine.jailed.declared import (
    BEYOND_32,
    EXPRESSIONS_A_QUERY,
    GEOPACKAGE,
    KEYS,
    ROW_NUMBERS,
    SHORT,
    SINGLE,
    counting,
    declared_as,
    finding,
)
from service.engine.jailed.gpkg import quoted
from service.engine.jailed.self_description import DESCRIPTIONS, FURTHER, Beside, beside
from service.engine.seen import SeenColumn, SeenLayer
from service.engine.session import Answer, Session
from service.formats.facts import Count, FieldType

DECLARED: Mapping[FieldType, str] = {
    FieldType.BOOLEAN: "BOOLEAN",
    FieldType.INTEGER: "INTEGER",
    FieldType.REAL: "REAL",
    FieldType.DATE: "DATE",
    FieldType.DATETIME: "DATETIME",
    FieldType.TEXT: "TEXT",
    FieldType.BINARY: "BLOB",
}
"""How a GeoPackage declares the types whose values may be of another type."""
NARROW = {FieldType.INTEGER: SHORT, FieldType.REAL: SINGLE}
"""How it declares those of fewer bits."""


class _Found(Answer, frozen=True):
    """The numbers in the first row of what each query finds."""

    rows: tuple[Annotated[tuple[Count, ...], Meta(max_length=EXPRESSIONS_A_QUERY)], ...]


class TypeCheck:
    """Checks it in a run that holds the file.

    `beside` is what the file holds beside its layers; `left_out` are keys that only number rows, but with gaps.
    """

    def __init__(self) -> None:
        self.beside = Beside()
        self.left_out: list[str] = []

    async def __call__(self, session: Session, layers: list[SeenLayer]) -> list[SeenLayer] | None:
        """`layers`; None if the driver changed values, or left out ids of rows that are own ones."""
        told: tuple[int, ...] = ()
        for layer in layers:
            queries = dict(_queries(layer))
            told, key, *found = await _rows(session, DESCRIPTIONS, _own_ids(layer.name), *queries) or ((), ())
            if key not in _LEFT_OUT or found != list(queries.values()):
                return None
            self.left_out += [name for name in _LEFT_OUT[key] if name not in self.left_out]
        told = told or await _row(session, DESCRIPTIONS)
        further = [query for has, query in zip(told[2:], FURTHER.values(), strict=False) if has]
        counts = await _rows(session, *further)
        if not told or len(counts) != len(further):
            return None
        numbers = dict(zip(further, counts, strict=True))
        self.beside = beside(told, [numbers.get(query, (0,))[0] for query in FURTHER.values()])
        return layers


async def _rows(session: Session, *queries: str) -> Sequence[tuple[int, ...]]:
    """What each query finds in the file that was loaded, in one question; nothing if one fails."""
    found = await session.ask(_Found, "query", *map(str.strip, queries))
    return found.rows if found.ok else ()


async def _row(session: Session, query: str) -> tuple[int, ...]:
    rows = await _rows(session, query)
    return rows[0] if rows else ()


_LEFT_OUT = {(0,): (), **{(place,): (name,) for place, name in enumerate(ROW_NUMBERS, start=2)}}
"""By what `_own_ids` finds: keys with values of their own that are left out. Others become columns."""


def _own_ids(table: str) -> str:
    """The query for whether `table` has a key whose values are others than 1, 2, 3 and so on, or the same from 0.

    It finds 0 if not, else 1, or the place of the key's name in `ROW_NUMBERS`, counted from 2.
    """
    text = _text(table)
    kinds = ", ".join(f"'{kind}'" for kind in KEYS)
    names = " ".join(f"WHEN '{name}' THEN {place}" for place, name in enumerate(ROW_NUMBERS, start=2))
    is_key = f"(count(*) = 1 AND max(upper(type) IN ({kinds})))"
    key = f"SELECT {is_key} * max(CASE name {names} ELSE 1 END) FROM pragma_table_info({text}) WHERE pk"  # noqa: S608 -- quoted
    are_own = "min(rowid) NOT IN (0, 1) OR max(rowid) - min(rowid) <> count(*) - 1"
    return f"SELECT coalesce(({are_own}) * ({key}), 0) FROM {quoted(table)}"  # noqa: S608 -- quoted


def _queries(layer: SeenLayer) -> Iterator[tuple[str, tuple[int, ...]]]:
    """Queries for values that the driver may have changed, and the numbers that they find if it has not."""
    checked = [column for column in layer.columns if column.type in DECLARED]
    for part in _in_parts(checked):
        lost = [(column.name, _lost(layer.name, column)) for column in part]
        yield finding(layer.name, lost), (0,)
    for part in _in_parts([column for column in checked if column.type is FieldType.INTEGER]):
        large = [(column.name, BEYOND_32) for column in part]
        yield counting(layer.name, large), tuple(column.beyond_32_bits for column in part)


def _lost(table: str, column: SeenColumn) -> str:
    """The condition that the driver changes a value of `column`; what it declares is not known outside of the file."""
    lost = declared_as(DECLARED[column.type], GEOPACKAGE).lost
    if column.type not in NARROW:
        return lost
    kind = NARROW[column.type]
    named = f"name = {_text(column.name)} AND type LIKE '{kind}'".replace("{", "{{").replace("}", "}}")
    declares = f"EXISTS (SELECT 1 FROM pragma_table_info({_text(table)}) WHERE {named})"  # noqa: S608 -- quoted
    return f"{lost} OR {declares} AND ({declared_as(kind, GEOPACKAGE).large})"


def _text(name: str) -> str:
    """A name as a text of SQL."""
    return "'" + name.replace("'", "''") + "'"


def _in_parts(columns: Sequence[SeenColumn]) -> Iterator[Sequence[SeenColumn]]:
    return (columns[start : start + EXPRESSIONS_A_QUERY] for start in range(0, len(columns), EXPRESSIONS_A_QUERY))
