"""What each output cannot hold, in words, derived from the columns of the format table that cause the warnings."""

from collections.abc import Callable, Iterator, Mapping

from service.formats.format import ColumnRule, Writer, Writing
from service.formats.geometry import ALL_FAMILIES
from service.formats.values import VALUE_LOSSES, Aspect

_COLUMNS: Mapping[Aspect, Mapping[str, Callable[[Writing], object]]] = {
    Aspect.LAYERS: {
        "several layers": lambda writing: not writing.multi_layer,
        "which layer a feature is of": lambda writing: writing.writer is Writer.TRACKS,
        "tables without geometry": lambda writing: not writing.tables,
        "features without geometry": lambda writing: not writing.null_geometry,
        "a dataset without features": lambda writing: not writing.empty,
        "more than {0.max_rows:,} features in a layer": lambda writing: writing.max_rows,
    },
    Aspect.GEOMETRIES: {
        "elevations": lambda writing: not writing.z,
        "features with and without elevations in one dataset": lambda writing: not writing.mixes_z,
        "different elevations within one area": lambda writing: writing.level_areas,
        "measures (M)": lambda writing: not writing.m,
        "features with and without measures in one dataset": lambda writing: writing.m and not writing.mixes_z,
        "curves": lambda writing: not writing.curves,
        "a mix of points, lines and areas in one dataset": lambda writing: writing.one_family,
        "areas within others without a hole there": lambda writing: writing.rings_alone,
    },
    Aspect.COORDINATES: {
        "a record of the coordinate system": lambda writing: not writing.records_crs,
        "coordinates in systems other than EPSG:4326": lambda writing: writing.epsg,
    },
    Aspect.COLUMNS: {
        "attributes": lambda writing: writing.attributes is not None,
        "arbitrary column names": lambda writing: (
            writing.column_names not in {ColumnRule.ANY, ColumnRule.MEMBER, ColumnRule.CASED_MEMBER}
        ),
        "columns without any value": lambda writing: "*" in writing.empty_columns_lost,
        "columns named `name` or `description` without any value": lambda writing: writing.empty_columns_lost - {"*"},
        "more than {0.max_with_own} columns, including the format's own elements": lambda writing: writing.max_with_own,
        "columns of more than {0.max_record_bytes:,} bytes together": lambda writing: writing.max_record_bytes,
        "more than {0.max_columns:,} columns": lambda writing: writing.max_columns,
    },
    Aspect.TEXTS: {
        VALUE_LOSSES["empty_texts"].what: lambda writing: writing.empty_is_null and writing.loss_report,
        "texts of more than {0.max_text_bytes} bytes": lambda writing: writing.max_text_bytes,
        "texts of more than {0.max_readable_text_bytes:,} bytes": lambda writing: writing.max_readable_text_bytes,
        "texts of more than {0.max_cell:,} characters": lambda writing: writing.max_cell,
    },
}
"""What a format cannot hold, by aspect, if a condition on how it is written is met."""


def cannot_hold(writing: Writing) -> Mapping[Aspect, list[str]]:
    """What a format written this way cannot hold, by aspect: refused, or reported in `warnings`."""
    found: dict[Aspect, list[str]] = {aspect: [] for aspect in Aspect}
    for aspect, words in _limitations(writing):
        found[aspect].append(words)
    return {aspect: words for aspect, words in found.items() if words}


def _limitations(writing: Writing) -> Iterator[tuple[Aspect, str]]:
    families = sorted(f"{family}s" for family in ALL_FAMILIES - writing.holds)
    yield from ((Aspect.GEOMETRIES, "areas" if family == "polygons" else family) for family in families)
    yield from ((Aspect.GEOMETRIES, f"{name} as one feature") for name in sorted(writing.splits))
    for aspect, rows in _COLUMNS.items():
        yield from ((aspect, words.format(writing)) for words, applies in rows.items() if applies(writing))
    if writing.attributes is None:
        for kind, loss in VALUE_LOSSES.items():
            if kind in writing.value_losses:
                yield loss.aspect, loss.what
