"""Edits the work file as a plan requires: names of tables and columns, and content that the target cannot hold."""

import json
from collections.abc import Iterator

import msgspec

from service.engine.arguments import table_of
from service.engine.jailed import prepare
from service.engine.workspace import WORK_FILE, Workplace
from service.formats.datasets import Dataset
from service.formats.geometry import Family
from service.formats.plan import ConversionPlan

EDITS_FILE = "edits.json"
NOT_IN_XML = "\ufffe\uffff"
"""Characters that drivers write although no parser of XML reads them."""
JAILED = (prepare.__name__,)


class ShapedTable(msgspec.Struct, frozen=True):
    """A table as a plan requires it."""

    table: str
    name: str
    columns: dict[str, str]
    """The columns that are kept, and their names in the plan."""
    elevation: str
    """The name of a further column, with the elevations of points; empty if there is none."""


def shaped_tables(plan: ConversionPlan) -> Iterator[ShapedTable]:
    """Each table that a session holds, as `plan` requires it."""
    kept = plan.writing.attributes
    for dataset in _one_per_layer(plan):
        columns = {column.name: column.written for column in dataset.columns if kept is None or column.name in kept}
        yield ShapedTable(dataset.layer.table, table_of(plan, dataset), columns, _elevation(plan, dataset))


async def edit_work_file(place: Workplace, plan: ConversionPlan) -> None:
    """Edit the work file, unless it is as the plan requires.

    Raises:
        Rejection: this exceeds the limits.
    """
    edits = [edit for dataset in _one_per_layer(plan) if _changes_something(edit := _edit(plan, dataset))]
    if edits:
        await place.write_text(EDITS_FILE, json.dumps(edits))
        await place.python(prepare.__name__, WORK_FILE, EDITS_FILE)


def _one_per_layer(plan: ConversionPlan) -> list[Dataset]:
    return list({dataset.layer.table: dataset for dataset in plan.datasets}.values())


def _edit(plan: ConversionPlan, dataset: Dataset) -> dict[str, object]:
    """What `jailed.prepare` is to do with the table of a dataset."""
    fields, written = [field.name for field in dataset.layer.fields], {column.name for column in dataset.columns}
    return {
        "table": dataset.layer.table,
        "name": table_of(plan, dataset),
        "unwritten": [name for name in fields if name not in written],
        "columns": {column.name: column.written for column in dataset.columns if column.name != column.written},
        "straighten": dataset.linearise,
        "move": plan.moves_parts,
        "flatten": dataset.flatten,
        "explode": dataset.is_exploded,
        "geometry": plan.geometry_name if plan.writing.shows_geometry_name else "",
        "guard": plan.writing.live_text,
        "escape": plan.escapes_texts and any(field.like_escapes for field in dataset.layer.fields),
        "leave_out": NOT_IN_XML if plan.leaves_out_control else "",
        "system_is_unknown": plan.keeps_coordinates and dataset.layer.is_spatial,
        "elevation": _elevation(plan, dataset),
    }


def _elevation(plan: ConversionPlan, dataset: Dataset) -> str:
    """The column that the driver needs for the elevations of points."""
    has_raised_points = Family.POINT in dataset.layer.families and dataset.declares_z
    return plan.writing.elevation_column if has_raised_points else ""


def _changes_something(edit: dict[str, object]) -> bool:
    return edit["table"] != edit["name"] or any(edit[what] for what in edit.keys() - {"table", "name"})
