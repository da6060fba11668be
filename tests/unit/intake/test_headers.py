"""Content-Type and Content-Disposition as clients write them."""

import pytest

from service.errors import MalformedRequest
from service.intake.headers import MAX_NAME_CHARACTERS, clean_name, read_boundary, read_disposition

BOUNDARIES = {
    "multipart/form-data; boundary=----WebKitFormBoundary7MA4YWxkTrZu0gW": b"----WebKitFormBoundary7MA4YWxkTrZu0gW",
    'multipart/form-data; boundary="a b:c?d=e"': b"a b:c?d=e",
    "Multipart/Form-Data;charset=utf-8;BOUNDARY=x": b"x",
    "multipart/form-data; boundary=x;": b"x",
    "multipart/form-data; boundary=a=b=": b"a=b=",
    "multipart/form-data; boundary=" + 70 * "x": 70 * b"x",
}

NO_BOUNDARIES = [
    None,
    "",
    "application/json",
    "multipart/mixed; boundary=x",
    "multipart/form-data",
    "multipart/form-data; boundary=",
    'multipart/form-data; boundary=""',
    'multipart/form-data; boundary="ends with a blank "',
    "multipart/form-data; boundary=" + 71 * "x",
    "multipart/form-data; boundary=x; boundary=y",
    'multipart/form-data; boundary="x\r\ny"',
    "multipart/form-data; boundary=ä",
    "multipart/form-data boundary=x",
    "multipart/form-data; boundary",
]


@pytest.mark.parametrize(("content_type", "boundary"), BOUNDARIES.items())
def test_the_boundary_is_read(content_type: str, boundary: bytes) -> None:
    """Quoted or not, among other parameters and in any case."""
    assert read_boundary(content_type) == boundary


@pytest.mark.parametrize("content_type", NO_BOUNDARIES)
def test_a_content_type_without_a_boundary_is_refused(content_type: str | None) -> None:
    """Anything other than multipart/form-data with one valid boundary is malformed."""
    with pytest.raises(MalformedRequest):
        read_boundary(content_type)


def test_the_refusal_says_what_came_instead() -> None:
    """For example, that it was JSON."""
    with pytest.raises(MalformedRequest, match=r"multipart/form-data; it came as application/json\."):
        read_boundary("application/json; charset=utf-8")


NAMES = {
    'form-data; name="file"; filename="a.geojson"': "a.geojson",
    "form-data; name=file; filename=a.geojson": "a.geojson",
    'FORM-DATA ; name="file" ; filename="a.geojson" ;': "a.geojson",
    'form-data; filename="a.geojson"; name="file"': "a.geojson",
    'form-data; name="file"; filename="Zürich 東京.geojson"': "Zürich 東京.geojson",
    'form-data; name="file"; filename="a; name=b.csv"': "a; name=b.csv",
    'form-data; name="file"; filename="a%22b.csv"': 'a"b.csv',
    'form-data; name="file"; filename="100%.csv"': "100%.csv",
    r'form-data; name="file"; filename="a\"b.csv"': 'a"b.csv',
    r'form-data; name="file"; filename="C:\data\a.csv"': "a.csv",
    r'form-data; name="file"; filename="ends with \"': None,
    'form-data; name="file"; filename="../../etc/passwd"': "passwd",
    'form-data; name="file"; filename="a%0D%0Ab.csv"': "a__b.csv",
    'form-data; name="file"; filename="a\0b.csv"': "a_b.csv",
    'form-data; name="file"; filename="\u202evsc.a"': "_vsc.a",
    'form-data; name="file"; filename="a.csv "': "a.csv",
    'form-data; name="file"; filename=".."': None,
    'form-data; name="file"; filename="data/"': None,
    'form-data; name="file"; filename=""': None,
    'form-data; name="file"': None,
    'form-data; name="file"; filename="Z_rich.kml"; filename*=UTF-8\'\'Z%C3%BCrich.kml': "Zürich.kml",
    "form-data; name=\"file\"; filename*=iso-8859-1'de'Z%FCrich.kml": "Zürich.kml",
    "form-data; name=\"file\"; filename*=utf-8''..%2Fa.kml": "a.kml",
    'form-data; name="file"; filename="a; filename*=utf-8\'\'b.kml"': "a; filename*=utf-8''b.kml",
}


@pytest.mark.parametrize(("value", "name"), NAMES.items())
def test_the_file_name_is_read(value: str, name: str | None) -> None:
    """As the client's user sees it: the last component, printable."""
    assert read_disposition(value) == ("file", name)


@pytest.mark.parametrize(
    "value",
    [
        "form-data",
        'form-data; filename="a.csv"',
        'attachment; name="file"',
        'form-data; name="a"; name="b"',
        'form-data; name="a"; x',
        "form-data; name=\"file\"; filename*=utf-8''%FF",
        f'form-data; name="file"; filename="{"x" * (MAX_NAME_CHARACTERS + 1)}"',
    ],
)
def test_an_unreadable_disposition_is_refused(value: str) -> None:
    """Without a name, or with two readings, it is malformed."""
    with pytest.raises(MalformedRequest):
        read_disposition(value)


def test_names_keep_scripts_and_emoji() -> None:
    """The joiners that scripts and emoji need are not control characters."""
    name = "می\u200cخوریم 👩\u200d🌾.kml"
    assert clean_name(name) == name


@pytest.mark.parametrize("filler", [" ", "\t", "\\", '\\"', ";", "; ", ";a=", "a", "=", '"', "%2"])
@pytest.mark.parametrize("start", ["form-data; name=x", 'form-data; name="', "form-data; ", "form-data"])
def test_a_hostile_header_is_read_or_refused(start: str, filler: str) -> None:
    """A long run of any filler is handled in linear time; the suite's time limit enforces this."""
    for end in ("", "x", '"', ";"):
        try:
            read_disposition(start + filler * 100_000 + end)
        except MalformedRequest:
            continue
