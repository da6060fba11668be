"""What each output cannot hold, in words, derived from the columns of the format table that cause the warnings."""

from collections.abc import Callable, Iterator

from service.formats.format import ColumnRule, Writing
from service.formats.geometry import ALL_FAMILIES
from service.formats.values import VALUE_LOSSES

_COLUMNS: tuple[tuple[Callable[[Writing], object], str], ...] = (
    (lambda writing: not writing.multi_layer, "several layers"),
    (lambda writing: not writing.tables, "tables without geometry"),
    (lambda writing: not writing.null_geometry, "features without geometry"),
    (lambda writing: not writing.empty, "no features at all"),
    (lambda writing: not writing.z, "elevations"),
    (lambda writing: not writing.mixes_z, "features with and without elevations in one dataset"),
    (lambda writing: writing.level_areas, "several elevations in one area"),
    (lambda writing: not writing.m, "measures (M)"),
    (lambda writing: writing.m and not writing.mixes_z, "features with and without measures in one dataset"),
    (lambda writing: not writing.curves, "curves"),
    (lambda writing: writing.one_family, "points, lines and areas in one dataset"),
    (lambda writing: not writing.records_crs, "its coordinate system"),
    (lambda writing: writing.epsg, "coordinates in other systems than EPSG:4326"),
    (lambda writing: writing.attributes is not None, "attributes"),
    (lambda writing: writing.column_names not in {ColumnRule.ANY, ColumnRule.MEMBER}, "all names of columns"),
    (lambda writing: "*" in writing.empty_columns_lost, "columns without any value"),
    (
        lambda writing: writing.empty_columns_lost - {"*"},
        "columns of the names `name` and `description` without any value",
    ),
    (lambda writing: writing.empty_is_null and writing.loss_report, VALUE_LOSSES["empty_texts"].what),
    (lambda writing: writing.max_text_bytes, "texts of more than {0.max_text_bytes} bytes"),
    (lambda writing: writing.max_cell, "texts of more than {0.max_cell:,} characters in full"),
    (lambda writing: writing.max_rows, "more than {0.max_rows:,} features a layer"),
    (lambda writing: writing.max_columns, "more than {0.max_columns:,} columns"),
    (lambda writing: writing.max_with_own, "more than {0.max_with_own} columns, those of its own elements among them"),
    (lambda writing: writing.max_record_bytes, "columns of more than {0.max_record_bytes:,} bytes together"),
)
"""Conditions on how a format is written, and what it cannot hold if they are met."""


def cannot_hold(writing: Writing) -> Iterator[str]:
    """What a format written this way cannot hold: it is refused, or reported in `warnings`, where it occurs."""
    families = sorted(f"{family}s" for family in ALL_FAMILIES - writing.holds)
    yield from ("areas" if family == "polygons" else family for family in families)
    yield from sorted(f"{name} as one feature" for name in writing.splits)
    yield from (words.format(writing) for applies, words in _COLUMNS if applies(writing))
    if writing.attributes is None:
        yield from (loss.what for kind, loss in VALUE_LOSSES.items() if kind in writing.value_losses)
