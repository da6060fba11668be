"""Which layers of an input go into an output (several layers, and a target that stores one: interface 7)."""

from collections.abc import Collection, Iterable, Sequence

import msgspec

from service.errors import LayerCount, MultipleLayers, Rejection
from service.formats.facts import Facts, Layer
from service.formats.format import Format, reading_of, writing_of
from service.formats.names import counted, safe_name, shown
from service.formats.request import ConversionRequest

LISTED = 30


def choose_layers(
    source: Format, target: Format, facts: Facts, request: ConversionRequest
) -> tuple[tuple[Layer, ...], tuple[str, ...]]:
    """The layers to write, and warnings about those that are left out.

    Raises:
        MultipleLayers: several layers qualify and the target stores one.
        Rejection: the request names a layer that is not there, or the input holds no layer at all.
    """
    if request.layer is not None:
        chosen = _named(facts.layers, request.layer)
        points = [layer for layer in facts.layers if _is_derived_from(source, layer, chosen)]
        asked = msgspec.structs.replace(chosen, is_derived=False)  # it is asked for
        return (asked,), _derived_ones(source, points)
    filled = [layer for layer in facts.layers if layer.features and (not layer.is_derived or _keeps_derived(target))]
    if not filled:
        first = _first(facts.layers)
        return (first,), _empty_ones(source, facts, first)
    derived = [layer for layer in facts.layers if layer.is_derived and not _keeps_derived(target)]
    dropped = (*_empty_ones(source, facts), *_derived_ones(source, derived))
    if writing_of(target).multi_layer:
        return tuple(filled), dropped
    return _the_only_one(target, filled, dropped)


def _the_only_one(
    target: Format, filled: Sequence[Layer], dropped: tuple[str, ...]
) -> tuple[tuple[Layer, ...], tuple[str, ...]]:
    spatial = [layer for layer in filled if layer.is_spatial]
    candidates = spatial or filled
    if len(candidates) > 1:
        raise MultipleLayers(
            f"The input holds {len(candidates)} layers and {target.title} stores one. Export one layer to its own "
            "file, name one in the field layer, or choose a target for several layers such as GeoPackage.",
            target_format=target.token,
            layers=[LayerCount(layer=layer.name, features=layer.features) for layer in candidates],
        )
    tables = [layer.name for layer in filled if layer not in candidates]
    return tuple(candidates), (
        *dropped,
        *(f"The table {shown(name)!r} without geometry was left out." for name in tables),
    )


def _keeps_derived(target: Format) -> bool:
    return writing_of(target).derived_layers


def _first(layers: Sequence[Layer]) -> Layer:
    if not layers:
        raise Rejection(
            "The file holds no layer or table that can be read: it is empty or damaged, or arranged in an unusual way. "
            "Open it in the program that wrote it, export it as GeoPackage, and send that."
        )
    return next((layer for layer in layers if not layer.is_derived), layers[0])


def _empty_ones(source: Format, facts: Facts, kept: Layer | None = None) -> tuple[str, ...]:
    if reading_of(source).fixed_layers:
        return ()
    empty = [layer.name for layer in facts.layers if not layer.features and layer is not kept]
    told = [f"The layer {shown(name)!r} is empty and was left out." for name in empty[:LISTED]]
    if len(empty) > LISTED:
        told.append(f"Further layers ({len(empty) - LISTED:,}) are empty and were left out.")
    return tuple(told)


def _is_derived_from(source: Format, layer: Layer, chosen: Layer) -> bool:
    return reading_of(source).derived_layers.get(layer.name) == chosen.name


def _derived_ones(source: Format, dropped: Iterable[Layer]) -> tuple[str, ...]:
    """Report what is lost with layers that repeat others: the columns that these lack."""
    return tuple(
        f"Values of single points ({listed}, of {counted(layer.features, 'point')}) were left out. Name the layer "
        f"{layer.name!r} in the field layer, or choose GeoPackage without that field, to get them."
        for layer in dropped
        if layer.features and (listed := _own_columns(layer, reading_of(source).derived_columns))
    )


def _own_columns(layer: Layer, repeated: Collection[str]) -> str:
    own = [field.name for field in layer.fields if field.filled and field.name not in repeated]
    return ", ".join(repr(shown(name)) for name in own[:LISTED])


def _named(layers: Sequence[Layer], name: str) -> Layer:
    exact = [layer for layer in layers if layer.name == name]
    wanted = name.casefold()
    alike = [layer for layer in layers if wanted in {layer.name.casefold(), safe_name(layer.name).casefold()}]
    if not exact and len(alike) != 1:
        listed = ", ".join(shown(layer.name) for layer in layers[:LISTED])
        raise Rejection(f"There is no layer {shown(name)!r} in the file. It holds: {listed or 'none'}.")
    return (exact or alike)[0]
