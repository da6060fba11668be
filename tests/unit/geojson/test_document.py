"""Which documents are read as GeoJSON, and why others are refused."""

import json
import random
from pathlib import Path

import pytest

from service.geojson import cursor, document
from service.geojson.decoding import FeatureDecoder
from service.geojson.findings import ScanOutcome, read_scan, write_outcome
from service.geojson.refusals import MAX_FIELDS, Reason, Unreadable
from service.geojson.scan import scan_bytes
from tests.support.geojson import POINT, collection, feature, gathered, geometry, with_value

FEATURE = json.dumps(feature({"a": 1}))
COLLECTION = collection(feature({"a": 1})).decode()

ONE_FEATURE = {
    "a collection": COLLECTION,
    "a single Feature": FEATURE,
    "a bare geometry": json.dumps(POINT),
    "a bare GeometryCollection": json.dumps(gathered(POINT)),
    "features before type": f'{{"features": [{FEATURE}], "type": "FeatureCollection"}}',
    "members on both sides": f'{{"x": [1], "features": [{FEATURE}], "type": "FeatureCollection", "y": {{}}}}',
    "a byte order mark": "\ufeff" + COLLECTION,
    "CRLF between tokens": COLLECTION.replace(" ", "\r\n"),
    "blanks around": f"\n \t{COLLECTION}\r\n ",
    "pretty-printed": json.dumps(json.loads(COLLECTION), indent=4),
    "type in other letters": COLLECTION.replace("FeatureCollection", "featurecollection"),
    "members of a feature in other letters": COLLECTION.replace('"geometry"', '"Geometry"'),
}

REFUSED = {
    "": Reason.EMPTY,
    " \r\n": Reason.EMPTY,
    "hello": Reason.NOT_JSON,
    "not json": Reason.NOT_JSON,
    "12 rows": Reason.NOT_JSON,
    "[not json": Reason.NOT_JSON,
    f"[{FEATURE}": Reason.TRUNCATED,
    "<kml/>": Reason.NOT_JSON,
    "/* x */" + COLLECTION: Reason.NOT_JSON,
    COLLECTION.replace('"', "'"): Reason.NOT_JSON,
    f"loadGeoJSON({COLLECTION})": Reason.NOT_JSON,
    COLLECTION + "x": Reason.NOT_JSON,
    COLLECTION + "}": Reason.NOT_JSON,
    COLLECTION + "\0": Reason.NOT_JSON,
    COLLECTION + COLLECTION: Reason.NOT_JSON,
    f'{{"type": "FeatureCollection", "features": [{FEATURE},]}}': Reason.NOT_JSON,
    f'{{"type": "FeatureCollection", "features": [{FEATURE} {FEATURE}]}}': Reason.NOT_JSON,
    f'{{"type": "FeatureCollection", "features": [,{FEATURE}]}}': Reason.NOT_JSON,
    '{"type": "FeatureCollection",, "features": []}': Reason.NOT_JSON,
    '{,"type": "FeatureCollection", "features": []}': Reason.NOT_JSON,
    '{"type" "FeatureCollection"}': Reason.NOT_JSON,
    '{type: "FeatureCollection"}': Reason.NOT_JSON,
    "null": Reason.NOT_GEOJSON,
    "17": Reason.NOT_GEOJSON,
    '"text" ': Reason.NOT_GEOJSON,
    "[NaN]": Reason.NOT_GEOJSON,
    "{}": Reason.NOT_GEOJSON,
    f"[{FEATURE}]": Reason.NOT_GEOJSON,
    '{"a": 1}': Reason.NOT_GEOJSON,
    '{"type": "Circle"}': Reason.NOT_GEOJSON,
    '{"type": 5}': Reason.NOT_GEOJSON,
    f'{{"features": [{FEATURE}]}}': Reason.NOT_GEOJSON,
    '{"type": "Topology", "objects": {}, "arcs": []}': Reason.TOPOJSON,
    '{"geometryType": "esriGeometryPoint", "features": []}': Reason.ESRI_JSON,
    '{"objectIdFieldName": "id", "fields": [], "features": []}': Reason.ESRI_JSON,
    '{"displayFieldName": "", "fields": [], "features": []}': Reason.ESRI_JSON,
    '{"type": "FeatureCollection"}': Reason.NO_FEATURES,
    '{"type": "FeatureCollection", "features": null}': Reason.NO_FEATURES,
    '{"type": "FeatureCollection", "features": {}}': Reason.NO_FEATURES,
    FEATURE + " 5": Reason.OTHER_LINES,
    f"{FEATURE},{FEATURE}": Reason.OTHER_LINES,
    '{"type": "FeatureCollection", "features": []}\n{"type": "FeatureCollection", "features": []}': Reason.OTHER_LINES,
    f'{FEATURE}\n{{"type": "Topology"}}': Reason.OTHER_LINES,
    f'{FEATURE}\n{{"properties": {{"a": 1}}, "geometry": null}}': Reason.OTHER_LINES,
    f'{FEATURE}\n{{"type": "FeatureCollection", "features": []}}': Reason.OTHER_LINES,
    '{"type": "Point", "coordinates": [1]}': Reason.BAD_GEOMETRY,
    '{"type": "Polygon"}': Reason.BAD_GEOMETRY,
}


