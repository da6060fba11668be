"""Findings about data that was never GeoJSON text, derived from facts about its tables."""

from collections import Counter

from service.formats.facts import Facts, Field, Layer
from service.geojson.findings import FieldFindings, Scan


def findings_of(facts: Facts) -> Scan:
    """What a scan would find in a document with all layers of `facts`, as far as the facts show."""
    layers = [layer for layer in facts.layers if not layer.is_derived]
    parts: Counter[str] = Counter()
    for layer in layers:
        parts.update(layer.collection_parts)
    return Scan(
        kind="",
        features=facts.feature_count,
        fields=tuple(_field(field, layer) for layer in layers for field in layer.fields),
        geometry_types=facts.histogram,
        parts=parts,
        null_geometries=sum(layer.null_geometries for layer in layers if layer.is_spatial),
    )


def _field(field: Field, layer: Layer) -> FieldFindings:
    return FieldFindings(
        name=field.name,
        type=field.type,
        values=layer.features,
        nulls=layer.features - (field.filled or 0),
        longest_bytes=field.longest_bytes,
        too_long=field.over_dbf_limit,
        empty=field.empty,
        trailing_blanks=field.trailing_blanks,
        cut_at_nul=field.cut_at_nul,
        inexact_numbers=field.inexact_in_dbf,
        infinite_numbers=field.infinite,
    )
