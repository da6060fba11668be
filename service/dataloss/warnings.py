"""Losses of a conversion to Shapefile for which the report has no member; they go into `warnings` (contract 2)."""

from collections.abc import Callable, Iterator

from service.dataloss.findings import FieldFindings, Scan
from service.formats.facts import FieldType

NAMES_SHOWN = 5

_FIELD_WARNINGS: tuple[tuple[Callable[[FieldFindings], int], str], ...] = (
    (
        lambda field: field.nested,
        "{count} in {fields}: objects and arrays are written as JSON text.",
    ),
    (
        lambda field: field.clamped_integers,
        "{count} in {fields}: whole numbers beyond 64 bits are replaced by the largest ones.",
    ),
    (
        lambda field: field.inexact_numbers,
        "{count} in {fields}: numbers with more digits than a Shapefile keeps are rounded.",
    ),
    (
        lambda field: field.values - field.nulls if field.type in {FieldType.DATETIME, FieldType.TIME} else 0,
        "{count} in {fields}: times are written as text, since a Shapefile has dates only.",
    ),
    (
        lambda field: field.reworded_moments,
        "{count} in {fields}: the text begins like a date or a time, and only that much of it is kept.",
    ),
    (
        lambda field: field.empty,
        "{count} in {fields}: a Shapefile cannot tell empty text from a missing value.",
    ),
    (
        lambda field: field.trailing_blanks,
        "{count} in {fields}: blanks at the end of a text are lost.",
    ),
    (
        lambda field: field.cut_at_nul,
        "{count} in {fields}: a text with a NUL character ends before it.",
    ),
)

_SCAN_WARNINGS: tuple[tuple[Callable[[Scan], int], str], ...] = (
    (lambda scan: scan.null_geometries, "{count} without geometry: the row is written with an empty shape."),
    (lambda scan: scan.empty_geometries, "{count} with an empty geometry: the row is written with an empty shape."),
    (
        lambda scan: scan.dropped_ids,
        "{count} with an id beside the properties: it is not written; copy it into the properties to keep it.",
    ),
)


def extra_warnings(scan: Scan) -> list[str]:
    """One sentence for each kind of loss beside those that the report has a member for."""
    return [*_field_warnings(scan), *_scan_warnings(scan)]


def _field_warnings(scan: Scan) -> Iterator[str]:
    for count_in, sentence in _FIELD_WARNINGS:
        affected = {field.name: count for field in scan.fields if (count := count_in(field))}
        if affected:
            yield sentence.format(count=_counted(sum(affected.values()), "value"), fields=_listed(list(affected)))


def _scan_warnings(scan: Scan) -> Iterator[str]:
    for count_in, sentence in _SCAN_WARNINGS:
        count = count_in(scan)
        if count:
            yield sentence.format(count=_counted(count, "feature"))


def _counted(count: int, noun: str) -> str:
    return f"1 {noun}" if count == 1 else f"{count:,} {noun}s"


def _listed(names: list[str]) -> str:
    shown = ", ".join(names[:NAMES_SHOWN])
    return shown if len(names) <= NAMES_SHOWN else f"{shown} and {len(names) - NAMES_SHOWN} more"
