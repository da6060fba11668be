"""Words and patterns are counted in files of any length, each occurrence once."""

from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

from service.formats import left_out
from service.formats.format import Format, reading_of
from service.formats.left_out import CHUNK, LONGEST_MATCH, has_features
from service.formats.registry import find_output
from service.formats.table import FORMATS
from service.formats.table.databases import HEIGHTS_LEFT_OUT, RULES_LEFT_OUT
from service.formats.table.gml import PAGE_TOLD
from service.formats.text_checks import check_texts

KML, GML, ESRI_JSON, DXF, OPENFILEGDB = (
    next(row for row in FORMATS if row.token == token) for token in ("kml", "gml", "esrijson", "dxf", "openfilegdb")
)
ENDS = (b"a </SimpleData>", b"a ]]></SimpleData>", b"  </SimpleData>")
NO_ENDS = (b"a</SimpleData>", b"a\n</SimpleData>", b"a\t</SimpleData>", b" </Placemark>", b" </name>", b" </value>")
EMPTY = (
    "Elements without content, or of line ends or blanks alone (1), became missing values or empty texts; columns that "
    "hold nothing else were left out."
)
COMMAS = (
    "Commas in the elements pos and posList (1) were read as separators of coordinates, like blanks. If they are "
    "decimal commas, write decimal points and send the file again."
)
BLANKS = "Blanks and line ends at the beginning of texts (1) were left out."
LINES = "Line ends in texts of extensions (1) were left out; words beside them may have been joined."
NESTED = "Elements within elements of extensions (1) were not read; their columns are 0, or hold XML."
UNREAD = (
    "Elements that GPX 1.1 does not define were left out of 1 of the points, routes and tracks: "
    "only those within extensions are read."
)
EXTENSIONS = "Extensions of segments of tracks, and of the whole file (1), were left out."
TRACK_POINT = "<trkpt lat='1' lon='2'>"
HIGH_POINT, FLAT_POINT = f"{TRACK_POINT}<ele>1</ele></trkpt>", "<trkpt lat='1' lon='2'/>"
FLAT = "Points of tracks without elevations, next to others that have them, got the elevation 0 in their lines."
OF_EXTENSIONS = "Attributes of elements in extensions were left out of at least 1 of the points, routes and tracks."
OLDER = (
    "Elements of GPX 1.0, such as speed, course and url, were left out of at least 1 of the points. To keep them, "
    'declare version="1.0" in the file.'
)
ROOT = "<gpx version='1.1'>"
BEGINS = "Blanks and line ends at the beginning of texts (1) were left out."
ENDS_BLANK = "Blanks at the end of texts (1) were left out."
AROUND = "Blanks around snippets (1) were left out."
SNIPPETS = "Snippets (1) were left out."
DATA = (
    "Data of features (1) may have been left out: outside of folders, only what the Schema declares is read. Put these "
    "features into a Folder to keep it."
)
OF_KML = "Descriptions and authors of documents and folders (1) were left out."
UNDEFINED = (
    "Elements that KML does not define were left out of at least 1 of the features: of their own values, only those "
    "within ExtendedData are read."
)
AGAIN = (
    "Elements that a feature or geometry has more than once (1), such as a second name, were left out: the last one is "
    "read."
)
NAMELESS = "Data (1) without a name was left out."
VALUELESS = "Data (1) with a text outside of the element value was read without it. Write <value>…</value>."
ATTRIBUTES = "Attributes of features and values (1), such as codeSpace, nilReason and xml:lang, were left out."
CIRCLES = "Circles and arcs around a center in degrees (1) became lines of short segments."
OF_GML = "The name or description of the whole collection was left out."
OF_GPX = "The metadata of the file (name, description, author, copyright or keywords) was left out."
VIEWS = "Views (LookAt, 1) were left out."
CAMERAS = (
    "Cameras (1) were left out, except that the one of a feature without geometry became its geometry, with columns "
    "such as heading and tilt."
)
SECOND_IN_KML = "Features with several geometries outside of a MultiGeometry (1): only the last of each is read."
POINT, LINE = (
    "<Point><coordinates>1,2</coordinates></Point>",
    "<LineString id='a'><coordinates>1,2 3,4</coordinates></LineString>",
)
IDENTIFIED = '<a:f gml:id="f.a" fid="f.a"><a:n uom="m">1</a:n></a:f>'
BOUNDS = "<gml:boundedBy><gml:Envelope> 1 </gml:Envelope></gml:boundedBy>"
COLUMN = '{"name": "street", "type": "esriFieldTypeString", "alias": "street", "length": 9}'
NO_NUMBERS = "Empty values (1) became 0 in columns that the file declares as numbers, and empty texts in others."
NUMBERS = '<SimpleField name="m" type="string"/><SimpleField name="n" type="int"/>'
FIELD = "<FieldType xmlns:a='b'>esriFieldType{}</FieldType>\n  <IsNullable>{}</IsNullable>"
PARTS = {
    "OpenFileGdb": {
        FIELD.format("String", "false"): (RULES_LEFT_OUT.format(count=1),),
        FIELD.format("String", "true"): (),
        FIELD.format("OID", "false"): (),
        "<FieldType>esriFieldTypeDouble</FieldType> <Length>8</Length>": (RULES_LEFT_OUT.format(count=1),),
        "<FieldType>esriFieldTypeDouble</FieldType> <MergePolicy>a</MergePolicy>": (),
        "<DefaultValueString>a</DefaultValueString><DefaultValue xsi:type='xs:int'>7</DefaultValue>": (
            RULES_LEFT_OUT.format(count=2),
        ),
        "<DefaultValue></DefaultValue>": (),
        "<esri:GPRangeDomain2 xsi:type='a'>": (RULES_LEFT_OUT.format(count=1),),
        "<WKID>28992</WKID><VCSWKID>5709</VCSWKID>": (HEIGHTS_LEFT_OUT,),
    },
    "Kml": {
        f'{NUMBERS}<SimpleData name="n"/>': (NO_NUMBERS,),
        f'{NUMBERS}<SimpleData name="n"></SimpleData>': (NO_NUMBERS,),
        f'{NUMBERS}<SimpleData name="n">\n</SimpleData>': (BEGINS, NO_NUMBERS),
        f'<SimpleData name="n"><![CDATA[]]></SimpleData>{NUMBERS}': (NO_NUMBERS,),
        f'{NUMBERS}<SimpleData name="n">0</SimpleData><SimpleData name="n"><![CDATA[a]]></SimpleData><value/>': (),
        '<SimpleField name="int" type="string"/><SimpleData name="int"/>': (),
        '<SimpleData name="n">&#32;a</SimpleData>': (BEGINS,),
        '<SimpleData name="n">\n</SimpleData><SimpleData name="n">\t</SimpleData>': (BEGINS,),
        '<SimpleData name="n"><![CDATA[\n]]></SimpleData><SimpleData name="n"/>\n': (BEGINS,),
        '<SimpleData name="n">\n  <![CDATA[a]]></SimpleData>': (),
        '<SimpleData name="n">a&#x20;</SimpleData>': (ENDS_BLANK,),
        '<SimpleData name="n">a&#33;</SimpleData>': (),
        "<Snippet>\n a\n</Snippet>": (AROUND,),
        '<snippet maxLines="2"><![CDATA[ a]]></snippet>': (AROUND,),
        "<Snippet>a </Snippet>": (AROUND,),
        "<name>snippet> a</name><Snippet/><Snippet> </Snippet>\n<Snippet>a</Snippet>\n<open>a</open>": (),
        "<Schema name='a'/><Snippet>a</Snippet><Snippet></Snippet>": (SNIPPETS,),
        "<Snippet><![CDATA[a]]></Snippet><Schema name='a'/><Snippet><![CDATA[]]></Snippet>": (SNIPPETS,),
        "<Schema name='a'/><Snippet maxLines='0'></Snippet><Snippet>\n</Snippet>\n": (),
        "<Data name='a'><value>b</value></Data><Schema name='a'></Schema>": (DATA,),
        "<Data name='a'><value>b</value></Data><SchemaData schemaUrl='#a'/>": (),
        "<Placemark><name>a</name>\n<open>1</open><tilt/><name>b</name></Placemark>": (AGAIN,),
        "<Point><coordinates>1,2</coordinates><coordinates>3,4</coordinates></Point>": (AGAIN,),
        "<Folder><name>a</name><Placemark><name>b</name></Placemark><Placemark><name>c</name></Placemark></Folder>": (),
        "<SimpleData name='a'>name</SimpleData><SimpleData name='b'>name</SimpleData>": (),
        "<Document id='a'>\n<name>n</name><description>d</description>": (OF_KML,),
        "<Folder><atom:author>\n<atom:name>n</atom:name></atom:author><Placemark>": (OF_KML,),
        "<Folder><description><![CDATA[\nd]]></description><description>d</description>": (OF_KML, AGAIN),
        "<Document><name>n</name><Folder><name>n</name><Placemark><description>d</description>": (),
        "<Folder><description/><description> </description><description><![CDATA[]]></description>": (AGAIN,),
        "<Document><Schema/></Document><description>d</description>": (),
        "<Placemark><LookAt><range>3</range></LookAt></Placemark><Camera id='a'></Camera>": (VIEWS, CAMERAS),
        f"<Placemark>{POINT}<name>n</name>\n{LINE}</Placemark><Placemark>{POINT}</Placemark>": (SECOND_IN_KML,),
        f"<Placemark\n>{POINT}{LINE}{POINT}</Placemark>": (SECOND_IN_KML,),
        f"<Placemark><MultiGeometry>{POINT}{POINT}</MultiGeometry>{LINE}</Placemark>": (SECOND_IN_KML,),
        f"<Placemark><Polygon><a><LinearRing></LinearRing></a></Polygon>{POINT}</Placemark>": (SECOND_IN_KML,),
        f"<Placemark><MultiGeometry>{POINT}{LINE}{POINT}</MultiGeometry></Placemark><Placemark>{LINE}</Placemark>": (),
        "<Placemark><Polygon><a><LinearRing></LinearRing></a><a><LinearRing/></a></Polygon></Placemark>": (),
        "<Placemark\n>\n<name>n</name><description><![CDATA[<a>1</a>]]></description>\n<pop>7</pop>": (UNDEFINED,),
        "<Placemark><pop>7</pop><name>n</name></Placemark>": (UNDEFINED,),
        "<Placemark><description>a<a>1</a></description><gx:b>1</gx:b></Placemark><Placemark><name/><open>1</open>": (),
        "<Placemark><name>pop</name>\n<Snippet maxLines='0'></Snippet>\n<TimeSpan><end/></TimeSpan>": (),
        "<Data><value>1</value></Data><SimpleData name='a'>1</SimpleData>": (NAMELESS,),
        "<Data uom='m'>\n<value>1</value></Data><Data id='a' name='b'><value>1</value></Data>": (NAMELESS,),
        "<Data name='a'>1</Data><Data name='b'>\n<value>1</value>\n</Data><Data name='c'/>": (VALUELESS,),
    },
    "Gml": {
        "<a:n/>": (EMPTY,),
        "<a:n></a:n>": (EMPTY,),
        "<gml:posList>9,5 50</gml:posList><gml:coordinates>9,50</gml:coordinates><gml:pos>9 5</gml:pos><a>1,2</a>": (
            COMMAS,
        ),
        "<a:n>\n</a:n><a:n>\n<a:n>1</a:n>\n</a:n>": (EMPTY,),
        "<gml:boundedBy/><a:m xsi:nil='true'/>": (),
        "<wfs:FeatureCollection a='1'>\n<gml:boundedBy><a:b>1</a:b></gml:boundedBy><gml:name>n</gml:name>": (OF_GML,),
        "<FeatureCollection><gml:description>d</gml:description>\n<gml:featureMember>": (OF_GML,),
        "<FeatureCollection><gml:featureMember><gml:name>n</gml:name></gml:featureMember>": (),
        "<FeatureCollection><gml:description> </gml:description><gml:member><gml:name>n</gml:name></gml:member>": (),
        "<wfs:FeatureCollection numberReturned='9'\n next='http://a?startIndex=9'>": (PAGE_TOLD,),
        "<wfs:FeatureCollection numberReturned='9'>\n<a:f next='1'>": (ATTRIBUTES,),
        '<a:f gml:id="i" fid="f"><a:n uom="m" lang="de">1</a:n>': (ATTRIBUTES,),
        "<c:C xmlns:c='http://c' version='1'><a:n xlink:title='t'/><Point srsName='s' srsDimension='2'>": (),
        "<gml:Arc numArc='1'/><gen:intAttribute name='n'><gen:value>1</gen:value></gen:intAttribute>": (),
        "<gml:Surface srsName='urn:ogc:def:crs:EPSG::4326'><gml:CircleByCenterPoint numArc='1'>": (CIRCLES,),
        "<gml:Surface srsName='urn:ogc:def:crs:EPSG::25832'><gml:CircleByCenterPoint numArc='1'>": (),
        "<a:n>\n  text</a:n>": (BLANKS,),
        "<a:n>\r\ntext\r\n</a:n>": (BLANKS,),
        "<a:n> 5th</a:n>": (BLANKS,),
        "<a:n><![CDATA[ text]]></a:n>": (BLANKS,),
        "<gml:pos>\n  1.5 -2e3\n</gml:pos>\n  <a:n>text\n</a:n><a:m>\t7 </a:m>": (),
    },
    "Gpx": {
        "<name/>": (EMPTY,),
        "<desc></desc>": (EMPTY,),
        f"{ROOT}\n<metadata><name>n</name><desc>d</desc></metadata><wpt lat='1' lon='2'>": (OF_GPX,),
        f"{ROOT}<metadata><bounds a='1'/><author><name>n</name></author></metadata>": (OF_GPX,),
        f"{ROOT}<metadata>\n<author><email id='a' domain='b'/></author></metadata>": (OF_GPX,),
        f"{ROOT}<metadata><copyright author='a'><year>2020</year></copyright></metadata>": (OF_GPX,),
        f"{ROOT}<metadata><keywords><![CDATA[a]]></keywords></metadata>": (OF_GPX,),
        "<gpx version='1.0'><desc>d</desc><author>a</author><wpt lat='1' lon='2'>": (OF_GPX,),
        f"{ROOT}<metadata><link href='a'><text>b</text></link><time>t</time></metadata><trk><name>n</name>": (),
        f"{ROOT}<metadata><name> </name></metadata><extensions><name>n</name></extensions>": (),
        f"{ROOT}<trk><name>n</name></trk><wpt lat='1' lon='2'><desc>d</desc></wpt>": (),
        "<extensions><o:a/></extensions>": (EMPTY,),
        "<extensions><o:a>\n</o:a></extensions>": (EMPTY,),
        "<extensions/><trk><trkseg/></trk><trkpt lat='1' lon='2'/>": (),
        "<extensions><o:a>two\nlines</o:a></extensions>": (LINES,),
        "<extensions>\n<a>\r\nlines</a>\n</extensions>": (LINES,),
        "<extensions><o:a><![CDATA[two\nlines]]></o:a></extensions>": (LINES,),
        "<name>two\nlines</name>\n<desc>\nlines\n</desc><ele>\n1.5\n</ele><hdop>\n1</hdop>": (),
        "<extensions><o:a>\n <o:b>1</o:b><o:c>2</o:c></o:a></extensions>": (NESTED,),
        "<extensions><o:a>1</o:a>\n<o:b>2</o:b></extensions>": (),
        "<wpt lat='1' lon='2'><o:a>1</o:a><o:b>2</o:b>\n<name>a</name></wpt>": (UNREAD,),
        "<o:a k='1'><o>1</o></o:a><link href='b'><text>c</text></link><extensions></extensions></wpt>": (UNREAD,),
        "<trk><name>a</name><url>b</url><urlname>c</urlname><number>1</number>\n<trkseg>": (UNREAD,),
        "<rte><o:a>1</o:a><rtept lat='1' lon='2'><name><![CDATA[<b>a</b>]]></name></rtept><rtept lat='1' lon='2'>": (
            UNREAD,
        ),
        "</metadata><wpt lat='1' lon='2'><ele>1</ele></wpt><trk><name>a</name><trkseg><trkpt lat='1' lon='2'>": (),
        f"{TRACK_POINT}<ele>1</ele><extensions><speed>1</speed><o:a>1</o:a></extensions></trkpt></trkseg><trkseg>": (),
        "</trkpt><extensions><o:a>1</o:a></extensions></trkseg></trk><extensions>": (EXTENSIONS,),
        f"{ROOT}<trkpt lat='1' lon='2'><time>2020-01-02T03:04:05Z</time><course>1</course><speed>2</speed></trkpt>": (
            OLDER,
        ),
        f"{ROOT}<wpt lat='1' lon='2'><url>a</url><name>b</name><extensions><speed>1</speed></extensions></wpt>": (
            OLDER,
        ),
        "<gpx creator='version=1.0'><trkpt lat='1' lon='2'><speed>2</speed></trkpt>": (OLDER,),
        f"{ROOT}<wpt lat='1' lon='2'><speed>2</speed><course>3</course></wpt>": (OLDER,),
        f"{ROOT}<wpt lat='1' lon='2'><speed>2</speed><a>3</a><b>4</b></wpt>": (UNREAD, OLDER),
        f"{ROOT}<wpt lat='1' lon='2'><a>3</a><speed>2</speed></wpt>": (UNREAD, OLDER),
        '<gpx creator="a" version="1.0"><trkpt lat="1" lon="2"><speed>2</speed></trkpt>': (),
        "<extensions><o:a>1</o:a><o:b k='1'>2</o:b></extensions>": (OF_EXTENSIONS,),
        "<extensions>\n<o:b k='1'>2</o:b></extensions>": (OF_EXTENSIONS,),
        "<extensions><o:a xmlns='o'>1</o:a></extensions><wpt lat='1' lon='2'>": (),
        f"{HIGH_POINT}</trkseg><trkseg></trkseg>\n<trkseg/><trkseg>{FLAT_POINT}": (FLAT,),
        f"{FLAT_POINT}<extensions><a>1</a></extensions></trkseg><trkseg>{HIGH_POINT}": (FLAT, EXTENSIONS),
        f"{HIGH_POINT}</trkseg></trk><trk><trkseg>{FLAT_POINT}</trkseg>": (),
    },
}
"""Pieces of documents, and what is said of them."""
PIECE = 4 * LONGEST_MATCH
REPEATED = (
    b"</x><link><text>a</text><text>a</text>",
    b"</url><link><text>a</text></link>",
    b"<speed>1</speed>",
    b"</x><ele><![CDATA[",
    b"<trkpt/><extensions><a>1</a>",
)
"""Elements that may be the last of a point, and begin what others of them may end with."""


