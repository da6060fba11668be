"""Makes points from the columns of a workbook in an open run, with the same result as `jailed.sheets` on a work file.

It does so only if the results cannot differ: the coordinates are plain numbers, no row has only some of them, and no
text could be a geometry or another notation of a coordinate. All other workbooks go through the work file.
"""

from collections.abc import Sequence

import msgspec

from service.engine.jailed.places import Column, Table, Wanted, X, Y, Z, describe, expect, find_places, unique_names
from service.engine.session import Session
from service.engine.session_facts import NUMBERS, Placed, SeenColumn, SeenLayer
from service.formats.facts import FieldType

MAX_COLUMNS = 1000
"""Finding pairs among the names of more takes the event loop ten milliseconds."""


class Placing:
    """Finds the coordinates of each sheet and has the run make points of them; `tables` describes the sheets."""

    def __init__(self, wanted: Wanted, *, doubts_types: bool) -> None:
        """`doubts_types` says that columns that begin empty may not be texts although the driver says so."""
        self._wanted = wanted
        self._doubts_types = doubts_types
        self.tables: list[Table] = []

    async def __call__(self, session: Session, layers: Sequence[SeenLayer]) -> list[SeenLayer] | None:
        """The layers with their points, or None if the work file is needed."""
        finished = []
        for layer in layers:
            found = self._find(layer)
            if found is None:
                return None
            table, axes = found
            placed = await _place(session, layer, axes) if axes else layer
            if placed is None:
                return None
            self.tables.append(table)
            finished.append(placed)
        return finished

    def _find(self, layer: SeenLayer) -> tuple[Table, list[int]] | None:
        """The description of the table, and the positions of the columns of x, y and, if any, z."""
        names = [column.name for column in layer.columns]
        if not 0 < len(names) <= MAX_COLUMNS or unique_names(names) != names:
            return None
        columns = [
            Column(seen.name, filled=seen.filled or 0, numbers=(seen.filled or 0) if _holds_numbers(seen) else 0)
            for seen in layer.columns
        ]
        expect(columns, self._wanted)
        for column, seen in zip(columns, layer.columns, strict=True):
            is_odd = _is_odd(seen) or (self._doubts_types and seen.begins_empty)
            if seen.type is FieldType.TEXT and (is_odd or (column.may_be_coordinate and not column.numbers)):
                return None
        found = find_places(columns, self._wanted)
        by_name = {ours: at for at, ours in found[0].items()}
        axes = [by_name[ours] for ours in (X, Y, Z) if ours in by_name]
        if len(axes) != len(by_name) or not all(_holds_coordinates(layer.columns[at]) for at in axes):
            return None
        return describe(layer.name, columns, found), axes


def _holds_numbers(column: SeenColumn) -> bool:
    """Whether all values are numbers, or texts that a driver reads as the same numbers."""
    return column.type in NUMBERS or (column.type is FieldType.TEXT and not NUMBERS.isdisjoint(column.fits))


def _is_odd(column: SeenColumn) -> bool:
    """Whether the texts in a column must be examined one by one."""
    return bool(column.like_geometries or column.empty)


def _holds_coordinates(column: SeenColumn) -> bool:
    return _holds_numbers(column) and bool(column.filled) and not column.infinite


async def _place(session: Session, layer: SeenLayer, axes: Sequence[int]) -> SeenLayer | None:
    """The layer with points; None if there are fewer than values in a column, so that these would be lost."""
    filled = {layer.columns[at].filled for at in axes}
    placed = await session.ask(Placed, "place", layer.table, *map(str, axes)) if len(filled) == 1 else None
    if placed is None or not placed.ok or filled != {placed.layer.geometries}:
        return None
    left = tuple(column for at, column in enumerate(layer.columns) if at not in axes)
    shapes = msgspec.structs.asdict(placed.layer)
    return msgspec.structs.replace(layer, **shapes, columns=left, has_geometry_column=True)
