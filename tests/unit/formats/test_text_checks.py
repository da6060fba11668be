"""Features of XML that differ in plain texts alone are looked at once, and what is told is the same."""

import random
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from service.formats.condensed import LEAST, Condenser
from service.formats.format import reading_of
from service.formats.left_out import CHUNK, TextTally, warn_of_left_out
from service.formats.registry import find_output
from service.formats.table.gpx import REPEATED_IN_GPX
from service.formats.text_checks import TEXT_CHECKS, TextChecks

PLAIN = ("a", "1,2", "b c", "\u00e9\n\u00e9", "clampToGroundwork", "&lt;a&gt;", "b &amp; c")
TEXTS = (
    *PLAIN,
    *(" a", "a ", "", "\n", "&#32;a", "a&#x20;", "a;", "a > b", "a snippet> b", "clampToGround"),
    *("relativeToGround", "a>clampToGround", "<![CDATA[ a]]>", "<![CDATA[]]>", "<b>a</b>", "&amp;"),
    *("&amp; ", "&#10;&amp;", "&quot;&#32;", "&apos;&#x41;"),
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
LARGE = (
    ("Kml", "<Placemark><name>{}</name></Placemark>"),
    ("Gml", '<gml:featureMember>\n<a:f gml:id="f.{0}"><a:n>n {0}</a:n></a:f></gml:featureMember>'),
    ("Gml", '<a:f gml:id="f.{0}"><a:f_name>n {0}</a:f_name><a:m xlink:href="#{0}"/></a:f>'),
    ("Gpx", '<trkpt lat="1.{0}" lon="{0}"><time>2020-01-02</time></trkpt>\n'),
    ("Gpx", '<wpt lat="1.{0}" lon="{0}"/>'),
)
IDS = ("", "", ' id="a.{}"', ' id="{}" kind="a"')

ALIKE = (
    "<Placemark><name>{}</name><Point><coordinates>{}</coordinates></Point></Placemark>",
    '<Placemark id="l.{}">\n<Style/>\t<ExtendedData><Data name="n"><value>{}</value></Data></ExtendedData></Placemark>',
    "<Placemark>{}<altitudeMode>clampToGround</altitudeMode>{}</Placemark>",
    "<Placemark><name>&lt;{}&gt;</name><description>&quot;{}&amp;</description></Placemark>",
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
    b"<gml:featureMember>",
    b"<gml:featureMembers><a:b>",
    b"<gml:featureMembers",
    b"<trkpt lat=",
    b'<wpt lat="1" lon="1"><time>',
    b"<a:member/>",
    b"<a:member><a:b><gml:Solid>",
    b"<a:member><a:b><a:boundedBy>",
    b"<a:member><a:b><a:boundedBy><a:c>",
)


GML_TEXTS = (
    "a",
    "b c",
    "\u00e9\n\u00e9",
    "1",
    " 1.5 ",
    "a&amp;b",
    " a",
    "\n5th",
    "",
    "<![CDATA[ a]]>",
    "b codeSpace=",
)
GML_PLAIN = ("a", "b c", "1", "&lt;a&gt;")
GML_POSITIONS = ("1 2", "-1.5e3 2", "1 2 3", "\n 1 2\n", "1,2 3,4", "1 NaN", "1", "e1 2", "1;2", "")
GML_PARTS = (
    "<a:n>{}</a:n>\n",
    '<a:m codeSpace="b">{}</a:m>',
    "<a:e/>",
    '<a:r xlink:href="#{}"/>',
    "<gml:boundedBy><gml:Envelope><gml:lowerCorner>{p}</gml:lowerCorner></gml:Envelope></gml:boundedBy>",
    '<a:g><gml:Point gml:id="g{}"><gml:pos>{p}</gml:pos></gml:Point></a:g>',
    '<a:g><gml:Point srsName="b">\n<gml:pos srsDimension="2">{p}</gml:pos></gml:Point></a:g>',
    "<a:g><gml:LineString><gml:posList>{p}</gml:posList></gml:LineString></a:g>",
    "<a:g><gml:LineString><gml:coordinates>{p}</gml:coordinates></gml:LineString></a:g>",
    "<a:b><gml:Envelope><gml:pos>{p}</gml:pos></gml:Envelope></a:b>",
    "<a:boundedBy><a:W><a:g><gml:Point><gml:pos>{p}</gml:pos></gml:Point></a:g></a:W></a:boundedBy>",
    "<!-- {} -->",
)
GML_BETWEEN = (
    "",
    "</gml:featureMembers>",
    "<gml:featureMembers>",
    "<gml:name>n</gml:name>",
    "<gml:FeatureCollection><gml:description>d</gml:description>",
    "<gml:featureMember>",
    "</a:f>",
)
GML_FEATURES = (
    '<gml:featureMember><a:f gml:id="{}">%s</a:f></gml:featureMember>',
    "<wfs:member>\n<f>%s</f>\n</wfs:member>",
    '<a:f gml:id="f.{}" fid="{}">%s</a:f>',
)
GPX_TEXTS = ("a", "b c", "1.5", "2020-01-02T03:04:05Z", "2020-13-02", "a\nb", " a", "", "a&amp;b", "<![CDATA[a\nb]]>")
GPX_POSITIONS = ("1", "-1.5", "1,5", "1e2", "", "N1")
GPX_PARTS = (
    "<ele>{}</ele>\n",
    "<time>{}</time>",
    "<time>2020-01-0{d}T03:04:05Z</time>",
    "<name>{}</name>",
    "<speed>{}</speed>",
    "<a:b>{}</a:b>",
    '<link href="{}"/>',
    '<link href="a"><text>{}</text></link>',
    "<extensions><a:b>{}</a:b>\n<a:c>{}</a:c></extensions>",
    "<extensions><a:b><a:c>{}</a:c></a:b></extensions>",
    "<cmt/>",
    "<!-- {} -->",
)
GPX_BETWEEN = (
    "",
    "<trk><name>n</name><trkseg>",
    "</trkseg><extensions><a:b>1</a:b></extensions></trk>",
    "<wpt>",
    '<gpx version="1.0"><desc>d</desc>',
    "<gpx>",
)
GPX_FEATURES = (
    '<wpt lat="{p}" lon="{p}">%s</wpt>',
    '<trkpt lat="{p}" lon="{p}">%s</trkpt>',
    '<trkpt lat="{p}" lon="{p}"/>',
    '<rtept\nlat="{p}" lon="{p}">%s</rtept>',
)


class Kind(NamedTuple):
    """What documents of a format consist of."""

    features: Sequence[str]
    parts: Sequence[str]
    between: Sequence[str]
    plain: Sequence[str]
    """The texts that most features have."""
    texts: Sequence[str]
    positions: Sequence[str] = ("1",)


KINDS = {
    "Kml": Kind([f"<Placemark{each}>%s</Placemark>" for each in IDS], PARTS, BETWEEN, PLAIN, TEXTS),
    "Gml": Kind(GML_FEATURES, GML_PARTS, GML_BETWEEN, GML_PLAIN, GML_TEXTS, GML_POSITIONS),
    "Gpx": Kind(GPX_FEATURES, GPX_PARTS, GPX_BETWEEN, ("a", "b c", "1.5", "&lt;a&gt;"), GPX_TEXTS, GPX_POSITIONS),
}


@st.composite
def documents(draw: st.DrawFn, kind: Kind) -> bytes:
    """Text with features that are like others, or nearly."""
    chance = draw(st.randoms(use_true_random=False))
    shapes = [
        draw(st.sampled_from(kind.features)).replace("%s", "".join(part for part in parts if chance.random() < held))
        for parts in draw(st.lists(st.lists(st.sampled_from(kind.parts), max_size=6), min_size=1, max_size=3))
        for held in (1, 0.7, 0.7)
    ]
    features = [_feature(shapes, kind, chance) for _ in range(draw(st.integers(1, 60)))]
    content = [draw(st.sampled_from(kind.between)), *features]
    for _ in range(2):
        content.insert(chance.randrange(len(content)), draw(st.sampled_from(kind.between)))
    return f"<kml><Document>{''.join(content)}</Document></kml>".encode()


def _feature(shapes: Sequence[str], kind: Kind, chance: random.Random) -> str:
    is_odd = chance.random() < 0.1
    texts, positions = (kind.texts, kind.positions) if is_odd else (kind.plain, kind.positions[:2])
    shape = chance.choice(shapes)
    for place, values in {"{}": texts, "{p}": positions, "{d}": "1234"}.items():
        while place in shape:
            shape = shape.replace(place, chance.choice(values), 1)
    return shape + chance.choice(("\n", "\n", "", "a"))


@pytest.fixture(scope="module")
def directory(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A directory for documents."""
    return tmp_path_factory.mktemp("text")


@pytest.mark.no_cover
@pytest.mark.parametrize("name", KINDS)
@settings(max_examples=30)
@given(data=st.data())
def test_what_is_told_of_one_of_several_is_told_of_all(directory: Path, name: str, data: st.DataObject) -> None:
    """As by looks at every byte, wherever the pieces begin in which a file is read, and if it is shortened first."""
    path = directory / "a"
    content = b"</ExtendedData>" + data.draw(documents(KINDS[name]))  # of data that does not end, 1 MiB is looked at
    times = data.draw(st.sampled_from((1, 1, 1, CHUNK // len(content) + 1)))
    content = b" " * data.draw(st.one_of(st.just(LEAST), st.integers(CHUNK - 4000, CHUNK))) + times * content
    path.write_bytes(content)
    row = find_output(name)
    checks, counts = [check() for check in TEXT_CHECKS.get(reading_of(row).reader, ())], Counter[bytes]()
    TextTally(reading_of(row), counts).add(content)
    for check in checks:
        check.add(content)
    of_all = [told for check in checks for told in check.told()]
    with TemporaryDirectory(dir=directory) as shorter:
        assert TextChecks(row, Path(shorter)).tell([path]) == (of_all, warn_of_left_out(row, counts, [path]))


@pytest.mark.parametrize("blanks", [1, LEAST])
def test_each_element_that_is_repeated_is_counted_once(blanks: int) -> None:
    """Also where a search for the next one begins within a point of the piece before."""
    point = b"<wpt lat='1' lon='1'><ele>a</ele>\n<time>a</time><time>a</time><ele>a</ele>\n</wpt>\n"
    counts: Counter[bytes] = Counter()
    TextTally(reading_of(find_output("Gpx")), counts).add(b" " * blanks + 9940 * point)
    assert counts[REPEATED_IN_GPX] == 9940


@pytest.mark.parametrize("shape", ALIKE)
def test_of_features_that_are_alike_one_is_looked_at(shape: str) -> None:
    """Programs write many such features, and a look takes long."""
    features = [shape.format(f"a{number}", f"{number},2 3,4").encode() for number in range(999)]
    passed: Counter[bytes] = Counter()
    text = _condenser("Kml").condense(b"<kml>" + b"\n".join(features) + b"</kml>", passed)
    assert text == b"<kml>" + features[0] + b"</kml>"
    assert passed == {features[0]: 998}


MISSING = {
    "Kml": ("<Placemark><ExtendedData>%s</ExtendedData></Placemark>", '<SimpleData name="{}">{}</SimpleData>', ""),
    "Gml": ("<gml:featureMember><a:f>%s</a:f></gml:featureMember>", "<a:{0}>{1}</a:{0}>", '<a:{} xsi:nil="true"/>'),
    "Gpx": ("<wpt lat='1' lon='2'><ele>1</ele><extensions>%s</extensions></wpt>", "<a:{0}>{1}</a:{0}>", ""),
}


@pytest.mark.parametrize("name", MISSING)
def test_features_that_lack_different_columns_are_alike(name: str) -> None:
    """Of them, those stay that are the first to have a column, for drivers list columns in that order."""
    feature, column, none = MISSING[name]
    feature = feature.replace("'", '"')
    chance, seen, first = random.Random(1), set[str](), []
    features = []
    for number in range(2000):
        held = {f"c{n}": chance.random() < 0.6 for n in range(12)}
        parts = "".join((column if has else none).format(each, f"a{number}") for each, has in held.items())
        features.append(feature % parts)
        news = {f"{each} {has}" for each, has in held.items() if has or none} - seen
        seen |= news
        first += [features[-1]] * bool(news)
    text = _condenser(name).condense("\n".join(features).encode(), Counter())
    assert text == "".join(first).encode()


def test_features_of_several_kinds_in_turn_are_recognized() -> None:
    """Such as those of each of several folders."""
    condenser = _condenser("Kml")
    pieces = [
        b"".join(b"<Placemark><n>%d</n></Placemark>" % number for number in range(start, 3999)) for start in (1, 2)
    ]
    others = [piece.replace(b"n>", b"m>") for piece in pieces]
    found = [condenser.condense(piece, Counter()) for piece in (pieces[0] + others[0], *others, *pieces)]
    assert [piece.count(b"</Placemark>") for piece in found[1:]] == [1, 1, 1, 1]


@pytest.mark.parametrize(("name", "shape"), LARGE)
def test_a_large_document_of_features_that_are_alike_is_shortened(tmp_path: Path, name: str, shape: str) -> None:
    """For everything that looks for tags in it."""
    path = tmp_path / "a"
    features = "".join(shape.format(number) for number in range(2 * CHUNK // len(shape)))
    path.write_text(f"<a><gml:featureMembers>{features}</gml:featureMembers></a>")
    shorter = TextChecks(find_output(name), tmp_path / "new").shorter(path)
    assert shorter is not None
    assert shorter.read_text().count(shape.format("").partition(">")[0].partition(" ")[0]) <= 2 * len("pieces")


def test_a_document_without_such_features_is_looked_at_as_it_is(tmp_path: Path) -> None:
    """A second file of its size would take space for nothing."""
    path = tmp_path / "a.gml"
    path.write_bytes(b"<a:member><a:b/></a:member><!-- a -->" * (CHUNK // 10))
    assert TextChecks(find_output("Gml"), tmp_path).shorter(path) is None
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.no_cover
@pytest.mark.parametrize("part", CRAFTED)
@pytest.mark.parametrize("name", KINDS)
def test_each_byte_of_a_crafted_file_is_read_a_few_times(tmp_path: Path, name: str, part: bytes) -> None:
    """A search that began anew at every byte would stop the service."""
    path = tmp_path / "a.kml"
    again = b'<Placemark><Data name="a"><value>b</value></Data><Data name="A">c</Data></Placemark>'
    path.write_bytes(ALIKE[0].format("a", "b").encode() + part * (5 * CHUNK // (4 * len(part))) + again)
    told, _ = TextChecks(find_output(name), tmp_path).tell([path])
    assert any("such as 'a'" in each for each in told) == (name == "Kml")


def _condenser(name: str) -> Condenser:
    alike = reading_of(find_output(name)).alike
    assert alike is not None
    return Condenser(alike, bool)