def refusal(data: bytes) -> Reason:
    """Why a document is refused."""
    with pytest.raises(Unreadable) as caught:
        scan_bytes(data)
    assert caught.value.message.endswith(".")
    return caught.value.reason


@pytest.mark.parametrize("name", ONE_FEATURE)
def test_a_document_of_one_feature_is_read(name: str) -> None:
    """Whatever its spelling, one feature with one point is found."""
    found = scan_bytes(ONE_FEATURE[name].encode())
    assert found.features == 1
    assert sum(found.geometry_types.values()) == 1
    assert (found.not_features, found.null_geometries, found.flaws) == (0, 0, {})


@pytest.mark.parametrize("text", REFUSED)
def test_what_is_no_geojson_is_refused(text: str) -> None:
    """The reason says what is wrong."""
    assert refusal(text.encode()) is REFUSED[text]


def test_every_cut_off_document_is_called_that() -> None:
    """Wherever a document ends too early, except in trailing blanks."""
    whole = collection(feature({"name": "é\\", "n": -1.5e10}), feature(), name="x").strip()
    for length in range(1, len(whole)):
        assert refusal(whole[:length]) in {Reason.TRUNCATED, Reason.NOT_UTF8}, whole[:length]


@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-le", "utf-16-be", "utf-32"])
def test_only_utf_8_is_read(encoding: str) -> None:
    """Other encodings are refused, with a remedy."""
    assert refusal(COLLECTION.encode(encoding)) is Reason.NOT_UTF8


@pytest.mark.parametrize("text", ['{"a": "é"}', '{"é": 1}'])
def test_letters_that_are_not_utf_8_are_refused(text: str) -> None:
    """The converter would pass their bytes on, and the table would hold something else."""
    data = collection(feature({"a": 1})).replace(b'{"a": 1}', text.encode("latin-1"))
    assert refusal(data) is Reason.NOT_UTF8


@pytest.mark.parametrize("number", ["01", ".5", "5.", "+1", "0x5", "True", "1_000", "--1", "1e"])
def test_numbers_that_are_not_json_are_refused(number: str) -> None:
    """The converter would guess at some of them."""
    assert refusal(with_value(number)) is Reason.NOT_JSON


@pytest.mark.parametrize("depth", [901, 1_100, 9_000, 500_000])
@pytest.mark.parametrize("opening", ["[", '{"a":'])
def test_deep_nesting_is_refused(depth: int, opening: str) -> None:
    """In a property, in coordinates or beside the features, and never by exhausting the stack."""
    nested = opening * depth + "1" + ("]" if opening == "[" else "}") * depth
    assert refusal(with_value(nested)) is Reason.TOO_DEEP
    assert refusal(with_value("NaN, " + f'"b": {nested}')) is Reason.TOO_DEEP
    assert refusal(f'{{"type": "FeatureCollection", "x": {nested}, "features": []}}'.encode()) is Reason.TOO_DEEP
    assert refusal(f'{{"type": "Point", "coordinates": {nested}}}'.encode()) is Reason.TOO_DEEP


