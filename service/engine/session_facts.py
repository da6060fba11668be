"""Turns what the open run of a session found in an upload into the facts that the work file would yield.

Pure. If the two could differ, it returns no facts, and the upload goes through the work file.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Annotated, ClassVar, Literal

import msgspec
from msgspec import Meta

from service.engine.jailed.gpkg import WKB_TYPES, has_measures, split_code
from service.engine.jailed.tidy import FALSE, NEITHER, ROW_NUMBER, TRUE
from service.engine.jailed.values import counts_of
from service.engine.session import Answer
from service.formats.crs_database import MAX_CODE
from service.formats.facts import (
    MAX_COLUMNS,
    MAX_LAYERS,
    Count,
    Crs,
    DeclaredGeometry,
    Facts,
    Field,
    FieldType,
    Layer,
    Name,
    Shapes,
)
from service.formats.format import Reading
from service.formats.geometry import FAMILIES

SIMPLE_CODES = range(1, 7)
"""Points, lines, polygons and Multi types, which need no edit for any target."""
NUMBERS = frozenset({FieldType.INTEGER, FieldType.REAL})
SAME = "same"
Code = Annotated[int, Meta(ge=0, lt=100)]
_TABLE = re.compile(r"t\d{1,4}")
Column = tuple[int, str, str]


class SeenColumn(Field, frozen=True, gc=False):
    """A column with the types that its texts fit, their common prefix, and its values if there are few."""

    like_geometries: Count = 0
    """How many of its texts begin like a geometry."""
    unsteady: Count = 0
    """How many of its times the work file would change: to milliseconds, or because they are none."""
    unnumbered: Count = 0
    """How many of its ids do not end with the number of their feature."""
    begins_empty: bool = False
    """Whether the first feature has no value in this column."""
    is_logical: bool = False
    """Whether its texts stand for true, false and neither, as in a .dbf."""
    fits: Annotated[tuple[FieldType, ...], Meta(max_length=5)] = ()
    prefix: Name = ""
    values: Annotated[tuple[Name, ...], Meta(max_length=3)] | None = None


class SeenShapes(Shapes, frozen=True, kw_only=True):
    """What a run tells of the geometries of a layer, with how many there are of each code of WKB."""

    geometries: Count
    codes: Annotated[Mapping[Code, Count], Meta(max_length=32)]
    labels: Count = 0
    """How many features are labels whose text only their style holds."""


class SeenLayer(SeenShapes, frozen=True, kw_only=True):
    """A layer, and the table that holds it."""

    name: Name
    table: str
    has_geometry_column: bool
    geometry_column: Name = ""
    """Its name if it has one."""
    geometry_type: Annotated[int, Meta(ge=0, lt=1 << 32)] = 0
    """The code of the type that it declares for all of its geometries, as in WKB."""
    system: Literal["none", "code", "other"]
    epsg: Annotated[int, Meta(ge=0, le=MAX_CODE)]
    columns: Annotated[tuple[SeenColumn, ...], Meta(max_length=MAX_COLUMNS)]

    def __post_init__(self) -> None:
        """Check the name of the table, which has no pattern: `formats.facts` says why."""
        if not _TABLE.fullmatch(self.table):
            raise ValueError("not the name of a table")


class Seen(Answer, frozen=True):
    """All layers of a file."""

    most_objects: ClassVar[int] = 1 << 15
    """A file with more columns, or a text with as many braces, needs the work file."""
    layers: Annotated[tuple[SeenLayer, ...], Meta(max_length=MAX_LAYERS)]
    has_too_many: bool = False
    """Whether all layers were to be read, but none was, because there are more."""


class Placed(Answer, frozen=True):
    """The geometries of a layer whose points were made from its columns."""

    layer: SeenShapes


def changes_of(layers: Sequence[SeenLayer], reading: Reading) -> dict[str, list[Column]] | None:
    """The columns of each table that are data, as `jailed.tidy` returns them; None if the work file is needed."""
    if not all(map(_is_plain, layers)):
        return None
    return {layer.table: list(_tidied(layer, reading)) for layer in layers}


def facts_of(layers: Sequence[SeenLayer], changes: Mapping[str, Sequence[Column]], reading: Reading) -> Facts:
    """The facts about `layers` after `changes`."""
    return Facts(layers=tuple(_layer(layer, changes[layer.table], reading) for layer in layers), in_work_file=True)


def with_logical(layer: SeenLayer, places: Sequence[int]) -> SeenLayer:
    """`layer` with the columns at `places` as logical ones."""
    columns = (
        msgspec.structs.replace(column, is_logical=True) if place in places else column
        for place, column in enumerate(layer.columns)
    )
    return msgspec.structs.replace(layer, columns=tuple(columns)) if places else layer


def _is_plain(layer: SeenLayer) -> bool:
    names = {column.name.casefold() for column in layer.columns}
    return (
        all(code in SIMPLE_CODES for code in layer.codes)
        and layer.system != "other"
        and len(names) == len(layer.columns)
        and all(column.name and not column.unsteady and not _is_time_of_day(column) for column in layer.columns)
        and not any(map(_is_unclear, layer.columns))
    )


def _is_time_of_day(column: SeenColumn) -> bool:
    """Whether the work file would normalize the texts of the column."""
    return bool(column.filled) and column.type is FieldType.TIME


def _tidied(layer: SeenLayer, reading: Reading) -> Iterator[Column]:
    taken = {column.name.casefold() for column in layer.columns}
    for place, column in enumerate(layer.columns):
        if _is_noise(layer, column, reading.noise_columns):
            continue
        bare = column.name.removeprefix(reading.column_prefix)
        name = bare if bare and bare.casefold() not in taken else column.name
        taken.add(name.casefold())
        guesses = reading.guesses_types and column.type is FieldType.TEXT and column.fits
        kind = str(column.fits[0]) if guesses else SAME
        yield place, name, FieldType.BOOLEAN if _is_logical(column) else kind


def _is_unclear(column: SeenColumn) -> bool:
    """Whether it is logical, but not known without a work file how many of its texts say something."""
    return column.is_logical and (column.values is None or NEITHER in column.values)


def _is_logical(column: SeenColumn) -> bool:
    values = set(column.values or ())
    return column.is_logical and column.type is FieldType.TEXT and values <= {"", *TRUE, *FALSE}


def _is_noise(layer: SeenLayer, column: SeenColumn, noise: Mapping[str, Sequence[str]]) -> bool:
    usual = noise.get(column.name, noise.get("*"))
    if usual is None:
        return False
    values = [_begins_or_is(value, column).replace("{layer}", layer.name) for value in usual]
    begins = tuple(value.removesuffix("*") for value in values if value.endswith("*"))
    exact = {"", *(value for value in values if not value.endswith("*"))}
    if column.values is None:
        return column.prefix.startswith(begins) if begins else False
    return all(value in exact or (begins and value.startswith(begins)) for value in column.values)


def _begins_or_is(usual: str, column: SeenColumn) -> str:
    """A usual value of `column`, or how it begins; values that number features are usual if all of them do."""
    if not usual.endswith(ROW_NUMBER):
        return usual
    return usual if column.unnumbered else f"{usual.removesuffix(ROW_NUMBER)}*"


def _layer(layer: SeenLayer, columns: Sequence[Column], reading: Reading) -> Layer:
    fields = [(layer.columns[place], _field(layer.columns[place], name, kind)) for place, name, kind in columns]
    types = {WKB_TYPES[code]: count for code, count in layer.codes.items()}
    guessed = [field.name for column, field in fields if _is_guess(column, reading)]
    return Layer(
        name=layer.name,
        table=layer.table,
        geometry_types={name: types[name] for name in FAMILIES if name in types},
        null_geometries=layer.features - layer.geometries,
        crs=Crs(known=layer.system == "code", epsg=layer.epsg or None) if layer.has_geometry_column else Crs(),
        declared=None if layer.geometries else _declared(layer.geometry_type),
        fields=tuple(field for _, field in fields),
        guessed_columns=tuple(guessed),
        **{name: getattr(layer, name) for name in Shapes.__struct_fields__},
    )


def _declared(code: int) -> DeclaredGeometry | None:
    """The type of geometries with a code, unless it stands for any."""
    basic, has_z = split_code(code)
    return DeclaredGeometry(WKB_TYPES[basic], has_z, has_measures(code)) if basic in SIMPLE_CODES else None


def _is_guess(column: SeenColumn, reading: Reading) -> bool:
    return bool(reading.numbers) and column.type in NUMBERS and column.name not in reading.numbers


def _field(column: SeenColumn, name: str, kind: str) -> Field:
    """The column as a field of its new type, with the counts that this type has."""
    final = column.type if kind == SAME else FieldType(kind)
    of_type = FieldType.TEXT if final is FieldType.TIME else final
    empty = column.empty if column.is_logical and final is FieldType.BOOLEAN else 0
    field = Field(name, of_type, filled=(column.filled or 0) - empty)
    return msgspec.structs.replace(field, **{key: getattr(column, key) for key in _COUNTED[of_type]})


_IN_RUNS = {FieldType.TEXT: ("nested", "longest_bytes", "over_dbf_limit"), FieldType.REAL: ("nans",)}
_COUNTED: Mapping[FieldType, Sequence[str]] = {kind: [*_IN_RUNS.get(kind, ()), *counts_of(kind)] for kind in FieldType}
"""What is counted in a column, by its type."""