@pytest.fixture
def small_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    """Files are read in pieces so small that one that goes on in the next piece is soon written and read."""
    monkeypatch.setattr(left_out, "PIECE", PIECE)


@pytest.mark.usefixtures("small_pieces")
@pytest.mark.parametrize("before", [0, *range(PIECE - 16, PIECE + 1), PIECE + LONGEST_MATCH])
def test_blanks_at_the_ends_of_texts_are_counted_once(tmp_path: Path, before: int) -> None:
    """Wherever the pieces begin in which a file is read."""
    path = tmp_path / "a.kml"
    path.write_bytes(b"<Placemark>".ljust(before, b"x") + b"".join((*ENDS, *NO_ENDS)))
    told = [warning for warning in check_texts(KML, [path])[1] if "at the end" in warning]
    assert told == [f"Blanks at the end of texts ({len(ENDS)}) were left out."]


@pytest.mark.usefixtures("small_pieces")
@pytest.mark.parametrize(("name", "part"), [(name, part) for name, parts in PARTS.items() for part in parts])
@pytest.mark.parametrize("before", [0, PIECE - 50])
def test_what_the_driver_leaves_out_is_counted(tmp_path: Path, name: str, part: str, before: int) -> None:
    """What it keeps is not, however similar it is."""
    path = tmp_path / "a"
    path.write_bytes(b"x" * before + part.encode())
    assert tuple(check_texts(find_output(name), [path])[1]) == PARTS[name][part]


