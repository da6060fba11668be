"""The GeoJSON documents to convert: identical bytes in every run."""

import json
import random
from functools import cache
from pathlib import Path

SMALL_FEATURES = 20
_SEED = 20


@cache
def small_document() -> bytes:
    """Twenty points with five properties, 4 KB: the small job of all goals."""
    return points(SMALL_FEATURES)


@cache
def document(size_bytes: int) -> bytes:
    """A document of about `size_bytes`: one block of features, repeated."""
    block = [_feature(random.Random(_SEED), number) for number in range(1000)]
    text = ",\n".join(json.dumps(feature) for feature in block)
    repeats = max(1, size_bytes // len(text))
    return b'{"type": "FeatureCollection", "features": [\n' + ",\n".join([text] * repeats).encode() + b"\n]}\n"


@cache
def points(number: int) -> bytes:
    """A document of so many points, about 0.2 KB each."""
    features = [_feature(random.Random(_SEED), place) for place in range(number)]
    return json.dumps({"type": "FeatureCollection", "features": features}).encode()


def write_document(directory: Path, content: bytes, name: str) -> Path:
    """Write a document for bare `ogr2ogr`."""
    path = directory / name
    path.write_bytes(content)
    return path


def _feature(generator: random.Random, number: int) -> dict[str, object]:
    properties = {
        "number": number,
        "name": f"Place {number}",
        "kind": generator.choice(("shop", "school", "park")),
        "height": round(generator.random() * 100, 3),
        "open": generator.random() < 1 / 2,
    }
    where = [round(generator.uniform(-179, 179), 6), round(generator.uniform(-85, 85), 6)]
    return {"type": "Feature", "properties": properties, "geometry": {"type": "Point", "coordinates": where}}
