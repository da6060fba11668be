"""Gathers features for a map into one GeoJSON document. Runs in the sandbox.

Each file of a part holds one feature per line, in longitude and latitude.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec

MOST_CHARACTERS = 200
"""The maximum length of a text; the rest is left out."""
ELLIPSIS = "…"
FRAME_BYTES = 1024
"""More than the document takes in addition to its features."""


class PreviewPart(msgspec.Struct, frozen=True):
    """The features of one layer."""

    file: str
    layer: str


class Parts(msgspec.Struct, frozen=True):
    """What to gather; `features` is the number of features in the previewed file."""

    most_features: int
    most_bytes: int
    features: int
    is_simplified: bool
    parts: tuple[PreviewPart, ...]


def main(parts_file: str, out_file: str) -> None:
    """Write the features to `out_file`, as many as fit."""
    parts = msgspec.json.decode(Path(parts_file).read_bytes(), type=Parts)
    shown, left = 0, parts.most_bytes - FRAME_BYTES
    with Path(out_file).open("wb") as out:
        out.write(b'{"type":"FeatureCollection","features":[')
        for feature in _features(parts):
            left -= len(feature) + 2
            if shown == parts.most_features or left < 0:
                break
            out.write(b",\n" + feature if shown else feature)
            shown += 1
        about = {
            "featureCount": parts.features,
            "shown": shown,
            "complete": shown == parts.features,
            "simplified": parts.is_simplified,
            "reason": None,
        }
        out.write(b'],"preview":' + msgspec.json.encode(about) + b"}\n")


def _features(parts: Parts) -> Iterator[bytes]:
    names_layers = len(parts.parts) > 1
    for part in parts.parts:
        with Path(part.file).open("rb") as lines:
            for line in lines:
                try:
                    feature = msgspec.json.decode(line, type=dict[str, Any])
                except msgspec.DecodeError:  # coordinates that are not numbers, or a truncated line
                    continue
                yield msgspec.json.encode(_shortened(feature, part, names_layers=names_layers))


def _shortened(feature: dict[str, Any], part: PreviewPart, *, names_layers: bool) -> dict[str, Any]:
    properties = {name: _short(value) for name, value in (feature.get("properties") or {}).items()}
    layer = {"layer": part.layer} if names_layers else {}
    return {"type": "Feature", **layer, "properties": properties, "geometry": feature.get("geometry")}


def _short(value: Any) -> Any:
    text = value if isinstance(value, str) else None
    if isinstance(value, dict | list):
        text = msgspec.json.encode(value).decode()
    if text is None or len(text) <= MOST_CHARACTERS:
        return value
    return text[:MOST_CHARACTERS] + ELLIPSIS
