"""What each output cannot hold, in words, derived from the columns of the format table that cause the warnings."""

from collections.abc import Callable, Iterator, Mapping
from enum import StrEnum

from service.formats.format import ColumnRule, Writer, Writing
from service.formats.geometry import ALL_FAMILIES
from service.formats.values import VALUE_LOSSES


class Aspect(StrEnum):
    """An aspect of a dataset that an output may be unable to hold, in the order of the documentation."""

    LAYERS = "Layers and features"
    GEOMETRIES = "Geometries"
    COORDINATES = "Coordinate systems"
    COLUMNS = "Columns"
    NUMBERS = "Types and numbers"
    TIMES = "Dates and times"
    TEXTS = "Text values"


_COLUMNS: tuple[tuple[Aspect, Callable[[Writing], object], str], ...] = (
    (Aspect.LAYERS, lambda writing: not writing.multi_layer, "several layers"),
    (Aspect.LAYERS, lambda writing: writing.writer is Writer.TRACKS, "which layer a feature is of"),
    (Aspect.LAYERS, lambda writing: not writing.tables, "tables without geometry"),
    (Aspect.LAYERS, lambda writing: not writing.null_geometry, "features without geometry"),
    (Aspect.LAYERS, lambda writing: not writing.empty, "a dataset without features"),
    (Aspect.LAYERS, lambda writing: writing.max_rows, "more than {0.max_rows:,} features in a layer"),
    (Aspect.GEOMETRIES, lambda writing: not writing.z, "elevations"),
    (Aspect.GEOMETRIES, lambda writing: not writing.mixes_z, "features with and without elevations in one dataset"),
    (Aspect.GEOMETRIES, lambda writing: writing.level_areas, "different elevations within one area"),
    (Aspect.GEOMETRIES, lambda writing: not writing.m, "measures (M)"),
    (
        Aspect.GEOMETRIES,
        lambda writing: writing.m and not writing.mixes_z,
        "features with and without measures in one dataset",
    ),
    (Aspect.GEOMETRIES, lambda writing: not writing.curves, "curves"),
    (Aspect.GEOMETRIES, lambda writing: writing.one_family, "a mix of points, lines and areas in one dataset"),
    (Aspect.GEOMETRIES, lambda writing: writing.rings_alone, "areas within others without a hole there"),
    (Aspect.COORDINATES, lambda writing: not writing.records_crs, "a record of the coordinate system"),
    (Aspect.COORDINATES, lambda writing: writing.epsg, "coordinates in systems other than EPSG:4326"),
    (Aspect.COLUMNS, lambda writing: writing.attributes is not None, "attributes"),
    (
        Aspect.COLUMNS,
        lambda writing: writing.column_names not in {ColumnRule.ANY, ColumnRule.MEMBER, ColumnRule.CASED_MEMBER},
        "arbitrary column names",
    ),
    (Aspect.COLUMNS, lambda writing: "*" in writing.empty_columns_lost, "columns without any value"),
    (
        Aspect.COLUMNS,
        lambda writing: writing.empty_columns_lost - {"*"},
        "columns named `name` or `description` without any value",
    ),
    (
        Aspect.COLUMNS,
        lambda writing: writing.max_with_own,
        "more than {0.max_with_own} columns, including the format's own elements",
    ),
    (
        Aspect.COLUMNS,
        lambda writing: writing.max_record_bytes,
        "columns of more than {0.max_record_bytes:,} bytes together",
    ),
    (Aspect.COLUMNS, lambda writing: writing.max_columns, "more than {0.max_columns:,} columns"),
    (Aspect.TEXTS, lambda writing: writing.empty_is_null and writing.loss_report, VALUE_LOSSES["empty_texts"].what),
    (Aspect.TEXTS, lambda writing: writing.max_text_bytes, "texts of more than {0.max_text_bytes} bytes"),
    (
        Aspect.TEXTS,
        lambda writing: writing.max_readable_text_bytes,
        "texts of more than {0.max_readable_text_bytes:,} bytes",
    ),
    (Aspect.TEXTS, lambda writing: writing.max_cell, "texts of more than {0.max_cell:,} characters"),
)
"""Conditions on how a format is written, and what it cannot hold if they are met."""
_VALUES: Mapping[str, Aspect] = dict.fromkeys(
    (
        "fractions",
        "leap_seconds",
        "lost_leap_seconds",
        "zones",
        "mixed_zones",
        "offsets",
        "unzoned",
        "moments",
        "dates",
        "before_1000",
        "old_dates",
        "clock_times",
        "durations",
    ),
    Aspect.TIMES,
) | dict.fromkeys(
    (
        "like_numbers",
        "leading_blanks",
        "space_around",
        "uneven_space",
        "carriage_returns",
        "control",
        "layer_names",
        "like_json",
        "like_markup",
        "like_formulas",
        "like_escapes",
        "empty_texts",
    ),
    Aspect.TEXTS,
)
"""The aspect that a kind of `VALUE_LOSSES` belongs to; all others are types and numbers."""


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
    yield from ((aspect, words.format(writing)) for aspect, applies, words in _COLUMNS if applies(writing))
    if writing.attributes is None:
        for kind, loss in VALUE_LOSSES.items():
            if kind in writing.value_losses:
                yield _VALUES.get(kind, Aspect.NUMBERS), loss.what
