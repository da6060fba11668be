"""Lone surrogates in JSON text."""

import json
import random
import re
from pathlib import Path

import pytest

from service.geojson.normalize import KEEP, MEND, normalize
from service.geojson.scan import scan, scan_bytes
from service.geojson.surrogates import find_lone, replace_lone
from tests.support.geojson import collection, feature

PIECES = (r"\ud83d", r"\ude00", r"\uDBFF", r"\u00e9", r"\\", r"\n", "ud83d", "é", "x", r"\ud83d\ude00")


@pytest.mark.parametrize("seed", range(200))
def test_every_half_becomes_a_replacement_character(seed: int) -> None:
    """Nothing else changes, as a JSON reader that keeps surrogates sees it."""
    generator = random.Random(seed)
    text = '"' + "".join(generator.choices(PIECES, k=12)) + '"'
    read, read_replaced = json.loads(text), json.loads(replace_lone(text.encode()))
    assert read_replaced == re.sub("[\ud800-\udfff]", "\ufffd", read)
    assert len(list(find_lone(text.encode()))) == len(re.findall("[\ud800-\udfff]", read))


def test_a_document_is_normalized_in_a_copy(tmp_path: Path) -> None:
    """A copy of equal length; the upload is unchanged."""
    document = collection(feature({"a": "\ud83dé", "b": "😀"}))
    (tmp_path / "in").write_bytes(document)
    normalize(tmp_path / "in", tmp_path / "out", KEEP)
    copy = (tmp_path / "out").read_bytes()
    assert (tmp_path / "in").read_bytes() == document
    assert len(copy) == len(document)
    assert json.loads(copy)["features"][0]["properties"] == {"a": "\ufffdé", "b": "😀"}


def test_halves_are_counted_in_names_and_values() -> None:
    """The scan reads what the converter will read."""
    found = scan_bytes(collection(feature({"\ud83d": "x\ude00", "y": {"z": ["\ud83d"]}}, id="\ud83d"), feature()))
    assert found.half_letters == 4
    assert [field.name for field in found.fields] == ["id", "\ufffd", "y"]
    assert scan_bytes(collection(feature({"a": "😀", "b": "\\ud83d"}))).half_letters == 0


SEQUENCES = {
    "one feature": '{"type": "Feature", "properties": {"a": 1.10}, "geometry": null}',
    "features a line": '{"type": "Feature", "properties": {"a": 1}}\n\n{"type": "Feature", "id": 5}\n',
    "records": '\x1e{"type": "Feature"}\n\x1e{"type": "Feature"}\n',
    "a byte order mark": '\ufeff{"type": "Feature"}',
    "a geometry": '{"type": "Point", "coordinates": [1, 2]}',
    "half a letter": r'{"type": "Feature", "properties": {"a": "\ud83d\u00e9"}}',
    "numbers that are none": '{"type": "Feature", "properties": {"a": NaN}}\n{"type": "feature", "id": Infinity}',
    "a type in other letters": '{"id": "feature", "type": "FEATURE", "properties": {"a": 1}}',
}


@pytest.mark.parametrize("name", SEQUENCES)
def test_what_is_no_collection_is_made_one(tmp_path: Path, name: str) -> None:
    """With the same content, as a scan sees it."""
    (tmp_path / "in").write_text(SEQUENCES[name], encoding="utf-8")
    normalize(tmp_path / "in", tmp_path / "out", MEND)
    before, after = scan(tmp_path / "in"), scan(tmp_path / "out")
    assert after.is_collection
    assert (after.features, after.fields, after.geometry_types) == (
        before.features,
        before.fields,
        before.geometry_types,
    )
    assert (after.half_letters, after.not_features) == (0, 0)


def test_the_system_of_a_lone_feature_goes_to_the_collection(tmp_path: Path) -> None:
    """The converter looks for it there."""
    crs = {"type": "name", "properties": {"name": "EPSG:25833"}}
    (tmp_path / "in").write_text(json.dumps(feature({"a": 1}, crs=crs)))
    normalize(tmp_path / "in", tmp_path / "out", MEND)
    assert scan(tmp_path / "out").crs_epsg == 25833
