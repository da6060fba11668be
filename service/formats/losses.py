"""What a target cannot hold: refused if nothing useful would be left, otherwise reported as a warning."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from unicodedata import normalize

import msgspec

from service.errors import Rejection
from service.formats.datasets import Dataset
from service.formats.facts import Facts, Field, Flaw, Flaws, Layer, Occurrence
from service.formats.format import Format, Writer, Writing, reading_of, writing_of
from service.formats.geometry import FAMILIES, NO_GEOMETRY
from service.formats.names import LISTED, counted, first_of, listed, quotes, shown
from service.formats.values import value_warnings

DBF_TEXT_BYTES = (80, 254)
HOLLOW = (
    "Parts without any position, such as EMPTY in MULTIPOINT (EMPTY, (1 1)), were left out of the geometry of {count}."
)
_FLAWS = {
    Flaw.HOLLOW: HOLLOW,
    Flaw.NOWHERE: "Coordinates that are infinite or not numbers (NaN): the geometry of {count} became missing.",
    Flaw.HEIGHTLESS: "Elevations that are infinite or not numbers (NaN) became 0 in {count}.",
    Flaw.UNCLOSED: "Rings of areas do not end where they begin in {count}, and were written so; programs may refuse "
    "such an area, or the whole result. Close them and send the file again.",
    Flaw.SINGLE: "Lines, or rings of areas, have a single position in {count}; programs may refuse such a geometry, or "
    "the whole result. Leave them out, or make points of them, and send the file again.",
}
_OUTLYING = {
    Flaw.OUTLYING: "Holes lie outside of their areas in {count}: where rings have the wrong order or direction, holes "
    "and areas were exchanged. Repair them and send the file again.",
    Flaw.NESTED: "Rings have the wrong direction in {count} of areas around others: holes among them became areas of "
    "their own. Repair them and send the file again.",
}
_AMBIGUOUS = {
    Flaw.AMBIGUOUS: "{target} stores rings of areas, but not which of them are holes. In {count}, an area lies within "
    "another that has no hole there, or a hole lies outside of its area: programs take one for the other. Repair them "
    "and send the file again, or choose another outputFormat, such as GeoPackage."
}
WKT_PER_BYTE = 2.5
"""Characters of WKT per byte of binary geometry, at most, for coordinates of ordinary precision."""


class _Misread(msgspec.Struct, frozen=True):
    """What could not be read as the file says: the names in facts of its count and first place, and a sentence."""

    count: str
    first: str
    noun: str
    sentence: str


_MISREAD = (
    _Misread(
        "unplaced_rows",
        "first_unplaced_row",
        "row",
        "The coordinates in {count} of {layer} could not be read, first in row {first}, not counting a header; the "
        "texts were kept, without geometry. Write decimal numbers without separators of thousands, such as 5707493.59 "
        "and -7.25, or geometries in WKT, and send the file again.",
    ),
    _Misread(
        "mended_texts",
        "first_mended",
        "text",
        "The encoding that the file declares is unknown, or not that of {count} of {layer}, first in feature {first}: "
        "Windows-1252 was assumed, except for UTF-8 that is cut within its last character, which became U+FFFD. If "
        "letters are wrong, correct what the file declares (in the .cpg of a shapefile, the charset of a .mif), or "
        "save its texts as UTF-8, and send it again.",
    ),
)

_GOT_0 = "{target} stores measures for all features of a layer or for none; {count} without got 0."
_KEPT_WITHOUT = (
    "{target} keeps {features} without measures (M) beside others with them; but programs such as QGIS show measures "
    "only if the first feature has some."
)
"""What is told of features without measures in a layer that has some."""


PAIRS_UNREAD = "Pairs in one cell, such as 52.5, 13.4, are not read: make two columns of them, such as lat and lon."
UNPLACED = (
    "No feature has a geometry. If columns hold coordinates, name them in xField and yField, or in wktField. "
    + PAIRS_UNREAD
)
OF_CELLS = frozenset({Writer.PLACES, Writer.WORKBOOK})
"""The writers of tables, in which a geometry is a cell."""


def refuse_unrepresentable(target: Format, layers: Sequence[Layer]) -> None:
    """Refuse what `target` cannot represent (interface 1).

    Raises:
        Rejection: names what the target cannot hold, how much of it there is, and what to do.
    """
    writing = writing_of(target)
    if not writing.tables and not any(layer.is_spatial for layer in layers):
        raise Rejection(
            f"{target.title} stores geometry, and no feature of the file has any. Choose CSV or GeoJSON; or, if "
            "columns of a CSV, XLSX or ODS file are coordinates, name them in xField and yField, or in wktField."
        )
    has_features = any(layer.features for layer in layers)
    if writing.writer in OF_CELLS and has_features and not any(layer.is_spatial or layer.fields for layer in layers):
        raise Rejection(f"{target.title} stores cells, and the file has neither columns nor positions. Choose GeoJSON.")
    if not writing.empty and not has_features:
        raise Rejection(f"The file holds no features, and an empty {target.title} cannot be read. Choose GeoJSON.")
    for layer in layers:
        _refuse_families(target, writing, layer)
        _refuse_size(target, writing, layer)


def told_of_reading(target: Format, facts: Facts) -> tuple[str, ...]:
    """What is told of the source; that it has no geometries only if it is not empty and does not stay a table."""
    is_missed = facts.is_unplaced and facts.feature_count and writing_of(target).writer not in OF_CELLS
    return (*facts.warnings, UNPLACED) if is_missed else facts.warnings


def find_losses(target: Format, datasets: Sequence[Dataset]) -> tuple[str, ...]:
    """Warnings about everything that is lost or renamed when `datasets` are written in the format `target`."""
    layers = list({dataset.layer.name: dataset.layer for dataset in datasets}.values())
    writing = writing_of(target)
    return tuple(
        warning
        for warnings in (
            _layer_names(target, writing, datasets),
            _hidden_tables(target, writing, datasets),
            _splits(target, writing, datasets),
            _attributes(target, writing, layers),
            _empty_columns(target, writing, layers),
            _empty_layers(target, writing, layers),
            _column_renames(datasets) if writing.attributes is None else (),
            _changed_by_reading(layers),
            _geometries(target, writing, datasets, layers),
            _values(target, writing, layers),
            _guesses(layers),
            _misread(layers),
            value_warnings(target, layers),
        )
        for warning in warnings
    )


def _refuse_families(target: Format, writing: Writing, layer: Layer) -> None:
    foreign = {name: count for name, count in layer.geometry_types.items() if FAMILIES[name] not in writing.holds}
    if sum(foreign.values()):
        held = " and ".join(sorted(f"{family}s" for family in writing.holds))
        found = ", ".join(f"{count} {name}" for name, count in foreign.items())
        raise Rejection(
            f"{target.title} stores {held} only; the file also holds {found}. "
            "Choose another outputFormat, such as GeoPackage or KML, or leave those features out."
        )


def _refuse_size(target: Format, writing: Writing, layer: Layer) -> None:
    if writing.max_rows is not None and layer.features > writing.max_rows:
        raise Rejection(
            f"{target.title} holds {writing.max_rows:,} rows per sheet; {shown(layer.name)!r} has {layer.features:,}. "
            "Choose CSV, or split the file."
        )
    for family in layer.families & writing.own_columns.keys():
        filled = {field.name.casefold() for field in layer.fields if field.filled != 0}
        own = writing.own_columns[family]
        further, most = len(filled - own), writing.max_with_own - len(own)
        if further > most:
            raise Rejection(
                f"Programs such as QGIS read {most} columns of a {family} of {target.title} beside the elements of the "
                f"format; {shown(layer.name)!r} has {further}. Choose another outputFormat, such as GeoPackage, or "
                "leave columns out."
            )
    readable = writing.max_readable_text_bytes
    longest = max(layer.fields, key=lambda field: field.longest_bytes, default=None)
    if readable is not None and longest is not None and longest.longest_bytes > readable:
        raise Rejection(
            f"Programs such as QGIS cannot read a {target.title} with a text of more than {readable:,} bytes; "
            f"{shown(longest.name)!r} of {shown(layer.name)!r} has one of {longest.longest_bytes:,}. Choose another "
            "outputFormat, such as KML, or shorten it."
        )
    if writing.max_columns is not None and len(layer.fields) > writing.max_columns:
        raise Rejection(
            f"{target.title} holds {writing.max_columns:,} columns; {shown(layer.name)!r} has {len(layer.fields):,}. "
            "Choose GeoPackage, or leave columns out."
        )
    if writing.max_record_bytes is not None and _record_bytes(writing, layer.fields) > writing.max_record_bytes:
        raise Rejection(
            f"The {len(layer.fields)} columns are wider together than {target.title} can store "
            f"({writing.max_record_bytes:,} bytes per record). Choose GeoPackage, or leave columns out."
        )


def _record_bytes(writing: Writing, fields: Iterable[Field]) -> int:
    narrow, wide = (writing.text_bytes, writing.text_bytes) if writing.text_bytes else DBF_TEXT_BYTES
    return 1 + sum(writing.widths.get(field.type) or min(max(field.longest_bytes, narrow), wide) for field in fields)


def _layer_names(target: Format, writing: Writing, datasets: Sequence[Dataset]) -> Iterator[str]:
    layers = len({dataset.layer.name for dataset in datasets})
    if layers > 1 and writing.writer is Writer.TRACKS:
        yield (
            f"{target.title} stores no layers; the features of {layers:,} layers were written together, without their "
            "names."
        )
    elif layers > 1:
        renamed = [
            (dataset.layer.name, dataset.name)
            for dataset in datasets
            if dataset.name != dataset.layer.name and not dataset.only_types
        ]
        if renamed:
            yield f"Layers were renamed: {_pairs(renamed)}."


def _hidden_tables(target: Format, writing: Writing, datasets: Sequence[Dataset]) -> Iterator[str]:
    hidden = [dataset.name for dataset in datasets if dataset.geometry_type == NO_GEOMETRY]
    if hidden and writing.hides_tables:
        yield (
            f"{target.title} registers geometries alone: programs such as QGIS show tables without any "
            f"({listed(quotes(hidden))}) only if told to list all tables."
        )


def _splits(target: Format, writing: Writing, datasets: Sequence[Dataset]) -> Iterator[str]:
    split = [dataset for dataset in datasets if dataset.only_types]
    if split and len(split) > len({dataset.layer.name for dataset in split}):
        parts = ", ".join(f"{dataset.name} ({dataset.features:,})" for dataset in split[:LISTED])
        yield f"{target.title} holds one family of geometries per dataset, so features were put into {parts}."
    layers = {dataset.layer.name: dataset.layer for dataset in datasets}.values()
    for name in sorted(writing.splits | ({"GeometryCollection"} if writing.one_family else set())):
        count = sum(layer.geometry_types.get(name, 0) for layer in layers)
        if count:
            yield f"{target.title} stores no {name}; those of {counted(count, 'feature')} were split into their parts."


def _attributes(target: Format, writing: Writing, layers: Sequence[Layer]) -> Iterator[str]:
    if writing.attributes is None:
        return
    lost = [field.name for layer in layers for field in layer.fields if field.name not in writing.attributes]
    if lost:
        yield f"{target.title} cannot store these attributes, which were left out: {listed(quotes(lost))}."


def _empty_columns(target: Format, writing: Writing, layers: Sequence[Layer]) -> Iterator[str]:
    lost = {
        field.name: None
        for layer in layers
        for field in layer.fields
        if field.filled == 0 and not writing.empty_columns_lost.isdisjoint({field.name.lower(), "*"})
    }
    if lost:
        left = listed(quotes(lost))
        yield f"{target.title} cannot store these columns without any value, which were left out: {left}."


def _empty_layers(target: Format, writing: Writing, layers: Sequence[Layer]) -> Iterator[str]:
    """What is lost of what layers without features declare."""
    for layer in layers:
        if layer.features:
            continue
        if layer.fields and not writing.empty_columns:
            yield (
                f"{target.title} stores no columns without features; {counted(len(layer.fields), 'column')} of the "
                f"layer {shown(layer.name)!r} {'was' if len(layer.fields) == 1 else 'were'} left out."
            )
        if layer.declared is not None and not writing.declares:
            yield (
                f"{target.title} does not store the geometry type of a layer without geometries; the layer "
                f"{shown(layer.name)!r}, which has no features, declares {layer.declared.type}."
            )


def _column_renames(datasets: Sequence[Dataset]) -> Iterator[str]:
    renamed = {
        (column.name, column.written): None
        for dataset in datasets
        for column in dataset.columns
        if column.name != column.written
    }
    if renamed:
        yield f"Columns were renamed: {_pairs(renamed)}."


def exchanged_rings(layers: Sequence[Layer]) -> Iterator[str]:
    """What is told of areas whose driver goes by the direction of rings."""
    return _told_of(_OUTLYING, layers)


def _told_of(sentences: Mapping[Flaw, str], layers: Sequence[Layer]) -> Iterator[str]:
    return flaw_warnings(sentences, [(layer.name, layer.flaws) for layer in layers])


def flaw_warnings(sentences: Mapping[Flaw, str], layers: Sequence[tuple[str, Flaws]]) -> Iterator[str]:
    """Of each flaw that has a sentence and occurs, how often it does in all layers, and where first."""
    if not any(flaws for _, flaws in layers):
        return
    for flaw, sentence in sentences.items():
        found = [(name, flaws.get(flaw, Occurrence())) for name, flaws in layers]
        if count := sum(one.count for _, one in found):
            first = first_of((name, (one.first,)) for name, one in found)
            yield sentence.format(count=counted(count, "feature")) + first


def _changed_by_reading(layers: Sequence[Layer]) -> Iterator[str]:
    if empty := sum(layer.empty_geometries for layer in layers):
        yield f"Geometries without any position, such as POINT EMPTY ({empty:,}), became missing."
    yield from _told_of(_FLAWS, layers)
    if surfaces := sum(layer.surfaces for layer in layers):
        yield (
            f"Surfaces of triangles or other areas (TIN, PolyhedralSurface, Triangle; {surfaces:,}) became "
            "polygons: the areas were kept, but not that they are one surface."
        )


def _geometries(
    target: Format, writing: Writing, datasets: Sequence[Dataset], layers: Sequence[Layer]
) -> Iterator[str]:
    nulls = sum(layer.null_geometries for layer in layers)
    if nulls and not writing.null_geometry:
        yield f"Features without geometry ({nulls:,}) were left out, because {target.title} stores none."
    if not writing.z and any(layer.has_z for layer in layers):
        yield f"{target.title} stores no elevations; they were left out."
    flat = sum(layer.flat_geometries for layer in layers)
    if writing.z_options and any(layer.has_z for layer in layers):
        flat += sum(sum(layer.geometry_types.values()) for layer in layers if not layer.has_z)
    if flat and writing.z and not writing.mixes_z:
        scope = "file" if writing.z_options else "layer"
        yield f"{target.title} stores elevations for all features of a {scope} or for none; {flat:,} without got 0."
    sloping = sum(layer.sloping_areas for layer in layers)
    if sloping and writing.level_areas:
        yield (
            f"{target.title} stores one elevation for an area, that of its first point; the others in "
            f"{counted(sloping, 'area')} were left out."
        )
    unmeasured = sum(layer.unmeasured_geometries for layer in layers)
    if unmeasured and writing.m and not writing.mixes_z:
        yield (_KEPT_WITHOUT if reading_of(target).absent_measures else _GOT_0).format(
            target=target.title, features=counted(unmeasured, "feature"), count=f"{unmeasured:,}"
        )
    if not writing.m and any(layer.has_m for layer in layers):
        yield f"{target.title} stores no measures (M); they were left out."
    if writing.rings_alone:
        named = {flaw: sentence.replace("{target}", target.title) for flaw, sentence in _AMBIGUOUS.items()}
        yield from _told_of(named, layers)
    if any(dataset.linearise for dataset in datasets):
        yield (
            f"{target.title} stores no curves, nor types that may have some, such as MultiSurface; any curves "
            "became lines of short segments."
        )


_UNLESS_FIRST = (
    " If Windows-1252 has every character of the texts, {limit} characters of each are kept; otherwise the limit "
    "applies to bytes of UTF-8, and the last character of a cut value may be damaged."
)


def _values(target: Format, writing: Writing, layers: Sequence[Layer]) -> Iterator[str]:
    fields = [field for layer in layers for field in layer.fields]
    limit = writing.max_text_bytes
    cut = [field for field in fields if limit is not None and field.longest_bytes > limit]
    if cut:
        found = ", ".join(f"{shown(field.name)!r} ({counted(field.over_dbf_limit, 'value')})" for field in cut[:LISTED])
        unless = _UNLESS_FIRST.format(limit=limit) if writing.first_encoding else ""
        yield f"{target.title} stores {limit} bytes per text; longer values were cut in {found}.{unless}"
    elsewhere = writing.columns_elsewhere
    if elsewhere is not None and any(len(layer.fields) > elsewhere for layer in layers):
        yield f"Many programs read only the first {elsewhere:,} columns of {target.title}."
    if writing.max_cell is not None and _has_long_cell(layers, writing.max_cell):
        yield f"Some cells are longer than the {writing.max_cell:,} characters that spreadsheet programs show in full."


def _guesses(layers: Sequence[Layer]) -> Iterator[str]:
    guessed = [name for layer in layers if not layer.is_derived for name in layer.guessed_columns]
    if guessed:
        yield (
            f"The values of {listed(quotes(guessed))} look like numbers and were read as such: leading zeros, plus "
            "signs, exponents and trailing zeros are lost, and integers beyond 2,147,483,647 became that number."
        )


def _misread(layers: Sequence[Layer]) -> Iterator[str]:
    for misread in _MISREAD:
        for layer in layers:
            if count := getattr(layer, misread.count):
                told = counted(count, misread.noun)
                first = getattr(layer, misread.first)
                yield misread.sentence.format(count=told, layer=repr(shown(layer.name)), first=f"{first:,}")


def _has_long_cell(layers: Sequence[Layer], limit: int) -> bool:
    return any(
        (
            layer.longest_geometry_bytes * WKT_PER_BYTE > limit
            and FAMILIES.keys() & layer.geometry_types.keys() != {"Point"}
        )
        or any(field.longest_bytes > limit for field in layer.fields)
        for layer in layers
    )


def _pairs(pairs: Iterable[tuple[str, str]]) -> str:
    return listed([f"{shown(old)!r} to {shown(new)!r}{_difference(old, new)}" for old, new in pairs])


def _difference(old: str, new: str) -> str:
    """What two names that look the same differ in; "" if it can be seen."""
    return " (letters with their accents as one character)" if normalize("NFC", old) == new else ""
