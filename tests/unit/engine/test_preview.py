"""A preview holds as many features as fit, and reports what it omits."""

import json
from pathlib import Path
from typing import Any

from service.engine.jailed.preview import FRAME_BYTES, MOST_CHARACTERS, main


def gathered(directory: Path, *lines: str, most_features: int = 100, most_bytes: int = 1 << 20) -> dict[str, Any]:
    """The preview of a file with these lines."""
    (directory / "lines").write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    parts = {
        "most_features": most_features,
        "most_bytes": most_bytes,
        "features": len(lines),
        "is_simplified": False,
        "parts": [{"file": str(directory / "lines"), "layer": "a"}],
    }
    (directory / "parts").write_text(json.dumps(parts))
    main(str(directory / "parts"), str(directory / "out"))
    content = (directory / "out").read_bytes()
    assert len(content) <= most_bytes
    document: dict[str, Any] = json.loads(content)
    return document


def line(name: object, x: str = "1.5") -> str:
    """A feature as the converter writes it."""
    properties = json.dumps({"name": name})
    return f'{{"type":"Feature","properties":{properties},"geometry":{{"type":"Point","coordinates":[{x},2]}}}}'


def test_no_more_features_than_agreed(tmp_path: Path) -> None:
    found = gathered(tmp_path, *map(line, "abc"), most_features=2)
    assert [one["properties"]["name"] for one in found["features"]] == ["a", "b"]
    assert (found["preview"]["featureCount"], found["preview"]["shown"]) == (3, 2)
    assert found["preview"]["complete"] is False


def test_no_more_bytes_than_agreed(tmp_path: Path) -> None:
    found = gathered(tmp_path, *(line("x" * 100) for _ in range(50)), most_bytes=FRAME_BYTES + 1000)
    assert 0 < found["preview"]["shown"] < 10
    assert found["preview"]["complete"] is False


def test_long_texts_are_cut_and_nested_values_become_texts(tmp_path: Path) -> None:
    found = gathered(tmp_path, line("y" * 5000), line({"z": list(range(1000))}), line({"z": 1}))
    cut, nested, short = (one["properties"]["name"] for one in found["features"])
    assert len(cut) == len(nested) == MOST_CHARACTERS + 1
    assert short == {"z": 1}


def test_coordinates_that_are_no_numbers_leave_their_feature_out(tmp_path: Path) -> None:
    found = gathered(tmp_path, line("a", "inf"), line("b"), line("c", "NaN"), "{")
    assert [one["properties"]["name"] for one in found["features"]] == ["b"]
    assert found["preview"] == {
        "featureCount": 4, "shown": 1, "complete": False, "simplified": False, "reason": None,
    }  # fmt: skip