def test_collections_nested_deeply_are_refused() -> None:
    """A GeometryCollection may hold another one, but not hundreds."""
    nested = '{"type": "GeometryCollection", "geometries": [' * 400 + json.dumps(POINT) + "]}" * 400
    assert refusal(nested.encode()) is Reason.TOO_DEEP


def test_nesting_of_ordinary_depth_is_read() -> None:
    """A hundred levels become text like any other value."""
    assert scan_bytes(with_value("[" * 100 + "]" * 100)).fields[0].nested == 1


def test_too_many_properties_are_refused() -> None:
    """One more than allowed, or many more, in one feature or in several."""
    for many in (MAX_FIELDS + 1, 20 * MAX_FIELDS):
        in_one = feature({f"p{number}": number for number in range(many)})
        assert refusal(collection(in_one)) is Reason.TOO_MANY_FIELDS
    spread = [feature({f"p{number}": number}) for number in range(MAX_FIELDS + 1)]
    assert refusal(collection(*spread)) is Reason.TOO_MANY_FIELDS
    assert len(scan_bytes(collection(*spread[1:])).fields) == MAX_FIELDS


def test_endless_names_are_refused() -> None:
    """What leaves the jail stays small."""
    assert refusal(collection(feature({"x" * 5_000: 1}))) is Reason.LONG_NAMES
    assert refusal(collection(feature({"a": 1, "a\0b": 2}))) is Reason.ZERO_IN_NAMES
    assert refusal(collection(feature({f"{number}" * 500: 1 for number in range(1000, 1999)}))) is Reason.LONG_NAMES


def test_an_empty_collection_has_nothing() -> None:
    """A collection without features is valid."""
    found = scan_bytes(collection())
    assert (found.features, found.fields, found.geometry_types) == (0, (), {})


def test_newline_delimited_features_are_read() -> None:
    """Features one after another, with or without record separators."""
    lines = [json.dumps(feature({"a": number})) for number in range(5)]
    assert scan_bytes("\n".join(lines).encode()).features == 5
    assert scan_bytes("".join(f"\x1e{line}\n" for line in lines).encode()).features == 5
    assert refusal("\n".join([*lines, "{"]).encode()) is Reason.TRUNCATED


def test_features_may_come_in_several_arrays() -> None:
    """The converter reads both of two equal members."""
    text = f'{{"type": "FeatureCollection", "features": [{FEATURE}], "features": [{FEATURE}, {FEATURE}]}}'
    assert scan_bytes(text.encode()).features == 3


def test_elements_that_are_no_features_are_counted() -> None:
    """Numbers and nulls are omitted; objects of another type lose their properties."""
    found = scan_bytes(collection(5, None, [], {"type": "Foo", "properties": {"b": 1}}, feature({"a": 1})))
    assert (found.features, found.not_features) == (2, 4)
    assert [field.name for field in found.fields] == ["a"]


def test_members_that_are_missing_are_no_failure() -> None:
    """Without properties, a feature's own members are its columns; without geometry, it is a row."""
    found = scan_bytes(collection({"type": "Feature", "geometry": None, "name": "x"}, {"type": "Feature"}))
    assert (found.features, found.null_geometries) == (2, 2)
    assert [field.name for field in found.fields] == ["name"]


def test_the_layer_name_is_kept() -> None:
    """A collection may have a name."""
    assert scan_bytes(collection(feature(), name="roads")).layer_name == "roads"
    assert scan_bytes(collection(feature(), name=7)).layer_name is None


@pytest.mark.parametrize("window", [1, 7, 64, 1000, 1 << 20])
def test_windows_change_nothing(monkeypatch: pytest.MonkeyPatch, window: int) -> None:
    """Wherever the document is divided, and however misleading its text, the findings are the same."""
    monkeypatch.setattr(document, "WINDOW_BYTES", window)
    monkeypatch.setattr(cursor, "FIRST_GLANCE_BYTES", window)
    generator = random.Random(7)
    features = []
    for number in range(200):
        inner = [feature({"a": number}), {"type": "Feature", "n": [{"type": "Feature"}] * 3}]
        properties = {"a": number, "inner": inner, "text": '},{"type": "Feature"' * generator.randrange(3)}
        features.append(feature(properties, generator.choice([POINT, None, geometry("LineString", [[1, 2], [3, 4]])])))
    found = scan_bytes(collection(*features))
    assert found.features == 200
    assert {field.name: field.nested for field in found.fields} == {"a": 0, "inner": 200, "text": 0}
    assert sum(found.geometry_types.values()) + found.null_geometries == 200


