"""Features of KML that differ in plain texts alone are looked at once, and what is told is the same."""

import random
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.formats.format import reading_of
from service.formats.kml_condensed import Condenser
from service.formats.kml_repeated import RepeatedData
from service.formats.kml_schemas import UndeclaredData
from service.formats.left_out import CHUNK, TextTally, warn_of_left_out
from service.formats.looks import look_at
from service.formats.registry import find_output

KML = find_output("Kml")
PLAIN = ("a", "1,2", "b c", "\u00e9\n\u00e9", "clampToGroundwork")
TEXTS = (
    *PLAIN,
    *(" a", "a ", "", "\n", "&#32;a", "a&#x20;", "a;", "a > b", "a snippet> b", "clampToGround"),
    *("relativeToGround", "a>clampToGround", "<![CDATA[ a]]>", "<![CDATA[]]>", "<b>a</b>", "&amp;"),
)
PARTS = (
    "<name>{}</name>\n",
    "<description>{}</description>",
    "<Snippet maxLines='2'>{}</Snippet>",
    '<snippet kind="a">{}</snippet>',
    "<styleUrl>#{}</styleUrl>",
    "<altitudeMode>{}</altitudeMode>",
    "<address>{}</address>",
    "<LookAt><range>{}</range></LookAt>",
    "<Point><coordinates>{}</coordinates></Point>",
    "\t<LineString><coordinates>{}</coordinates></LineString>",
    '<ExtendedData><Data name="a"><value>{}</value></Data>\n<Data name="b"><value>{}</value></Data></ExtendedData>',
    '<ExtendedData><SchemaData><SimpleData name="a">{}</SimpleData><SimpleData name="b"/></SchemaData></ExtendedData>',
    '<Data name="A"><value>{}</value></Data>',
    "</ExtendedData>",
    "<!-- {} -->",
)
BETWEEN = (
    "",
    "<Folder><description>d</description>",
    "<Folder>",
    "</Folder>",
    '<Data name="a"><value>a</value></Data>',
    '<Schema name="s"><SimpleField name="b" type="int"/></Schema>',
    "<NetworkLink><name>a</name></NetworkLink>",
    "<Placemark>",
    "</Placemark>",
)
IDS = ("", "", ' id="a.{}"', ' id="{}" kind="a"')

ALIKE = (
    "<Placemark><name>{}</name><Point><coordinates>{}</coordinates></Point></Placemark>",
    '<Placemark id="l.{}">\n<Style/>\t<ExtendedData><Data name="n"><value>{}</value></Data></ExtendedData></Placemark>',
    "<Placemark>{}<altitudeMode>clampToGround</altitudeMode>{}</Placemark>",
    '<Placemark><a b="c d" /><name>clampToGroundwork{}</name><name></name> <name> a</name><b>{}</b></Placemark>',
)
CRAFTED = (
    b"<Placemark",
    b"<Placemark>",
    b"<Placemark></Placemark>",
    b"<Placemark><name>",
    b"<Placemark><name>a</name><Point>",
    b"<Placemark><name>a </name></Placemark>",
    b'<Placemark id="',
    b"<Data",
    b'<Data name="',
    b"<!--",
    b"<![CDATA[",
    b"]]>",
    b"&amp;",
    b"</ExtendedData",
    b"snippet ",
)


@st.composite
def documents(draw: st.DrawFn) -> bytes:
    """KML of features that are like others, or nearly."""
    shapes = [
        f"<Placemark{draw(st.sampled_from(IDS))}>{''.join(parts)}</Placemark>"
        for parts in draw(st.lists(st.lists(st.sampled_from(PARTS), max_size=4), min_size=1, max_size=3))
    ]
    chance = draw(st.randoms(use_true_random=False))
    content = [draw(st.sampled_from(BETWEEN)), *(_feature(shapes, chance) for _ in range(draw(st.integers(1, 60))))]
    for _ in range(2):
        content.insert(chance.randrange(len(content)), draw(st.sampled_from(BETWEEN)))
    return f"<kml><Document>{''.join(content)}</Document></kml>".encode()


def _feature(shapes: Sequence[str], chance: random.Random) -> str:
    texts = TEXTS if chance.random() < 0.1 else PLAIN
    shape = chance.choice(shapes)
    return shape.format(*chance.choices(texts, k=shape.count("{}"))) + chance.choice(("\n", "\n", "", "a"))


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A file for documents."""
    return tmp_path_factory.mktemp("kml") / "a.kml"


@given(documents(), st.one_of(st.just(0), st.integers(CHUNK - 4000, CHUNK)))
def test_what_is_told_of_features_that_are_alike_is_told_of_all(path: Path, content: bytes, before: int) -> None:
    """As by looks at every byte, wherever the pieces begin in which a file is read."""
    path.write_bytes(b" " * before + b"</ExtendedData>" + content)  # of data that does not end, 1 MiB is looked at
    repeated, undeclared, counts = RepeatedData(), UndeclaredData(), Counter[bytes]()
    repeated.add(content)
    undeclared.add(content)
    repeated.end()
    TextTally(reading_of(KML).left_out, counts).add(content)
    whole = [*repeated.warnings, *undeclared.warnings], warn_of_left_out(KML, counts, [path])
    assert look_at(KML, [path]) == whole


@pytest.mark.parametrize("shape", ALIKE)
def test_of_features_that_are_alike_one_is_looked_at(shape: str) -> None:
    """Programs write many such features, and a look takes long."""
    features = [shape.format(f"a{number}", f"{number},2 3,4").encode() for number in range(99)]
    condenser = Condenser([b">clampToGround<"], lambda _: True)
    assert condenser.condense(b"<kml>" + b"\n".join(features) + b"</kml>") == b"<kml>" + features[0] + b"</kml>"
    assert condenser.passed == {features[0]: 98}


def test_features_of_several_kinds_in_turn_are_recognized() -> None:
    """Such as those of each of several folders."""
    condenser = Condenser([], lambda _: True)
    pieces = [b"".join(b"<Placemark><n>%d</n></Placemark>" % number for number in range(start, 99)) for start in (1, 2)]
    others = [piece.replace(b"n>", b"m>") for piece in pieces]
    found = [condenser.condense(piece) for piece in (pieces[0] + others[0], *others, *pieces)]
    assert [piece.count(b"</Placemark>") for piece in found[1:]] == [1, 1, 1, 1]


@pytest.mark.parametrize("part", CRAFTED)
def test_each_byte_of_a_crafted_file_is_read_a_few_times(tmp_path: Path, part: bytes) -> None:
    """A search that began anew at every byte would stop the service."""
    path = tmp_path / "a.kml"
    again = b'<Placemark><Data name="a"><value>b</value></Data><Data name="A">c</Data></Placemark>'
    path.write_bytes(ALIKE[0].format("a", "b").encode() + part * (3 * CHUNK // len(part)) + again)
    (told,), _ = look_at(KML, [path])
    assert "such as 'a'" in told
