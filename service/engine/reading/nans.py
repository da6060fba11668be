"""Counts numbers that are NaN, of which a work file has nothing: they are missing there."""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import PurePath

import msgspec

from service.engine.jailed.gpkg import quoted
from service.engine.reading.work_file import UNGROUPED, WORK_DRIVER, WorkFile, facts_of, open_options
from service.engine.workspace import Workplace, staged_names
from service.errors import Rejection
from service.formats.facts import Facts, FieldType, Layer
from service.formats.format import Reader, Reading, reading_of
from service.formats.source import Source

NANS_FILE = "nans.gpkg"
LONGEST_QUERY = 1 << 16
"""Half of what an argument of a program may have."""
NOT_IN_QUERY = frozenset('\0"\\')
"""What releases of GDAL read differently in names that a query has in quotation marks."""
MOST_LAYERS = 20
"""As many runs are worth it."""
READERS = frozenset({Reader.OGR, Reader.DXF, Reader.PARTS, Reader.KML})
"""How files are read that hold such numbers and can be read once more at little cost."""


async def with_nans(place: Workplace, source: Source, found: WorkFile, facts: Facts) -> Facts:
    """`facts` from the work file with the numbers that are NaN in the columns of the upload that lack values.

    They are as before where its driver does not know the layers and columns by these names.
    """
    reading = reading_of(source.format)
    if "nans" not in reading.overflows or reading.reader not in READERS:
        return facts
    layers = []
    for layer in facts.layers[:MOST_LAYERS]:
        file, name = _origin(source, found, layer)
        counts = await _count(place, reading, file, name, list(_lacking_values(layer)))
        fields = (msgspec.structs.replace(field, nans=counts.get(field.name, 0)) for field in layer.fields)
        layers.append(msgspec.structs.replace(layer, fields=tuple(fields)))
    return msgspec.structs.replace(facts, layers=(*layers, *facts.layers[MOST_LAYERS:]))


def _origin(source: Source, found: WorkFile, layer: Layer) -> tuple[str, str]:
    """The file that holds a layer, and what the layer is called there."""
    files = staged_names(source)
    if reading_of(source.format).reader is not Reader.PARTS:
        return files[0], found.names.get(layer.table, layer.table)
    file = {f"t{number}": file for number, file in enumerate(files)}.get(layer.table, files[0])
    return file, PurePath(file).stem


async def _count(place: Workplace, reading: Reading, file: str, name: str, columns: Sequence[str]) -> Mapping[str, int]:
    """How many numbers in each of `columns` of a layer are NaN; empty if its driver does not tell."""
    are_nan = [f"{quoted(column)} <> {quoted(column)}" for column in columns]
    counted = ", ".join(f"CAST({is_nan} AS INTEGER) AS c{number}" for number, is_nan in enumerate(are_nan))
    query = f"SELECT {counted} FROM {quoted(name)} WHERE {' OR '.join(are_nan)}"  # noqa: S608 -- quoted
    if not columns or len(query.encode("utf-8", "replace")) > LONGEST_QUERY or not NOT_IN_QUERY.isdisjoint(name):
        return {}
    arguments = [*UNGROUPED, "-nlt", "NONE", *open_options(*reading.options), "-dialect", "OGRSQL", "-sql", query]
    try:
        await place.ogr2ogr([*arguments, NANS_FILE, file], (*reading.drivers, WORK_DRIVER), reading.environment)
        (rows,) = (await facts_of(place, NANS_FILE)).layers
    except Rejection:
        return {}
    finally:
        await place.discard(NANS_FILE)
    return dict(zip(columns, (int(field.total or 0) for field in rows.fields), strict=True))


def _lacking_values(layer: Layer) -> Iterator[str]:
    """The columns of decimals of which some values are missing, and whose names a query can have."""
    for field in layer.fields:
        lacks_values = field.filled is not None and field.filled < layer.features
        if field.type is FieldType.REAL and lacks_values and NOT_IN_QUERY.isdisjoint(field.name):
            yield field.name
