"""The scan and the host's converter agree on all kinds of documents: on features, columns and types."""

import json
import random
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from service.geojson.datetimes import Fidelity, read_moment
from service.geojson.findings import Scan
from service.geojson.numbers import pieces_within_64_bits
from service.geojson.refusals import Unreadable
from service.geojson.scan import scan_bytes
from tests.support.geojson import LINE, POINT, POLYGON, collection, feature, gathered, geometry, with_value

FEATURE = json.dumps(feature({"a": 1}))
WHOLE = collection(feature({"a": 1})).decode()
OGR_TYPES = {
    "String": "text",
    "Integer": "integer",
    "Integer64": "integer",
    "Integer(Boolean)": "boolean",
    "Real": "real",
    "Date": "date",
    "DateTime": "datetime",
    "Time": "time",
}

READ = {
    "a collection": WHOLE,
    "a feature": FEATURE,
    "a geometry": json.dumps(POINT),
    "a gathering": json.dumps(gathered(POINT, LINE)),
    "features first": f'{{"features": [{FEATURE}], "type": "FeatureCollection"}}',
    "two arrays of features": f'{{"type": "FeatureCollection", "features": [{FEATURE}], "features": [{FEATURE}]}}',
    "nothing": collection().decode(),
    "a byte order mark": "\ufeff" + WHOLE,
    "CRLF": WHOLE.replace(" ", "\r\n"),
    "lines": f"{FEATURE}\n{FEATURE}\n",
    "records": f"\x1e{FEATURE}\n\x1e{FEATURE}\n",
    "no geometry": collection({"type": "Feature", "properties": {"a": 1}}).decode(),
    "null geometry": collection(feature({"a": 1}, None), feature({"a": 1})).decode(),
    "no properties": collection({"type": "Feature", "geometry": POINT, "name": "x", "n": 5}).decode(),
    "null properties": collection({"type": "Feature", "geometry": POINT, "properties": None, "n": 5}).decode(),
    "properties in an array": collection({"type": "Feature", "geometry": POINT, "properties": []}).decode(),
    "other elements": collection(5, None, [1], feature({"a": 1})).decode(),
    "capital letters": WHOLE.replace('"geometry"', '"Geometry"').replace('"properties"', '"PROPERTIES"'),
    "equal names": with_value('1, "a": "x"').decode(),
    "names that differ in case": collection(feature({"a": 1, "A": 2})).decode(),
    "NaN": with_value("NaN").decode(),
    "infinity": with_value("-Infinity").decode(),
    "a large exponent": with_value("1E400").decode(),
    "many digits": with_value("1" * 300).decode(),
    "control characters": with_value('"a\tb\nc\x01"').decode(),
    "a NUL": with_value('"a\\u0000b"').decode(),
    "half a pair": with_value('"\\ud800"').decode(),
    "nesting": with_value("[" * 200 + "]" * 200).decode(),
    "text ids": collection(feature({"a": 1}, id="x"), feature({"a": 2}, id=5)).decode(),
    "numbers as ids": collection(feature({"a": 1}, id=5), feature({"a": 2}, id="x")).decode(),
    "negative ids": collection(feature({"a": 1}, id=-5)).decode(),
    "an id beside a property": collection(feature({"a": 1, "id": 7}, id="x")).decode(),
}

REFUSED = {
    "nothing": "",
    "blanks": " \n",
    "words": "hello",
    "an array": f"[{FEATURE}]",
    "another object": "{}",
    "no type": f'{{"features": [{FEATURE}]}}',
    "no features": '{"type": "FeatureCollection"}',
    "features that are no array": '{"type": "FeatureCollection", "features": {}}',
    "a broken geometry": '{"type": "Point", "coordinates": [1]}',
    "more after it": WHOLE + "x",
    "two of them": WHOLE + WHOLE,
    "half of it": WHOLE[:-30],
    "a comma too many": f'{{"type": "FeatureCollection", "features": [{FEATURE},]}}',
    "a comment": "/* x */" + WHOLE,
    "a bad escape": with_value('"\\q"').decode(),
    "a plus sign": with_value("+1").decode(),
    "a capital": with_value("True").decode(),
    "endless nesting": with_value("[" * 100_000 + "]" * 100_000).decode(),
}


