"""Counts values of other types than the columns of a GeoPackage declare, which SQLite allows and the driver changes."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Annotated

from msgspec import Meta

from service.engine.jailed.database import EXPRESSIONS_A_QUERY, MISTYPED_OF, counting
from service.engine.seen import SeenLayer
from service.engine.session import Answer, Session
from service.formats.facts import Count, FieldType

DECLARED: Mapping[FieldType, str] = MappingProxyType(
    {
        FieldType.BOOLEAN: "INTEGER",
        FieldType.INTEGER: "INTEGER",
        FieldType.REAL: "REAL",
        FieldType.DATE: "DATE",
        FieldType.DATETIME: "DATETIME",
    }
)
"""How a GeoPackage declares the types of which values may be something else."""


class _Numbers(Answer, frozen=True):
    numbers: Annotated[tuple[Count, ...], Meta(max_length=EXPRESSIONS_A_QUERY)]


class TypeCheck:
    """Counts them in a run that holds a GeoPackage; `mistyped` says by column how many there are."""

    def __init__(self) -> None:
        self.mistyped: Counter[str] = Counter()

    async def __call__(self, session: Session, layers: list[SeenLayer]) -> list[SeenLayer] | None:
        """Examine `layers`, and return them; None if the run cannot."""
        for layer in layers:
            for part in _parts(layer):
                sql = counting(layer.name, [(name, MISTYPED_OF[kind]) for name, kind in part])
                found = await session.ask(_Numbers, "query", sql)
                if not found.ok:
                    return None
                counts = zip(part, found.numbers, strict=False)
                self.mistyped.update({name: count for (name, _), count in counts if count})
        return layers


def _parts(layer: SeenLayer) -> Iterator[Sequence[tuple[str, str]]]:
    """The columns to examine, with their declared types, as many as one query may."""
    columns = [(column.name, DECLARED[column.type]) for column in layer.columns if column.type in DECLARED]
    for start in range(0, len(columns), EXPRESSIONS_A_QUERY):
        yield columns[start : start + EXPRESSIONS_A_QUERY]