@pytest.mark.parametrize(
    "after",
    [
        b"",
        b" \r\n\t",
        b',"bbox":[1,2,3,4]',
        b',"name":"]"',
        b',"note":"]}"',
        b',"a":{"b":[{}]}',
        b',"a":[{"type":"Feature"}]',
        b',"a":[]',
    ],
)
def test_what_follows_the_features_changes_nothing(after: bytes) -> None:
    """Whether or not the last bracket of the document is the end of the features."""
    features = [feature({"a": number, "text": "]}" * number}) for number in range(3)]
    alone = scan_bytes(b'{"type":"FeatureCollection","features":' + json.dumps(features).encode() + b"}")
    followed = scan_bytes(b'{"type":"FeatureCollection","features":' + json.dumps(features).encode() + after + b"}")
    for name in ("features", "fields", "geometry_types", "kind"):
        assert getattr(followed, name) == getattr(alone, name)
    assert alone.features == 3


def test_all_members_features_are_read() -> None:
    """Several of them make one list."""
    document = b'{"type":"FeatureCollection","features":[%b],"features":[%b]}'
    one = json.dumps(feature({"a": 1})).encode()
    assert scan_bytes(document % (one, one)).features == 2


def test_foreign_members_are_learned() -> None:
    """Features with such members, and those whose geometries have them, are decoded together like any others."""
    elements = [feature({"a": 1}), feature({"a": 2}) | {"color": "red"}, feature({"a": 3}, POINT | {"bands": 4})]
    decoder = FeatureDecoder()
    decoder.note(decoder.several(json.dumps(elements).encode()))
    assert list(decoder.foreign) == ["color", "geometry.bands"]


@pytest.mark.parametrize("name", ['a"b', "a\\b", "a\nb", "a` - at `$[1].geometry", "a` - at `$", ""])
def test_foreign_members_have_any_name(name: str) -> None:
    """Also one that a decoder cannot learn."""
    found = scan_bytes(collection(feature({"a": 1}), feature({"a": 2}) | {name: 1}))
    assert (found.features, list(found.foreign_members)) == (2, [name])


def test_a_feature_that_strict_json_refuses_spoils_no_other() -> None:
    """NaN in one feature of many is accepted, and so are control characters in a text."""
    good = [feature({"a": float(number), "t": "x"}) for number in range(500)]
    data = collection(*good[:250], feature({"a": float("nan"), "t": "LINES"}), *good[250:]).replace(
        b"LINES", b"a\nb\tc"
    )
    found = scan_bytes(data)
    assert found.features == 501
    assert [(field.type, field.filled) for field in found.fields] == [("real", 501), ("text", 501)]


FEATURES = b",\n".join([json.dumps(feature({"a": 1})).encode()] * 3)
BROKEN = {
    b"{\n\n'type': 1}": 3,
    b'{"type": "FeatureCollection",\n"features": [\n' + FEATURES + b",\n{\n'a': 1}]}": 7,
    b'{"type": "FeatureCollection",\n"features": [\n' + FEATURES + b"\n\n;]}": 7,
    b'{"type": "FeatureCollection",\n"a": {"b": 1,\n"c": [1 2]}}': 3,
    b'\n\n{"type": "FeatureCollection", "features": []}\n x': 4,
    b"\n(": 2,
}


@pytest.mark.parametrize("broken", BROKEN)
def test_text_that_is_no_json_is_refused_with_its_line(tmp_path: Path, broken: bytes) -> None:
    """Also by the sandbox, which writes it down."""
    with pytest.raises(Unreadable, match=f"not valid JSON: see line {BROKEN[broken]}[.]") as caught:
        scan_bytes(broken)
    write_outcome(tmp_path / "scan.json", ScanOutcome(refused=caught.value.reason, line=caught.value.line))
    with pytest.raises(Unreadable, match=f"see line {BROKEN[broken]}[.] Trailing commas"):
        read_scan(tmp_path / "scan.json")
