"""Turns the holes of areas with elevations in a .shp, as `shape_rings.c` does in sessions. Runs in the sandbox."""

import struct
from itertools import pairwise
from pathlib import Path
from typing import Final

from service.engine.jailed.rings import Place, Ring, count_around

SHP_HEADER: Final = 100
RECORD_HEAD: Final = struct.Struct(">2i")
WORD_BYTES: Final = 2
AREAS_IN_SPACE: Final = 15
SIZES: Final = struct.Struct("<2I")
SIZES_AT, STARTS_AT = 36, 44
NUMBER_BYTES, PLACE_BYTES, VALUE_BYTES, RANGE_BYTES = 4, 16, 8, 16


def turn(shapes_file: str) -> None:
    """Turn the rings in `shapes_file` that are in an odd number of others of their shape and go around as areas do.

    GDAL 3.6 writes holes so, unless all positions of the area have one elevation.
    """
    with Path(shapes_file).open("r+b") as shapes:
        shapes.seek(SHP_HEADER)
        while len(head := shapes.read(RECORD_HEAD.size)) == RECORD_HEAD.size:
            shape = bytearray(shapes.read(RECORD_HEAD.unpack(head)[1] * WORD_BYTES))
            if int.from_bytes(shape[:NUMBER_BYTES], "little") == AREAS_IN_SPACE and _turn_rings(shape):
                shapes.seek(-len(shape), 1)
                shapes.write(shape)


def _turn_rings(shape: bytearray) -> bool:
    """Turn such rings of one shape; return whether there are any."""
    parts, points = SIZES.unpack_from(shape, SIZES_AT)
    starts = struct.unpack_from(f"<{parts}I", shape, STARTS_AT)
    places_at = STARTS_AT + parts * NUMBER_BYTES
    heights_at = places_at + points * PLACE_BYTES + RANGE_BYTES
    measures_at = heights_at + points * VALUE_BYTES + RANGE_BYTES
    numbers = struct.unpack_from(f"<{2 * points}d", shape, places_at)
    places: list[Place] = list(zip(numbers[0::2], numbers[1::2], strict=True))
    spans = [span for span in pairwise((*starts, points)) if len(set(places[slice(*span)])) > 1]
    rings = [Ring(0, places[slice(*span)]) for span in spans]
    if not rings[1:]:
        return False
    count_around([ring for ring in rings if not ring.is_counterclockwise], rings)
    turned = [span for span, ring in zip(spans, rings, strict=True) if ring.depth % 2]
    for start, end in turned:
        for at, size in ((places_at, PLACE_BYTES), (heights_at, VALUE_BYTES), (measures_at, VALUE_BYTES)):
            values = shape[at + start * size : at + end * size]
            if len(values) == (end - start) * size:
                pieces = [values[piece : piece + size] for piece in range(0, len(values), size)]
                shape[at + start * size : at + end * size] = b"".join(reversed(pieces))
    return bool(turned)
