"""A sequence of objects is read and normalized as the collection of its features, however it is laid out."""

import random
from pathlib import Path

import msgspec
import pytest

from service.geojson import document
from service.geojson import normalize as normalizing
from service.geojson.findings import Scan
from service.geojson.normalize import MEND, WRAP, normalize
from service.geojson.scan import scan, scan_bytes
from tests.support.calls import counted_calls

PLAIN = (
    b'{"type": "Feature", "properties": {"a": 1, "b": "x"}, "geometry": {"type": "Point", "coordinates": [1, 2]}}',
    b'{"type":"Feature","properties":{"a":2.5},"geometry":null}',
    b'{"type": "Feature",\n "properties": {"c": "\\n"},\r\n "geometry": {"type": "Point", "coordinates": [1, 2, 3]}}',
    b'{"geometry": null, "properties": null, "type": "Feature", "id": 7}',
    b'{"type": "Feature", "properties": {"a": 1}, "geometry": null, "foreign": {"x": [1]}}',
    b'{"type": "Feature", "properties": {"a": 1, "a": 2}, "geometry": null}',
    b'{"type": "Feature", "properties": {"d": "\xc3\xbc \\ud83d\\ude00"}, "geometry": null}',
)
ODD = (
    b'{"type": "Feature", "properties": {"a": NaN}, "geometry": null}',
    b'{"type": "Feature", "properties": {"big": 123456789012345678901}, "geometry": null}',
    b'{"type": "Feature", "properties": {"a": "\\ud83d"}, "geometry": null}',
    b'{"type": "Feature", "properties": {"a": [1, {"b": 2}]}}',
)
BETWEEN = (b"\n", b"\r\n", b"\n\n", b"", b" ", b"\n\x1e", b"\x1e")


def facts_about(found: Scan) -> Scan:
    """What a scan found, apart from how the document is laid out."""
    return msgspec.structs.replace(found, kind="")


@pytest.mark.no_cover
@pytest.mark.parametrize("seed", range(150))
def test_a_sequence_holds_what_a_collection_would(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seed: int) -> None:
    """Also where a window of it ends within a feature, and where one feature needs more than the others."""
    chance = random.Random(seed)
    for module in (document, normalizing):
        monkeypatch.setattr(module, "WINDOW_BYTES", chance.choice([40, 300, 1000, 1 << 16]))
    is_plain = chance.random() < 0.6
    parts = chance.choices(PLAIN if is_plain else PLAIN + ODD, k=chance.randint(2, 25))
    between = chance.choice([BETWEEN, BETWEEN[:3], BETWEEN[:1]])
    sequence = b"".join(part + chance.choice(between) for part in parts)
    whole = scan_bytes(b'{"type": "FeatureCollection", "features": [%b]}' % b",".join(parts))
    (tmp_path / "in").write_bytes(sequence)
    assert facts_about(scan_bytes(sequence)) == facts_about(whole)
    assert facts_about(scan(tmp_path / "in")) == facts_about(whole)
    normalize(tmp_path / "in", tmp_path / "out", WRAP if is_plain else MEND)
    copy = scan(tmp_path / "out")
    assert copy.is_collection
    assert copy.features == len(parts)
    assert copy.geometry_types == whole.geometry_types
    assert copy.half_letters == 0
    assert copy.fields == whole.fields or not is_plain


@pytest.mark.parametrize("kind", [b"feature", b"FEATURE"])
def test_other_spellings_and_bare_geometries_are_features(tmp_path: Path, kind: bytes) -> None:
    """In a sequence whose other objects are read together."""
    point = b'{"type": "Point", "coordinates": [1, 2]}'
    lines = b"\n".join([*PLAIN[:2], PLAIN[1].replace(b"Feature", kind), point, PLAIN[0], b""])
    (tmp_path / "in").write_bytes(lines)
    normalize(tmp_path / "in", tmp_path / "out", WRAP)
    found, copy = scan(tmp_path / "in"), scan(tmp_path / "out")
    assert (found.features, copy.features) == (5, 5)
    assert (found.fields, found.geometry_types) == (copy.fields, copy.geometry_types)


@pytest.mark.parametrize("odd", [b'{"type": "feature", "properties": {}, "geometry": null}', ODD[0]])
def test_a_window_is_read_together_only_once(tmp_path: Path, odd: bytes) -> None:
    """Once for each object in it, a crafted file of 200 KB took seconds in the event loop."""
    (tmp_path / "in").write_bytes(b"\n".join([*PLAIN[1:2] * 500, odd, b""]))
    with counted_calls() as calls:
        normalize(tmp_path / "in", tmp_path / "out", WRAP)
    assert scan(tmp_path / "out").features == 501
    assert 0 < calls.c["Decoder.decode_lines"] < 5
