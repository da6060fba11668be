"""Findings about data that was never GeoJSON text, derived from facts about its tables."""

from service.formats.facts import Facts, Field, Layer
from service.geojson.findings import FieldFindings, Scan


def findings_of(facts: Facts) -> tuple[Scan, ...]:
    """What a scan would find in documents with one layer of `facts` each, as far as the facts show."""
    return tuple(
        Scan(
            kind="",
            layer_name=layer.name,
            features=layer.features,
            fields=tuple(_field(field, layer) for field in layer.fields),
            geometry_types=layer.geometry_types,
            parts=layer.collection_parts,
            null_geometries=layer.null_geometries if layer.is_spatial else 0,
        )
        for layer in facts.layers
        if not layer.is_derived
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
        oversize_numbers=field.beyond_dbf,
        first_oversize=field.first_beyond_dbf,
        infinite_numbers=field.infinite,
    )