def converter_view(folder: Path, document: str) -> str | None:
    """What the host's converter reports for a document, or None if it cannot read it."""
    path = folder / "in.geojson"
    path.write_bytes(document.encode("utf-8", "surrogatepass"))
    ogrinfo = shutil.which("ogrinfo")
    assert ogrinfo is not None
    command = [ogrinfo, "-ro", "-so", "-al", "-oo", "ARRAY_AS_STRING=YES", str(path)]
    done = subprocess.run(command, capture_output=True, text=True, errors="replace", check=False)
    return done.stdout if done.returncode == 0 and "Layer name" in done.stdout else None


def columns_of(view: str) -> dict[str, str]:
    """The columns in ogrinfo's output, with their types."""
    kinds = "|".join(map(re.escape, OGR_TYPES))
    found = re.findall(rf"^(.*): ({kinds})(?:\(JSON\))?(?: \([^)]*\))?$", view, re.MULTILINE)
    return {name: OGR_TYPES[kind] for name, kind in found}


def types_of(scan: Scan) -> dict[str, str]:
    """The columns in the findings, with their types."""
    return {field.name: str(field.type) for field in scan.fields}


@pytest.mark.parametrize("name", READ)
def test_what_is_scanned_is_read_alike(tmp_path: Path, name: str) -> None:
    """The same features and columns."""
    text = READ[name].encode("utf-8", "surrogatepass")
    found = scan_bytes(text)
    given = b"".join(pieces_within_64_bits(text)) if found.is_beyond_64_bits else text
    view = converter_view(tmp_path, given.decode("utf-8", "surrogatepass"))
    assert view is not None
    assert re.findall(r"Feature Count: (\d+)", view) == [str(found.features)]
    assert columns_of(view) == types_of(found)


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_refused_is_refused_by_both(tmp_path: Path, name: str) -> None:
    """Nothing that the converter reads in these ways is refused."""
    assert converter_view(tmp_path, REFUSED[name]) is None
    with pytest.raises(Unreadable):
        scan_bytes(REFUSED[name].encode())


def with_members(members: str) -> str:
    """A collection with one feature and these members beside its type."""
    return f'{{"type": "FeatureCollection", "features": [{{"type": "Feature", {members}}}]}}'


PLACE, WAY = json.dumps(POINT), json.dumps(LINE)
A, B = '{"a": 1}', '{"b": "x"}'
ALIKE = {
    "geometry twice": f'"properties": {A}, "geometry": {PLACE}, "geometry": {WAY}',
    "geometry in other letters after it": f'"properties": {A}, "geometry": {PLACE}, "Geometry": {WAY}',
    "geometry in other letters before it": f'"properties": {A}, "Geometry": {WAY}, "geometry": {PLACE}',
    "geometry in other letters only": f'"properties": {A}, "Geometry": {WAY}, "GEOMETRY": {PLACE}',
    "null geometry before another": f'"properties": {A}, "geometry": null, "Geometry": {WAY}',
    "null geometry after another": f'"properties": {A}, "Geometry": {WAY}, "geometry": null',
    "properties twice": f'"properties": {A}, "properties": {B}, "geometry": {PLACE}',
    "properties in other letters after it": f'"properties": {A}, "Properties": {B}, "geometry": {PLACE}',
    "properties in other letters before it": f'"PROPERTIES": {B}, "properties": {A}, "geometry": {PLACE}',
    "null properties before others": f'"properties": null, "Properties": {B}, "geometry": {PLACE}',
    "another geometry among what become columns": f'"x": 5, "geometry": {PLACE}, "Geometry": {WAY}',
    "type in other letters beside it": f'"Type": "x", "properties": {A}, "geometry": {PLACE}',
    "id in other letters before it": f'"ID": "x", "id": 5, "properties": {A}, "geometry": {PLACE}',
    "id in other letters after it": f'"id": "x", "ID": 5, "properties": {A}, "geometry": {PLACE}',
}


