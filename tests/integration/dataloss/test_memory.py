"""Scanning takes little memory, whatever the document."""

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from service.geojson.findings import read_scan
from tests.support.geojson import feature, geometry

SIZE_BYTES = 40_000_000
PEAK_KILOBYTES = 100_000
SCAN_AND_TELL = """
import re, sys
from pathlib import Path
from service.geojson.scan import main
main(sys.argv[1:])
print(re.search(r"VmHWM:\\s+(\\d+) kB", Path("/proc/self/status").read_text())[1])
"""


def repeated(element: bytes) -> bytes:
    """That many copies of an element, separated by commas."""
    return b",\n".join([element] * (SIZE_BYTES // (len(element) + 2)))


def in_collection(content: bytes) -> bytes:
    return b'{"type": "FeatureCollection", "features": [%b]}' % content


SMALL = json.dumps(feature({"name": "é" * 20, "n": 5, "ratio": 0.5})).encode()
ODD = SMALL.replace(b'"geometry"', b'"Geometry"')
LINE = json.dumps(feature({}, geometry("LineString", "HERE"))).encode()
DOCUMENTS: dict[str, Callable[[], bytes]] = {
    "many features": lambda: in_collection(repeated(SMALL)),
    "features of many shapes": lambda: in_collection(repeated(SMALL + b"," + ODD)),
    "one huge geometry": lambda: LINE.replace(b'"HERE"', b"[%b]" % repeated(b"[1.234567, 2.345678]")),
    "a huge member": lambda: b'{"x": [%b], "type": "FeatureCollection", "features": []}' % repeated(b"12345"),
}


@pytest.mark.parametrize("name", DOCUMENTS)
def test_memory_is_bounded(tmp_path: Path, name: str) -> None:
    """Forty megabytes take less than a hundred, including the interpreter."""
    (tmp_path / "in.geojson").write_bytes(DOCUMENTS[name]())
    done = subprocess.run(
        [sys.executable, "-c", SCAN_AND_TELL, "in.geojson", "scan.json"],
        cwd=tmp_path,
        env={"PYTHONPATH": str(Path.cwd())},
        capture_output=True,
        text=True,
        check=True,
    )
    assert int(done.stdout) < PEAK_KILOBYTES
    assert not read_scan(tmp_path / "scan.json").flaws
