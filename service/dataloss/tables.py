"""Findings about data that was never GeoJSON text, derived from facts about its tables."""

import msgspec

from service.formats.facts import Facts
from service.geojson.findings import FieldFindings, Scan


def findings_of(facts: Facts) -> tuple[Scan, ...]:
    """What a scan would find in documents with one layer of `facts` each, as far as the facts show."""
    return tuple(
        Scan(
            kind="",
            layer_name=layer.name,
            features=layer.features,
            fields=tuple(FieldFindings(**msgspec.structs.asdict(field)) for field in layer.fields),
            geometry_types=layer.geometry_types,
            parts=layer.collection_parts,
            null_geometries=layer.null_geometries if layer.is_spatial else 0,
        )
        for layer in facts.layers
        if not layer.is_derived
    )
