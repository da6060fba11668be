"""How findings leave the jail."""

import os
import subprocess
import sys
from pathlib import Path

import msgspec
import pytest

from service.formats.facts import FieldType
from service.geojson.findings import (
    MAX_FINDINGS_BYTES,
    MAX_FINDINGS_COMMAS,
    MAX_FINDINGS_OBJECTS,
    Scan,
    ScanOutcome,
    read_scan,
    write_outcome,
)
from service.geojson.refusals import Reason, Unreadable
from service.geojson.scan import INLINE_BYTES, is_quick, main, read_light, scan
from tests.support.geojson import POINT, collection, feature, geometry


@pytest.fixture
def document(tmp_path: Path) -> Path:
    path = tmp_path / "in.geojson"
    path.write_bytes(collection(feature({"name": "é", "n": 1}), feature({"n": 2.5}, geometry("Point", [1, 2, 3]))))
    return path


def test_a_scan_as_a_program_finds_the_same(document: Path, tmp_path: Path) -> None:
    """It writes the function's findings to the given file."""
    command = [sys.executable, "-m", "service.geojson.scan", document.name, "scan.json"]
    subprocess.run(command, cwd=tmp_path, check=True, env={"PYTHONPATH": str(Path.cwd())})
    assert read_scan(tmp_path / "scan.json") == scan(document)


@pytest.mark.parametrize(("content", "reason"), [(b"", Reason.EMPTY), (b"{}", Reason.NOT_GEOJSON)])
def test_a_refusal_leaves_the_jail_as_a_code(tmp_path: Path, content: bytes, reason: Reason) -> None:
    """The message for it is written outside."""
    (tmp_path / "in").write_bytes(content)
    main([str(tmp_path / "in"), str(tmp_path / "out")])
    with pytest.raises(Unreadable) as caught:
        read_scan(tmp_path / "out")
    assert caught.value.reason is reason


HOSTILE = {
    "nothing": b"",
    "no JSON": b"\xff\xfe",
    "no findings": b"{}",
    "a refusal of its own words": b'{"refused": "because I say so"}',
    "a negative count": b'{"scan": {"kind": "FeatureCollection", "features": -1}}',
    "a huge count": b'{"scan": {"kind": "FeatureCollection", "features": 1e300}}',
    "a made-up type": b'{"scan": {"kind": "FeatureCollection", "geometry_types": {"<script>": 1}}}',
    "endless names": b'{"scan": {"kind": "x", "fields": [{"type": "text", "name": "%b"}]}}' % (b"x" * 5000),
    "too many fields": b'{"scan": {"kind": "x", "fields": [%b]}}' % b",".join([b'{"type":"text","name":"x"}'] * 2001),
    "too many values": b'{"scan": {"kind": "x"}, "more": [%b]}' % b",".join([b"0"] * (MAX_FINDINGS_COMMAS + 1)),
    "too many objects": b'{"scan": {"kind": "x"}, "more": [%b]}' % b",".join([b"{}"] * (MAX_FINDINGS_OBJECTS + 1)),
    "deep nesting": b"[" * 100_000,
    "too much": b" " * (MAX_FINDINGS_BYTES + 1),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_what_is_no_scan_is_not_believed(tmp_path: Path, name: str) -> None:
    """Whatever a hijacked program may have written."""
    (tmp_path / "scan.json").write_bytes(HOSTILE[name])
    with pytest.raises(Unreadable) as caught:
        read_scan(tmp_path / "scan.json")
    assert caught.value.reason is Reason.NO_SCAN


def test_a_scan_that_was_not_written_is_a_refusal(tmp_path: Path) -> None:
    """For example, if the program was ended."""
    with pytest.raises(Unreadable):
        read_scan(tmp_path / "missing.json")


def test_findings_survive_the_way(document: Path, tmp_path: Path) -> None:
    """Findings that are written and read back are equal."""
    write_outcome(tmp_path / "x", ScanOutcome(scan=scan(document)))
    assert read_scan(tmp_path / "x") == scan(document)
    assert msgspec.json.decode((tmp_path / "x").read_bytes(), type=ScanOutcome).refused is None


def test_findings_are_facts(document: Path) -> None:
    """What a plan needs to know about a document's only layer."""
    facts = scan(document).facts("places")
    (layer,) = facts.layers
    assert (layer.name, layer.features, layer.has_z, layer.crs.epsg) == ("places", 2, True, 4326)
    assert [(field.name, field.type) for field in layer.fields] == [("name", FieldType.TEXT), ("n", FieldType.REAL)]
    assert (facts.geometry_type, facts.feature_count, facts.in_work_file) == ("Point", 2, False)


def test_facts_count_what_has_no_geometry() -> None:
    """Null, empty and unreadable geometries alike, since none is written."""
    found = Scan(kind="FeatureCollection", features=5, geometry_types={"Point": 2}, null_geometries=1)
    assert found.facts("x").layers[0].null_geometries == 3


def test_ordinary_documents_are_light(document: Path, tmp_path: Path) -> None:
    """Points, polygons and wide tables, but neither large documents nor nested brackets."""
    assert read_light(document) == document.read_bytes()
    light = tmp_path / "light"
    ring = [[number / 7, number / 3] for number in range(5000)]
    light.write_bytes(collection(feature({"a": 1}, geometry("Polygon", [ring]))))
    assert read_light(light) is not None
    light.write_bytes(collection(*(feature({f"c{n}": n for n in range(50)}, POINT) for _ in range(300))))
    assert read_light(light) is not None
    heavy = tmp_path / "heavy"
    for content in (b"{}," * 80_000, b"5," * 120_000, b"[]," * 80_000, b"[" * 250_000, b" " * (INLINE_BYTES + 1)):
        heavy.write_bytes(b'{"type": "FeatureCollection", "features": [' + content)
        assert read_light(heavy) is None


def test_only_few_values_are_read_in_the_event_loop(tmp_path: Path) -> None:
    """Crafted ones take a hundred times as long as the numbers of a line: half a second for a small file."""
    few = tmp_path / "few"
    few.write_bytes(collection(*(feature({"a": n, "b": "x"}, POINT) for n in range(100))))
    assert is_quick(few.read_bytes())
    assert is_quick(collection(feature({}, geometry("LineString", [[n, n] for n in range(1000)]))))
    many = tmp_path / "many"
    for content in (b"[1]," * 60_000 + b"[1]", b'{"a": ["' + b"\\ud800" * 40_000 + b'"]}'):
        many.write_bytes(b'{"type": "FeatureCollection", "features": [%b]}' % content)
        document = read_light(many)
        assert document is not None
        assert not is_quick(document)


def test_a_pipe_in_place_of_a_file_is_not_waited_for(tmp_path: Path) -> None:
    """A converter that was taken over may put one there, to which nobody writes."""
    os.mkfifo(tmp_path / "pipe")
    assert not read_light(tmp_path / "pipe")
    with pytest.raises(Unreadable):
        read_scan(tmp_path / "pipe")
    held = os.open(tmp_path / "pipe", os.O_RDWR)
    with pytest.raises(Unreadable):
        read_scan(tmp_path / "pipe")
    os.close(held)
