"""Names under which clients save results."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.storage.names import clean_name, content_disposition, download_name


@pytest.mark.parametrize(
    ("uploaded", "extension", "expected"),
    [
        ("roads.geojson", ".zip", "roads.zip"),
        ("roads.v2.geojson", "kml", "roads.v2.kml"),
        ("C:\\maps\\roads.kml", ".gpkg", "roads.gpkg"),
        ("../../etc/passwd.csv", ".csv", "passwd.csv"),
        ("Straßen Köln.gpx", ".geojson", "Straßen Köln.geojson"),
        ("道路.json", ".zip", "道路.zip"),
        ('a"b;c\r\nSet-Cookie: x.csv', ".zip", "a_b;c Set-Cookie_ x.zip"),
        ("..csv", ".zip", "result.zip"),
        ("\u202egnp.csv", ".zip", "gnp.zip"),
        ("", ".zip", "result.zip"),
        ("a \x1b b.csv", ".zip", "a b.zip"),
        ("e\x1b\u0301.csv", ".zip", "é.zip"),
    ],
)
def test_a_result_is_named_after_the_upload(uploaded: str, extension: str, expected: str) -> None:
    """The base name is kept, the extension is the result's, and nothing dangerous passes."""
    assert download_name(uploaded, extension) == expected


@pytest.mark.parametrize(
    ("name", "header"),
    [
        ("roads.zip", 'attachment; filename="roads.zip"'),
        ("Köln.zip", "attachment; filename=\"K_ln.zip\"; filename*=UTF-8''K%C3%B6ln.zip"),
        ("50%20off.zip", "attachment; filename=\"50_20off.zip\"; filename*=UTF-8''50%2520off.zip"),
        ("it's.zip", 'attachment; filename="it\'s.zip"'),
    ],
)
def test_the_header_carries_the_name_for_old_and_new_clients(name: str, header: str) -> None:
    """Non-ASCII names, and those with a percent sign, appear in both spellings."""
    assert content_disposition(name) == header


@given(st.text(), st.sampled_from([".zip", ".geojson", "kml"]))
def test_any_upload_name_gives_a_usable_name(uploaded: str, extension: str) -> None:
    """Whatever the upload's name: one path segment, no control characters, bounded, and stable if cleaned again."""
    name = download_name(uploaded, extension)
    assert name == clean_name(name)
    assert name.isprintable()
    assert not set(name) & set('/\\"\r\n')
    assert name not in {".", ".."}
    assert len(name.encode()) <= 255


@given(st.text())
def test_any_name_gives_a_header_of_one_ascii_line(name: str) -> None:
    """No name can end the header or start another one."""
    header = content_disposition(name)
    assert header.isascii()
    assert header.isprintable()
    assert header.count('"') == 2
