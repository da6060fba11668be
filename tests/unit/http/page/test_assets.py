"""The files that browsers load, and what happens if the set-up has not fetched third-party ones."""

import json
import struct
from pathlib import Path

import pytest

from service.app.applications import _on_main_port
from service.http.page import assets, vendored
from service.http.page.assets import OURS, find_asset
from service.settings import Settings


def test_ours_are_served_with_their_types() -> None:
    for path in OURS.iterdir():
        found = find_asset(path.name)
        assert found is not None
        assert found.content == path.read_bytes()
        assert found.media_type != "text/plain", f"{path.name} has no media type"


def test_those_of_others_may_be_missing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(vendored, "DIRECTORY", tmp_path)
    assert find_asset("leaflet.js") is None
    (tmp_path / "leaflet.js").write_text("1")
    found = find_asset("leaflet.js")
    assert found is not None
    assert found.content == b"1"
    (tmp_path / "stamp").write_text("1")
    assert find_asset("stamp") is None


def test_no_other_file_is_served() -> None:
    for name in ("../assets.py", "assets.py", "vendored.py", "", ".", "files"):
        assert find_asset(name) is None
    assert Path(assets.__file__).is_file()


def test_the_page_can_be_switched_off_and_stays_on_the_port_of_the_service() -> None:
    def paths(**settings: object) -> set[str]:
        return {route.path for route in _on_main_port(Settings(**settings))}  # type: ignore[arg-type]  # a test's own

    assert {"/", "/page/{asset}", "/docs"} <= paths()
    assert {"/", "/page/{asset}"} <= paths(private_port=0)
    assert "/docs" not in paths(private_port=0)
    assert not {"/", "/page/{asset}"} & paths(page="off")


def test_an_outline_is_read_from_a_shapefile(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Rounded, without points that then repeat their predecessor."""
    monkeypatch.setattr(vendored, "COPIES", {})
    monkeypatch.setattr(vendored, "DIRECTORY", tmp_path / "vendor")
    shapefile = tmp_path / vendored.COUNTRIES
    shapefile.parent.mkdir(parents=True)
    shapefile.write_bytes(_shapefile([(0, 0), (0.01, 0), (10.04, 0), (10, 5), (0, 0)]))
    vendored.main(tmp_path)
    outline = json.loads((tmp_path / "vendor" / vendored.OUTLINE).read_text())
    assert outline == [[[0, 0], [10, 0], [10, 5], [0, 0]]]


def _shapefile(ring: list[tuple[float, float]]) -> bytes:
    """A shapefile of one polygon."""
    numbers = [number for point in ring for number in point]
    record = struct.pack(f"<i4d2ii{len(numbers)}d", 5, 0, 0, 0, 0, 1, len(ring), 0, *numbers)
    return bytes(100) + struct.pack(">2i", 1, len(record) // 2) + record
