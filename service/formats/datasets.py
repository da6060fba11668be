"""The datasets of an output: names, types and columns of the layers of an input, and which of them are split."""

import re
from collections.abc import Mapping, Sequence

import msgspec

from service.formats.facts import Field, FieldType, Flaw, Layer
from service.formats.format import ColumnRule, Format, Writing, writing_of
from service.formats.geometry import FAMILIES, NO_GEOMETRY, SPLIT_FAMILIES, Family, declared_type
from service.formats.names import column_names, safe_name, unique

LAYER_NAME_BYTES = 80
ESCAPE, ESCAPED_MARK = re.compile("_(?=x[0-9A-Fa-f]{4}_)"), "_x005F_"
"""The mark of a code that programs take for a character, and the code of this mark."""


class WrittenColumn(msgspec.Struct, frozen=True):
    """A column of a layer, and the name under which it is written."""

    name: str
    written: str


class Dataset(msgspec.Struct, frozen=True, kw_only=True):
    """One dataset to write: a layer, or its features of one family."""

    layer: Layer
    name: str
    columns: tuple[WrittenColumn, ...]
    """Those of the layer that the target holds; drivers of some releases refuse the others."""
    geometry_type: str
    """The declared type: one name, "" for several families, "None" for a table."""
    features: int
    only_types: tuple[str, ...] = ()
    """The geometry types that go into this dataset; empty: all."""
    takes_nulls: bool = True
    """Whether features without geometry go into it."""
    linearise: bool = False
    flatten: bool = False
    """Whether its collections must contain simple geometries only."""

    def dimensions(self, writing: Writing) -> str:
        """The letters of the written dimensions beyond x and y: "", "Z", "M" or "ZM"."""
        may_have = self.layer.has_m or (self.layer.declared is not None and self.layer.declared.has_m)
        measures = may_have and writing.m and self.geometry_type != NO_GEOMETRY
        return ("Z" if self.declares_z else "") + ("M" if measures else "")

    @property
    def lacks_nulls(self) -> bool:
        """Whether its layer has features without geometry that do not go into it."""
        return bool(self.layer.null_geometries) and not self.takes_nulls

    @property
    def is_exploded(self) -> bool:
        """Whether collections are taken apart, so that their parts go into the datasets of their families."""
        return bool(self.only_types and self.layer.collection_parts)

    @property
    def has_areas_in_space(self) -> bool:
        """Whether it holds areas with elevations."""
        return self.declares_z and FAMILIES.get(self.geometry_type) is Family.POLYGON

    @property
    def has_unclear_holes(self) -> bool:
        """Whether holes do not follow from where the rings of all areas lie, as of areas above each other."""
        return Flaw.AMBIGUOUS in self.layer.flaws

    @property
    def declares_z(self) -> bool:
        """Whether its geometries are three-dimensional."""
        may_have = self.layer.has_z or (self.layer.declared is not None and self.layer.declared.has_z)
        return may_have and self.geometry_type != NO_GEOMETRY


def make_datasets(target: Format, stem: str, layers: Sequence[Layer]) -> tuple[Dataset, ...]:
    """The datasets that hold `layers` in the format `target`.

    A single layer is named after the upload; several layers keep their names as far as the target allows.
    """
    writing = writing_of(target)
    wanted = [stem] if len(layers) == 1 else [safe_name(layer.name) for layer in layers]
    if writing.reserved_layers:
        reserved = re.compile(writing.reserved_layers, re.IGNORECASE)
        wanted = [f"_{name}" if reserved.match(name) else name for name in wanted]
    names = unique([name[: writing.max_layer_name] for name in wanted], writing.max_layer_name or LAYER_NAME_BYTES)
    if writing.column_names in {ColumnRule.XML, ColumnRule.ELEMENT, ColumnRule.GML}:
        names = column_names(writing.column_names, [name.replace("-", "_") for name in names])  # as their drivers do
    made = [part for layer, name in zip(layers, names, strict=True) for part in _parts(writing, layer, name)]
    return _with_names_of_tables(writing, made) if writing.column_names is ColumnRule.GEODATABASE else tuple(made)


def _with_names_of_tables(writing: Writing, datasets: Sequence[Dataset]) -> tuple[Dataset, ...]:
    """`datasets` with the names that the driver would give them: tables are named by the same rule as columns."""
    names = column_names(writing.column_names, [dataset.name for dataset in datasets], writing.reserved_columns)
    pairs = zip(datasets, names, strict=True)
    return tuple(msgspec.structs.replace(dataset, name=name) for dataset, name in pairs)


def of_any_type(writing: Writing, dataset: Dataset) -> Dataset:
    """`dataset` without its declared type, if that would make holes of the parts into which an area is cut."""
    forces = dataset.geometry_type == "Polygon" and not writing.one_family
    return msgspec.structs.replace(dataset, geometry_type="") if forces else dataset


def needs_splitting(writing: Writing, layer: Layer) -> bool:
    """Whether one dataset of the target cannot hold all of `layer`."""
    if not writing.one_family:
        return False
    families = layer.families
    return len(families) > 1 or Family.COLLECTION in families


def needs_flattening(writing: Writing, layer: Layer) -> bool:
    """Whether collections of `layer` must contain simple geometries only, and may contain others."""
    return writing.flattens and "MultiPoint" in layer.collection_parts