@pytest.mark.parametrize("part", [b"<gpx ", b"<metadata>a", b"<a> ", b"<author><name>", b"<name>  <"])
def test_what_is_said_of_a_crafted_file_is_read_once(tmp_path: Path, part: bytes) -> None:
    """A search that began anew at every byte would stop the service."""
    path = tmp_path / "a"
    path.write_bytes(ROOT.encode() + part * (3 * CHUNK // len(part)) + b"<metadata><name>n</name></metadata>")
    assert OF_GPX in check_texts(find_output("Gpx"), [path])[1]


@pytest.mark.no_cover
@pytest.mark.parametrize("part", REPEATED)
def test_each_part_of_a_crafted_file_is_read_once(tmp_path: Path, part: bytes) -> None:
    """The time would grow with the square of the file's size, and nothing else of the service would run meanwhile."""
    path = tmp_path / "a"
    path.write_bytes(ROOT.encode() + part * (3 * CHUNK // len(part)) + b"<wpt lat='1' lon='2'><speed>1</speed></wpt>")
    assert OLDER in check_texts(find_output("Gpx"), [path])[1]


@pytest.mark.parametrize(
    "part",
    [
        b"<Placemark",
        b"<Placemark><Point>",
        b"<Placemark><Point></Point",
        b"<Placemark><Point></Point><a>",
        b"<Placemark><name><![CDATA[",
    ],
)
def test_each_feature_of_a_crafted_file_is_read_once(tmp_path: Path, part: bytes) -> None:
    """A search for further geometries ends with the feature."""
    path = tmp_path / "a"
    path.write_bytes(part * (3 * CHUNK // len(part)) + f"<Placemark>{POINT}{LINE}</Placemark>".encode())
    assert SECOND_IN_KML in check_texts(KML, [path])[1]


@pytest.mark.parametrize(
    ("row", "text"),
    [
        (DXF, b"\n0\nSPLINE\n30\n" + b" " * (4 * CHUNK) + b"x"),
        (DXF, b"\n0\nSPLINE" + b"\n5\n0\nSPLINE" * (CHUNK // 10) + b"\n71\n2" + b"\n5\n0" * CHUNK),
        (OPENFILEGDB, b"</CatalogPath><Name>x</Name>" * (CHUNK // 10) + b"<AliasName>x</AliasName>"),
        (OPENFILEGDB, b"<AliasName>x</AliasName>" + b"</CatalogPath><Name>x</Name><GPFieldInfoEx>" * (CHUNK // 10)),
    ],
    ids=["spline", "splines", "layers", "columns"],
)
def test_each_line_and_each_layer_of_a_crafted_file_is_read_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, row: Format, text: bytes
) -> None:
    """In a piece of some megabytes, a search that began anew at every blank or layer would take an hour."""
    monkeypatch.setattr(left_out, "PIECE", 8 * CHUNK)
    path = tmp_path / "a"
    path.write_bytes(text)
    assert "" not in check_texts(row, [path])[1]


@pytest.mark.usefixtures("small_pieces")
@pytest.mark.parametrize("newline", [b"\n", b"\r\n"])
@pytest.mark.parametrize("before", [0, *range(PIECE - 45, PIECE + 1, 3), PIECE + LONGEST_MATCH])
def test_entities_of_a_drawing_are_counted_once(tmp_path: Path, before: int, newline: bytes) -> None:
    """Also two of which one's name is the beginning of the other's, where a piece of the file ends within it."""
    path = tmp_path / "a.dxf"
    entities = b"\n  0\nRAY\n  8\nMESH\n  0\nRAYS\n  8\n0\n  0\nWIPEOUT\n  8\nRAY\n  0\n3DSOLID\n  0\nRAY\n  0\nEOF\n"
    path.write_bytes(b"x" * before + entities.replace(b"\n", newline))
    told = sorted(sentence[:40] for sentence in check_texts(DXF, [path])[1])
    assert told == ["Entities that cannot be read (3) were le", "Wipeouts (1), which hide what lies below"]


@pytest.mark.usefixtures("small_pieces")
@pytest.mark.parametrize("vertices", [1, 3 * PIECE // 20])
def test_arcs_are_counted_however_long_their_polyline_is(tmp_path: Path, vertices: int) -> None:
    """Where the name of the entity was several pieces of the file ago."""
    path = tmp_path / "a.dxf"
    bulge = b"10\n1\n20\n2\n42\n0.5\n"
    path.write_bytes(b"0\nSECTION\n0\nLWPOLYLINE\n" + b"10\n1.5\n20\n2.5\n42\n0\n" * vertices + 2 * bulge + b"0\nEOF\n")
    assert list(check_texts(DXF, [path])[1]) == [
        "Arcs and other curves in polylines and hatches (2) became lines of short segments."
    ]


@pytest.mark.usefixtures("small_pieces")
@pytest.mark.parametrize("row", [KML, GML, ESRI_JSON], ids=lambda row: row.token)
@pytest.mark.parametrize("before", [0, *range(PIECE - 20, PIECE + 1, 3), PIECE + LONGEST_MATCH])
def test_every_word_is_counted_for_its_own_warning(tmp_path: Path, row: Format, before: int) -> None:
    """Words that begin with the same byte are looked for together."""
    path = tmp_path / "a"
    for entry in reading_of(row).left_out:
        for word in entry.words:
            path.write_bytes(b"Placemark".ljust(before, b"x") + word * 3)
            assert list(check_texts(row, [path])[1]) == [entry.sentence.format(count=3)]


@pytest.mark.usefixtures("small_pieces")
@pytest.mark.parametrize("before", [0, PIECE - 5, PIECE, 3 * PIECE])
def test_features_are_found_wherever_they_begin(tmp_path: Path, before: int) -> None:
    """Also in two pieces of a file."""
    path = tmp_path / "a.kml"
    path.write_bytes(b"x" * before + b"<Placemark>" + b"x" * PIECE)
    assert has_features(KML, path)
    path.write_bytes(b"x" * before)
    assert not has_features(KML, path)


@pytest.mark.usefixtures("small_pieces")
@pytest.mark.parametrize("at", range(1, 60))
def test_what_ends_a_piece_of_a_file_is_not_taken_for_whole(tmp_path: Path, at: int) -> None:
    """Neither the beginning of a longer name, nor a feature that goes on, which would count twice."""
    path = tmp_path / "a.kml"
    second = f"<Placemark>{POINT}{LINE}{'<a>b</a>' * 9}</Placemark>"
    for start, told in (("<SchemaData/><Data name='a'/>", {}), (second, {SECOND_IN_KML: ""})):
        path.write_text(" " * (PIECE - len(start) + at) + start, encoding="utf-8")
        assert check_texts(KML, [path])[1] == told


PARSER: Any = import_module("re._parser")
"""The library has no public way to look at the parts of an expression."""
WITHIN: Mapping[str, Callable[[Any], Sequence[Any]]] = {
    **dict.fromkeys(("SUBPATTERN", "MAX_REPEAT", "MIN_REPEAT", "POSSESSIVE_REPEAT"), lambda content: content[-1:]),
    "BRANCH": lambda content: content[1],
    "ATOMIC_GROUP": lambda content: [content],
}
"""The expressions in a part of an expression, by its kind."""


def ends_open(expression: Any) -> bool:
    """Whether a match may end with what must not follow it."""
    for kind, content in reversed(list(expression)):
        if str(kind) == "ASSERT_NOT" and content[0] > 0:
            return True
        if any(map(ends_open, WITHIN.get(str(kind), lambda _: [])(content))):
            return True
        if PARSER.SubPattern(expression.state, [(kind, content)]).getwidth()[0]:
            return False
    return False


@pytest.mark.parametrize("row", [row for row in FORMATS if row.reading], ids=lambda row: row.token)
def test_no_pattern_ends_with_what_must_not_follow(row: Format) -> None:
    """Nothing follows at the end of a piece of a file, so that what is usual would be told in large files."""
    patterns = {pattern for entry in reading_of(row).left_out for pattern in (entry.pattern, entry.beside) if pattern}
    assert not [pattern for pattern in patterns if ends_open(PARSER.parse(pattern))]


@pytest.mark.parametrize(
    ("pattern", "is_open"),
    [("a(?!b)", True), ("(?:a|b(?!c)d?)", True), ("(?>a(?!b))$", True), ("a(?!b).", False), ("a(?<!b)", False)],
)
def test_the_end_of_a_pattern_is_known_in_all_its_branches(pattern: str, *, is_open: bool) -> None:
    assert ends_open(PARSER.parse(pattern)) is is_open


@pytest.mark.usefixtures("small_pieces")
@pytest.mark.parametrize("at", range(1, 60))
@pytest.mark.parametrize(
    ("row", "text"), [(GML, BOUNDS), (GML, IDENTIFIED), (ESRI_JSON, COLUMN)], ids=["bounds", "ids", "esrijson"]
)
def test_what_is_usual_is_not_told_where_a_piece_of_a_file_ends_in_it(
    tmp_path: Path, row: Format, text: str, at: int
) -> None:
    """Bounds of features are boxes, ids are attributes, and titles of columns that are their names are titles."""
    path = tmp_path / "a"
    path.write_text(" " * (PIECE - len(text) + at) + text, encoding="utf-8")
    assert check_texts(row, [path])[1] == {}


@pytest.mark.usefixtures("small_pieces")
@pytest.mark.parametrize("before", [0, *range(PIECE - 300, PIECE, 23)])
@pytest.mark.parametrize("text", ["1;2 3;4", "1 " * 200_000, "1,2 3;4"])
def test_coordinates_that_are_no_numbers_are_counted_once(tmp_path: Path, before: int, text: str) -> None:
    """Wherever the pieces begin in which a file is read, and however long the text is."""
    path = tmp_path / "a.kml"
    good = "<Placemark><Point><coordinates> 1,2,3 4,5\n</coordinates></Point></Placemark>"
    bad = f"<Placemark><Point><coordinates>{text}</coordinates></Point></Placemark>"
    path.write_text(f"{' ' * before}{good}{bad}{good}", encoding="utf-8")
    told = check_texts(find_output("Kml"), [path])[1]
    assert [sentence[:35] for sentence in told] == ["Coordinates of geometries (1) that "]


@pytest.mark.usefixtures("small_pieces")
@pytest.mark.parametrize("before", range(PIECE - 60, PIECE, 7))
def test_points_without_degrees_are_counted_once(tmp_path: Path, before: int) -> None:
    """Wherever the pieces begin in which a file is read."""
    path = tmp_path / "a.gpx"
    path.write_text(f"{' ' * before}<wpt lon='1' lat='2'/><wpt lon='1,5' lat='2'/><wpt lat='1' lon='2'/>")
    told = check_texts(find_output("Gpx"), [path])[1]
    assert [sentence[:33] for sentence in told] == ["Waypoints (1) whose lat or lon is"]