@pytest.mark.parametrize("name", ALIKE)
def test_members_that_are_called_alike_are_read_alike(tmp_path: Path, name: str) -> None:
    """Scan and converter take the same member, and a warning reports the others; also in a single feature."""
    whole = with_members(ALIKE[name])
    for document in (whole, whole[whole.index("[") + 1 : whole.rindex("]")]):
        view, found = converter_view(tmp_path, document), scan_bytes(document.encode())
        assert view is not None
        assert columns_of(view) == types_of(found)
        shown = re.findall(r"^Geometry: (.*)$", view, re.MULTILINE)
        assert shown == [{"Point": "Point", "LineString": "Line String"}[kind] for kind in found.geometry_types] or [
            "Unknown (any)"
        ]
        assert found.repeated_members == 1


def test_type_in_other_letters_makes_no_feature_of_an_element(tmp_path: Path) -> None:
    """In a collection, the converter then reads only the geometry."""
    document = with_members(f'"properties": {{"a": 1}}, "geometry": {PLACE}').replace(
        '"type": "Feature"', '"Type": "Feature"'
    )
    view, found = converter_view(tmp_path, document), scan_bytes(document.encode())
    assert view is not None
    assert columns_of(view) == types_of(found) == {}
    assert (found.not_features, found.geometry_types) == (1, {"Point": 1})


def moment_like(generator: random.Random) -> str:
    """A date, a time or both, sometimes with a change."""
    moment = generator.choice(
        ["2020-02-29", "2020/1/2", "10:20:30", "23:59", "2020-02-29T10:20:30Z", "1999-12-31 24:00", "T1020", "T10:20"]
    )
    for _ in range(generator.randrange(4)):
        at = generator.randrange(len(moment) + 1)
        moment = moment[:at] + generator.choice("0123456789-/:TZ .+x") + moment[at + generator.randrange(2) :]
    return moment


@pytest.mark.parametrize("seed", range(4))
def test_dates_and_times_are_recognised_alike(tmp_path: Path, seed: int) -> None:
    """Each text alone in a column: the converter gives it the same type, or gets the option to keep texts."""
    generator = random.Random(seed)
    texts = [moment_like(generator) for _ in range(1000)]
    view = converter_view(tmp_path, collection(feature({f"f{n}": text for n, text in enumerate(texts)})).decode())
    assert view is not None
    made = columns_of(view)
    differing = {
        text: kind for number, text in enumerate(texts) if (kind := made[f"f{number}"]) != read_moment(text)[0]
    }
    assert {text: kind for text, kind in differing.items() if read_moment(text)[1] is not Fidelity.BEGINNING} == {}


columns = st.lists(
    st.sampled_from(
        [None, True, 0, 2**31, 2**63 - 1, 0.5, "x", "2020-01-01", "2020-01-01T10:00", "10:00", [1], {"a": 1}]
    ),
    min_size=1,
    max_size=4,
)


@settings(max_examples=8, deadline=None)
@given(st.lists(columns, min_size=200, max_size=200))
def test_types_of_columns_are_joined_alike(tmp_path_factory: pytest.TempPathFactory, made: list[list[Any]]) -> None:
    """Columns of a few values each, in any order."""
    rows = [{f"f{number}": values[row] for number, values in enumerate(made) if row < len(values)} for row in range(4)]
    document = collection(*map(feature, rows))
    view = converter_view(tmp_path_factory.mktemp("types"), document.decode())
    assert view is not None
    found, expected = types_of(scan_bytes(document)), columns_of(view)
    differing = {
        str(made[int(name[1:])]): (kind, found[name]) for name, kind in expected.items() if found[name] != kind
    }
    assert differing == {}


def test_geometry_types_are_counted_alike(tmp_path: Path) -> None:
    """For a document with one geometry family and elevations, the converter reports the same type."""
    ring = [[0, 0, 1], [0, 1, 1], [1, 1, 1], [0, 0, 1]]
    for shape, name in ((POINT, "Point"), (LINE, "Line String"), (POLYGON, "Polygon")):
        view = converter_view(tmp_path, collection(feature(None, shape)).decode())
        assert view is not None
        assert f"Geometry: {name}" in view
    view = converter_view(tmp_path, collection(feature(None, geometry("Polygon", [ring]))).decode())
    assert view is not None
    assert "Geometry: 3D Polygon" in view
    assert scan_bytes(collection(feature(None, geometry("Polygon", [ring])))).types_with_z == {"Polygon": 1}