def _parts(writing: Writing, layer: Layer, name: str) -> list[Dataset]:
    whole = Dataset(
        layer=layer,
        name=name,
        columns=_columns(writing, layer),
        geometry_type=_geometry_type(writing, layer),
        features=layer.features - (0 if writing.null_geometry else layer.null_geometries),
        takes_nulls=writing.null_geometry,
        linearise=layer.has_curves and not writing.curves,
        flatten=needs_flattening(writing, layer),
    )
    return _split(whole) if needs_splitting(writing, layer) else [whole]


def _geometry_type(writing: Writing, layer: Layer) -> str:
    if writing.declares and layer.declared is not None:
        return layer.declared.type
    return "" if _is_of_any(writing, layer) else _declared(layer.geometry_types)


def _is_of_any(writing: Writing, layer: Layer) -> bool:
    """Whether declaring a type would make lines of curves, or add dimensions to features that have none of them."""
    has_kept_curves = writing.curves and layer.has_curves
    has_less = layer.flat_geometries > 0 or (writing.m and layer.unmeasured_geometries > 0)
    return has_kept_curves or (bool(writing.type_options) and writing.mixes_z and has_less)


def _split(whole: Dataset) -> list[Dataset]:
    counts = {family: _types_of(whole.layer, family) for family in SPLIT_FAMILIES}
    present = [family for family in SPLIT_FAMILIES if counts[family]]
    if not present:
        return [msgspec.structs.replace(whole, geometry_type=NO_GEOMETRY)]
    most = max(present, key=lambda family: sum(counts[family].values()))
    nulls = whole.layer.null_geometries if whole.takes_nulls else 0
    return [
        msgspec.structs.replace(
            whole,
            name=f"{whole.name}_{family}" if len(present) > 1 else whole.name,
            geometry_type=_declared(counts[family]),
            features=sum(counts[family].values()) + (nulls if family is most else 0),
            only_types=tuple(counts[family]),
            takes_nulls=family is most,
        )
        for family in present
    ]


def _types_of(layer: Layer, family: Family) -> dict[str, int]:
    counts = {name: count for name, count in layer.geometry_types.items() if FAMILIES[name] is family and count}
    for name, count in layer.collection_parts.items():
        if FAMILIES[name] is family and count:
            counts[name] = counts.get(name, 0) + count
    return counts


def _declared(types: Mapping[str, int]) -> str:
    present = [name for name, count in types.items() if count]
    return (declared_type(present) or "") if present else NO_GEOMETRY


def _columns(writing: Writing, layer: Layer) -> tuple[WrittenColumn, ...]:
    named = zip(layer.fields, written_names(writing, layer), strict=True)
    return tuple(WrittenColumn(field.name, name) for field, name in named if not _is_left_out(writing, field))


def _is_left_out(writing: Writing, field: Field) -> bool:
    return field.type is FieldType.BINARY and "binary" in writing.value_losses


_MOMENTS = frozenset({FieldType.DATE, FieldType.DATETIME})


def written_names(writing: Writing, layer: Layer) -> tuple[str, ...]:
    """The names under which the columns of `layer` are written, in the same order."""
    held = {name: types for family in layer.families for name, types in writing.typed_columns.get(family, {}).items()}
    filled = [field for field in layer.fields if field.filled != 0]
    typed = [field for field in filled if field.name.casefold() in held] if held else []
    unheld = [field.name for field in typed if field.type not in held[field.name.casefold()] or _is_extreme(field)]
    if writing.time_columns:
        named_like_times = [field for field in filled if field.name.casefold() in writing.time_columns]
        unheld += [field.name for field in named_like_times if field.type not in _MOMENTS]
    names = [field.name for field in layer.fields]
    if layer.has_z and Family.POINT in layer.families:  # the third coordinates go there
        unheld += [name for name in names if name.casefold() == writing.elevation_column]
    apart = names
    if writing.stripped_prefix or writing.geometry_elements:
        apart = [_apart(writing, name) for name in names]
    if "like_escapes" in writing.value_losses:
        apart = [ESCAPE.sub(ESCAPED_MARK, name) for name in apart]
    written = column_names(writing.column_names, apart, (*writing.reserved_columns, *unheld))
    return written if layer.families else _with_header(writing, written)


def _with_header(writing: Writing, names: tuple[str, ...]) -> tuple[str, ...]:
    """`names`, the first of which is changed if the driver would write none of them."""
    numbered = tuple(f"{writing.unwritten_names}{number}" for number in range(1, len(names) + 1))
    return (f"{names[0]}_", *names[1:]) if writing.unwritten_names and names and names == numbered else names


def _apart(writing: Writing, name: str) -> str:
    """`name` without what the driver strips, and apart from elements that would then, or always, have its name."""
    prefix, bare = writing.stripped_prefix, name
    while prefix and bare.startswith(prefix):
        bare = bare.removeprefix(prefix)
    is_taken = bare != name and any(bare.casefold() in own for own in writing.own_columns.values())
    return f"{bare}_" if is_taken or bare in writing.geometry_elements else bare


def _is_extreme(field: Field) -> bool:
    """Whether it has numbers that a driver may cut if they are no texts: beyond 32 bits, very large, or very small."""
    return bool(field.beyond_32_bits or field.beyond_dbf or field.tiny)
