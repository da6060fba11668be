"""Checks that the driver of a database reads all values: SQLite stores any value in any column."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Annotated, ClassVar, TypeVar

from msgspec import Meta

from service.engine.jailed.declared import (
    BEYOND_32,
    EXPRESSIONS_A_QUERY,
    GEOPACKAGE,
    KEYS,
    ROW_NUMBERS,
    SHORT,
    SHORT_IN_SQLITE,
    SINGLE,
    SQLITE,
    SQLITE_KEYS,
    Condition,
    Declared,
    counting,
    declared_as,
    finding,
)
from service.engine.jailed.gpkg import quoted, text_of
from service.engine.jailed.self_description import BEFORE_FURTHER, DESCRIPTIONS, FURTHER, RULES, Beside, beside
from service.engine.jailed.unread_geometries import in_other_system
from service.engine.session import Answer, Session
from service.engine.session_facts import SeenColumn, SeenLayer
from service.formats.facts import Count, FieldType

DECLARED: Mapping[FieldType, str] = {
    FieldType.BOOLEAN: "BOOLEAN",
    FieldType.INTEGER: "BIGINT",
    FieldType.DATE: "DATE",
    FieldType.DATETIME: "DATETIME",
    FieldType.TIME: "TIME",
    FieldType.TEXT: "TEXT",
    FieldType.BINARY: "BLOB",
}
"""How a database declares the types that its driver reads, but numbers; integers that it cuts are counted."""
SHORT_INTEGER = "i"
"""As `Declared.usual`: integers of 32 bits."""
Row = tuple[int, ...]
T = TypeVar("T")


class _Found(Answer, frozen=True):
    """The numbers in the rows that each query finds."""

    found: tuple[tuple[Annotated[tuple[Count, ...], Meta(max_length=EXPRESSIONS_A_QUERY)], ...], ...]


class TypeCheck:
    """Checks it in a run that holds a file of SQLite.

    `left_out` are keys that only number rows, but with gaps; `rules` is how many its tables have for values.
    """

    keys: ClassVar[Collection[str]] = SQLITE_KEYS
    known: ClassVar[Sequence[Declared]] = SQLITE
    real: ClassVar[str] = "NUMERIC"
    """How it declares the column of numbers with the strictest conditions."""
    narrow: ClassVar[Mapping[FieldType, str]] = {FieldType.INTEGER: SHORT_IN_SQLITE}
    """How it declares those of fewer bits."""
    follows: ClassVar[tuple[str, ...]] = ()
    """What is asked next."""
    stores: ClassVar[Sequence[str]] = ("spatialite", "wkb", "wkt")
    """The formats in which it may store geometries."""

    def __init__(self) -> None:
        self.left_out: list[str] = []
        self.rules = 0

    async def __call__(self, session: Session, layers: list[SeenLayer]) -> list[SeenLayer] | None:
        """`layers`; None if the driver changed values, or left out ids of rows that are own ones."""
        for layer in layers:
            expected = dict(self._expected(layer))
            then = self.follows if layer is layers[-1] else ()
            own = (_own_ids(layer.name, self.keys), RULES.format(text_of(layer.name)))
            key, rules, *found = await _first_rows(session, *own, *expected, then=then) or [(), (0,)]
            if key not in _LEFT_OUT or found != list(expected.values()):
                return None
            self.rules += rules[0]
            self.left_out += [name for name in _LEFT_OUT[key] if name not in self.left_out]
        return layers

    def _expected(self, layer: SeenLayer) -> Iterator[tuple[str, Row]]:
        """Queries about what the driver may have changed or left out, and the numbers that they find if it has not."""
        yield _counted(layer, self.keys), (len(layer.columns) + layer.has_geometry_column, layer.geometries)
        yield from self._values(layer)

    def _values(self, layer: SeenLayer) -> Iterator[tuple[str, Row]]:
        lost = [condition for column in layer.columns for condition in self._lost(layer.name, column)]
        for conditions in _in_parts([*lost, *self._of_geometries(layer)]):
            yield finding(layer.name, conditions), (0,)
        integers = (column for column in layer.columns if column.type is FieldType.INTEGER)
        for part in _in_parts([column for column in integers if column.beyond_32_bits]):
            large = [(column.name, BEYOND_32) for column in part]
            yield counting(layer.name, large), tuple(column.beyond_32_bits for column in part)

    def _of_geometries(self, layer: SeenLayer) -> Sequence[Condition]:
        """That a geometry, in whichever format, names another system than the layer.

        The driver ignores that; the way to the work file knows the exceptions, which number a system in their own way.
        """
        if not layer.has_geometry_column or not layer.epsg:
            return ()
        return [Condition(layer.geometry_column, in_other_system(kind, [layer.epsg])) for kind in self.stores]

    def _lost(self, table: str, column: SeenColumn) -> Iterator[Condition]:
        """The conditions that the driver changes a value; what the column declares is not known outside of the file."""
        declared = declared_as(DECLARED.get(column.type, self.real), self.known)
        is_short = column.type is FieldType.INTEGER and not column.beyond_32_bits
        yield Condition(
            column.name,
            f"{declared.lost} OR {BEYOND_32}" if is_short else declared.lost,
            SHORT_INTEGER if is_short else declared.usual,
        )
        kind = self.narrow.get(column.type)
        if kind is not None:
            named = f"name = {text_of(column.name)} AND type LIKE '{kind}'".replace("{", "{{").replace("}", "}}")
            declares = f"EXISTS (SELECT 1 FROM pragma_table_info({text_of(table)}) WHERE {named})"  # noqa: S608 -- quoted
            yield Condition(column.name, f"{declares} AND ({declared_as(kind, self.known).large})")


class GeoPackageCheck(TypeCheck):
    """Checks it in a run that holds a GeoPackage. `beside` is what that holds beside its layers."""

    keys: ClassVar[Collection[str]] = KEYS
    known: ClassVar[Sequence[Declared]] = GEOPACKAGE
    real: ClassVar[str] = "REAL"
    narrow: ClassVar[Mapping[FieldType, str]] = {FieldType.INTEGER: SHORT, FieldType.REAL: SINGLE}
    follows: ClassVar[tuple[str, ...]] = ("query", DESCRIPTIONS.strip())
    stores: ClassVar[Sequence[str]] = ("gpkg",)

    def __init__(self) -> None:
        super().__init__()
        self.beside = Beside()

    async def __call__(self, session: Session, layers: list[SeenLayer]) -> list[SeenLayer] | None:
        """As that of any database; None also if what it says of itself cannot be read, or layers are views.

        Of a view, the driver leaves out the first column of integers, and takes all that it computes for texts.
        """
        if await super().__call__(session, layers) is None:
            return None
        (told,) = await _first_rows(session, DESCRIPTIONS) or [()]
        further = [query for has, query in zip(told[BEFORE_FURTHER:], FURTHER, strict=False) if has]
        counts = await _first_rows(session, *further)
        if len(told) != BEFORE_FURTHER + len(FURTHER) or len(counts) != len(further):
            return None
        numbers = dict(zip(further, counts, strict=True))
        self.beside = beside(told, [numbers.get(query, (0,))[0] for query in FURTHER])
        self.rules += self.beside.limits
        return None if self.beside.views else layers

    def _expected(self, layer: SeenLayer) -> Iterator[tuple[str, Row]]:
        """Those about values: the driver reads all columns of the types that the standard defines."""
        return self._values(layer)


async def _first_rows(session: Session, *queries: str, then: tuple[str, ...] = ()) -> list[Row]:
    """The first row that each query finds in the file that was loaded, in one question; nothing if one finds none."""
    told = await session.ask(_Found, "query", *map(str.strip, queries), then=then)
    first = [rows[0] for rows in told.found if rows and rows[0]]
    return first if told.ok and len(first) == len(queries) else []


_LEFT_OUT = {(0,): (), **{(place,): (name,) for place, name in enumerate(ROW_NUMBERS, start=2)}}
"""By what `_own_ids` finds: keys with values of their own that are left out. Others become columns."""


def _key_as(what: str, kinds: Collection[str]) -> str:
    """The expression for `what` of the columns of a key, or 0 if that is no single column of one of `kinds`."""
    return f"(count(*) = 1 AND max(upper(type) IN ({', '.join(map(text_of, sorted(kinds)))}))) * {what}"


def _own_ids(table: str, kinds: Collection[str]) -> str:
    """The query for whether `table` has a key whose values are others than 1, 2, 3 and so on, or the same from 0.

    It finds 0 if not, else 1, or the place of the key's name in `ROW_NUMBERS`, counted from 2.
    """
    names = " ".join(f"WHEN '{name}' THEN {place}" for place, name in enumerate(ROW_NUMBERS, start=2))
    place = _key_as(f"max(CASE name {names} ELSE 1 END)", kinds)
    key = f"SELECT {place} FROM pragma_table_info({text_of(table)}) WHERE pk"  # noqa: S608 -- quoted
    least, most, rows = (  # each by itself is found without a scan
        f"(SELECT {what} FROM {quoted(table)})"  # noqa: S608 -- quoted
        for what in ("min(rowid)", "max(rowid)", "count(*)")
    )
    return f"SELECT coalesce(({least} NOT IN (0, 1) OR {most} - {least} <> {rows} - 1) * ({key}), 0)"


def _counted(layer: SeenLayer, kinds: Collection[str]) -> str:
    """The query for how many columns a layer has without its key, and how many values its geometry column."""
    pragma = f"pragma_table_xinfo({text_of(layer.name)})"
    key = f"SELECT {_key_as('1', kinds)} FROM {pragma} WHERE pk"  # noqa: S608 -- quoted
    columns = f"SELECT count(*) - ({key}) FROM {pragma} WHERE hidden <> 1"  # noqa: S608 -- quoted
    table = quoted(layer.name)
    geometry = f"{table}.{quoted(layer.geometry_column)}" if layer.has_geometry_column else "NULL"
    return f"SELECT ({columns}), count({geometry}) FROM {table}"  # noqa: S608 -- quoted


def _in_parts(items: Sequence[T]) -> Iterator[Sequence[T]]:
    return (items[start : start + EXPRESSIONS_A_QUERY] for start in range(0, len(items), EXPRESSIONS_A_QUERY))
