"""The report and its warnings, from findings."""

import json
from typing import Any

import msgspec
import pytest

from service.dataloss.rules import Report, not_applicable, report
from service.dataloss.warnings import extra_warnings
from service.formats.facts import Flaw, Occurrence
from service.geojson.scan import scan_bytes
from service.geojson.warnings import reading_warnings
from tests.support.geojson import LINE, POINT, POLYGON, collection, feature, flaw, gathered, geometry


def told(*features: Any) -> Report:
    """The report on a collection."""
    return report(scan_bytes(collection(*features)))


def warned(*features: Any) -> list[str]:
    """The warnings for a collection."""
    return extra_warnings(scan_bytes(collection(*features)))


def test_the_report_has_the_members_of_the_specification() -> None:
    """Each under its name, including empty ones."""
    assert msgspec.json.decode(msgspec.json.encode(told(feature({"a": 1})))) == {
        "applicable": True,
        "hasWarnings": False,
        "hasDataLoss": False,
        "featureCount": 1,
        "fieldNameTruncations": [],
        "fieldNameCollisions": [],
        "valueTruncations": [],
        "geometryCoercions": [],
        "summary": {
            "fieldsTruncated": 0,
            "fieldNameCollisions": 0,
            "fieldsWithValueTruncation": 0,
            "geometryIssues": 0,
        },
    }


def test_other_directions_are_not_applicable() -> None:
    """The report says so and nothing else."""
    assert not_applicable() == Report(applicable=False)
    assert not not_applicable().has_warnings
    assert not not_applicable().has_data_loss


def test_a_longer_name_is_a_rename_and_no_loss() -> None:
    """Names of more than ten characters are shortened."""
    found = told(feature({"exactly_10": 1, "population_density": 2}))
    assert msgspec.to_builtins(found.field_name_truncations) == (
        {"original": "population_density", "truncated": "population"},
    )
    assert (found.has_warnings, found.has_data_loss) == (True, False)
    assert found.summary.fields_truncated == 1


def test_names_of_other_alphabets_are_shortened_by_letters() -> None:
    """To the longest prefix of whole characters within ten bytes."""
    found = told(feature({"人口密度統計": 1, "größe_straße": 2, "名称": 3}))
    assert {entry.original: entry.truncated for entry in found.field_name_truncations} == {
        "人口密度統計": "人口密",
        "größe_straße": "größe_st",
    }


def test_names_that_become_equal_are_a_loss() -> None:
    """Ignoring case, as the table does."""
    found = told(feature({"population_2020": 1, "population_2021": 2, "POPULATION_X": 3, "Name": 4, "name": 5}))
    assert msgspec.to_builtins(found.field_name_collisions) == (
        {"truncatedName": "population", "fields": ("population_2020", "population_2021", "POPULATION_X")},
        {"truncatedName": "Name", "fields": ("Name", "name")},
    )
    assert found.has_data_loss
    assert (found.summary.field_name_collisions, found.summary.fields_truncated) == (2, 3)


def test_values_that_are_cut_are_a_loss() -> None:
    """With the longest one and their number, in bytes."""
    found = told(feature({"t": "x" * 300}), feature({"t": "é" * 200}), feature({"t": "short"}))
    assert msgspec.to_builtins(found.value_truncations) == (
        {"field": "t", "maxLength": 400, "limit": 254, "affectedFeatures": 2},
    )
    assert found.has_data_loss
    assert found.summary.fields_with_value_truncation == 1


def test_several_families_are_a_loss() -> None:
    """The report counts them and says where they go."""
    multi = geometry("MultiPoint", [[1, 2]])
    found = told(feature(), feature(None, POLYGON), feature(None, POLYGON), feature(None, multi))
    (issue,) = found.geometry_coercions
    assert issue.issue == "mixed_geometry_families"
    assert issue.types == ("Point", "MultiPoint", "Polygon")
    assert "1 Point (first in feature 1), 1 MultiPoint (first in feature 4), 2 Polygon (first in feature 2)" in (
        issue.detail
    )
    assert (
        "points in the one whose name ends in _point, polygons in the one whose name ends in _polygon" in issue.detail
    )
    assert found.has_data_loss
    assert found.summary.geometry_issues == 1


@pytest.mark.parametrize(
    "shapes",
    [
        [POINT, geometry("MultiPoint", [[1, 2]])],
        [LINE, geometry("MultiLineString", [LINE["coordinates"]])],
        [POLYGON, geometry("MultiPolygon", [POLYGON["coordinates"]]), None],
    ],
)
def test_one_family_is_no_loss(shapes: list[Any]) -> None:
    """A type and its Multi type share a file, and a null geometry keeps its row."""
    assert told(*(feature(None, shape) for shape in shapes)).geometry_coercions == ()


def test_collections_are_a_loss() -> None:
    """The report says what they contain."""
    found = told(feature(None, gathered(POINT, POINT)), feature(None, gathered(POINT)))
    (issue,) = found.geometry_coercions
    assert (issue.issue, issue.types) == ("geometry_collection", ("GeometryCollection",))
    assert issue.detail == (
        "2 features with a GeometryCollection (first in feature 1), which a Shapefile cannot hold. "
        "The geometries in them (3 Point) are written to the Shapefile."
    )
    assert found.has_data_loss


def test_collections_of_several_families_are_two_losses() -> None:
    """They are split, and spread over several files."""
    found = told(feature(None, gathered(POINT, LINE)))
    assert [issue.issue for issue in found.geometry_coercions] == ["mixed_geometry_families", "geometry_collection"]
    assert found.geometry_coercions[0].types == ("Point", "LineString")


def test_geometries_that_cannot_be_read_are_a_loss() -> None:
    """Whole ones and parts."""
    polygon = geometry("Polygon", [POLYGON["coordinates"][0], [["x", 1]]])
    (issue,) = told(feature(None, geometry("Point", [])), feature(None, polygon)).geometry_coercions
    assert issue.issue == "unreadable_geometry"
    assert issue.detail == (
        "1 feature with a geometry that is not valid or has no coordinates, and is left out, "
        "and 1 with a geometry that can be read only in part."
    )


def test_elements_that_are_no_features_are_a_loss() -> None:
    """They have no place in the file."""
    (issue,) = told(feature(), {"type": "Blob"}).geometry_coercions
    assert issue.issue == "not_a_feature"


@pytest.mark.parametrize(
    ("value", "sentence"),
    [
        ({"a": [1]}, "1 value in x: objects and arrays are written as JSON text."),
        (1e-300, "1 value in x: numbers with more digits than a Shapefile can hold are rounded."),
        (
            1e300,
            (
                "1 value in x: numbers beyond 1e24 or -1e23 do not fit into a Shapefile; 1e30, for example, becomes "
                "1e23. "
                "The first is feature 1."
            ),
        ),
        ("2020-01-01T10:00:00Z", "1 value in x: times are written as text, because a Shapefile has only dates."),
        ("", "1 value in x: a Shapefile cannot tell empty text from a missing value."),
        ("x ", "1 value in x: trailing blanks are lost."),
        (" x", "1 value in x: programs such as QGIS leave out leading blanks."),
    ],
)
def test_other_losses_are_warnings(value: Any, sentence: str) -> None:
    """One sentence per kind."""
    assert sentence in warned(feature({"x": value}))


@pytest.mark.parametrize(
    ("feature_text", "sentence"),
    [
        (
            r'{"type": "Feature", "properties": {"x": "a\ud83d\u00e9"}, "geometry": null}',
            (
                r"1 escape of an unpaired surrogate, such as \ud83d without its second half: U+FFFD is written instead."
                " Of names in one object that become the same by this, only the last one is kept, with its value."
            ),
        ),
        (
            '{"type": "Feature", "properties": {}, "geometry": null, "Geometry": null}',
            "1 feature with geometry, properties, id or type more than once (ignoring case): only one of each is read.",
        ),
        (
            '{"type": "Feature", "properties": {}, "geometry": null, "style": {}, "bbox": []}',
            "Members that are not part of GeoJSON are not kept: style. Put them into the properties to keep them.",
        ),
        (
            '{"type": "Feature", "properties": {"x": "2020-01-01T10:00:00.1234Z"}, "geometry": null}',
            "1 value in x: times are kept with millisecond precision.",
        ),
        (
            r'{"type": "Feature", "properties": {"x": "a\u0000b"}, "geometry": null}',
            "1 value in x: text is cut off at its first NUL character.",
        ),
        (
            '{"type": "Feature", "properties": {"x": NaN}, "geometry": null}',
            "1 value in x: NaN is not a number; the value is missing in results of formats that cannot hold it.",
        ),
        (
            '{"type": "Feature", "geometry": {"type": "LineString", "coordinates": [[1, 2], [3, 4, 5]]}}',
            (
                "1 feature with elevations in some positions of the geometry only: the others got the elevation 0. "
                "The first is feature 1."
            ),
        ),
        (
            '{"type": "Feature", "properties": {}, "geometry": {"type": "Point", "coordinates": [1, 2, 3, 4]}}',
            (
                "1 feature with more than three numbers in positions, such as measures (M): only three of each were "
                "kept. The first is feature 1."
            ),
        ),
        (
            '{"type": "Feature", "properties": {}, "geometry": {"type": "Point", "coordinates": ["1", "2"]}}',
            (
                "1 feature with a geometry that cannot be read, such as one without coordinates, or with texts or null "
                "in place of numbers: only the properties were kept. The first is feature 1."
            ),
        ),
        (
            '{"type": "Feature", "geometry": {"type": "MultiLineString", "coordinates": [[[0, 0], [1, 1]], [[1]]]}}',
            (
                "1 feature with a geometry of which some parts cannot be read: the others were kept. "
                "The first is feature 1."
            ),
        ),
        (
            "5",
            "1 element of 'features' without the type Feature: content of such elements may have been left out.",
        ),
    ],
)
def test_losses_of_reading_are_warnings(feature_text: str, sentence: str) -> None:
    """For any target; one sentence per kind."""
    document = f'{{"type": "FeatureCollection", "features": [{feature_text}]}}'
    assert reading_warnings(scan_bytes(document.encode())) == [sentence]


def test_texts_are_kept_where_only_their_beginning_would_be() -> None:
    """An option makes the converter keep all dates as text; between JSON formats, nothing is lost."""
    document = collection(feature({"x": "10:00 and on", "day": "2020-01-01"}))
    found = scan_bytes(document).keeping_texts()
    assert found.dates_are_texts
    assert [field.type for field in found.fields] == ["text", "text"]
    assert reading_warnings(found) == [
        (
            "1 value in x: the text would change as a date or time (it is more than one, has no seconds, or "
            "names a day that no calendar has), so all dates of the file stay text."
        )
    ]
    assert reading_warnings(found, into_json=True) == []
    assert scan_bytes(collection(feature({"day": "2020-01-01"}))).keeping_texts().fields[0].type == "date"


def test_the_report_counts_texts_that_are_kept() -> None:
    """They may be too long."""
    found = scan_bytes(collection(feature({"x": "2020-01-01 10:00 " + "and more " * 40}))).keeping_texts()
    (cut,) = report(found).value_truncations
    assert (cut.field, cut.max_length) == ("x", 377)


def test_members_of_the_document_itself_that_are_foreign_are_told() -> None:
    """They belong to no feature."""
    document = collection(feature({}), feature({}, bbox=[1]), name="x", generator="y", bbox=[1, 2])
    assert scan_bytes(document).foreign_members == ("generator",)


FOREIGN_TO_GEOMETRY = {
    "regular": b'{"type": "Point", "coordinates": [1, 2], "properties": {}, "a": 1}',
    "in other case": b'{"Type": "Point", "Coordinates": [1, 2], "properties": {}, "a": 1}',
    "not strict": b'{"type": "Point", "coordinates": [1, 2], "properties": NaN, "a": 1}',
}


@pytest.mark.parametrize("kind", FOREIGN_TO_GEOMETRY)
def test_foreign_members_of_geometries_are_found_however_they_are_written(kind: str) -> None:
    """Also those with the name of a member of features, and those that only later features have."""
    place = b'{"type": "Feature", "properties": {"b": 1}, "geometry": %b}'
    plain = place % b'{"type": "Point", "coordinates": [1, 2], "bbox": [1, 2, 1, 2], "crs": null}'
    null = place % b"null"
    every = b",".join([plain, null, place % FOREIGN_TO_GEOMETRY[kind], null, plain])
    found = scan_bytes(b'{"type": "FeatureCollection", "features": [%b]}' % every)
    assert found.foreign_members == ("geometry.properties", "geometry.a")
    assert (found.geometry_types, found.null_geometries, found.flaws) == ({"Point": 3}, 2, {})


def test_members_of_a_geometry_alone_that_are_foreign_are_told() -> None:
    """Also those that a document or feature has; its coordinates are not."""
    text = b'{"name": "here", "type": "Point", "coordinates": [1, 2], "a": 1, "bbox": [1, 2, 1, 2], "id": 7}'
    scan = scan_bytes(text)
    assert scan.foreign_members == ("name", "a", "id")
    (told,) = reading_warnings(scan, into_json=True)
    assert told.startswith("Members that are not part of GeoJSON are not kept: name, a, id.")


@pytest.mark.parametrize("around", [b"%b", b'{"type": "Feature", "properties": {}, "geometry": %b}'])
def test_members_of_geometries_in_collections_that_are_foreign_are_told(around: bytes) -> None:
    """Also in collections within them."""
    nested = b'{"type": "GeometryCollection", "geometries": [%b]}'
    part = b'{"type": "Point", "coordinates": [1, 2], "bbox": [1, 2, 1, 2], "%b": 1}'
    parts = b",".join([part % b"a", nested % (part % b"name"), part % b"a"])
    assert scan_bytes(around % (nested % parts)).foreign_members == ("geometry.a", "geometry.name")


def test_members_of_features_that_only_a_document_has_are_foreign() -> None:
    """Such as a name, which nothing reads there."""
    document = collection(feature({}, name="x"), feature({}, features=[1]), name="y")
    assert scan_bytes(document).foreign_members == ("name", "features")


@pytest.mark.parametrize("into_json", [True, False])
def test_integers_beyond_64_bits_are_told_for_every_target(*, into_json: bool) -> None:
    """Alone, and in lists and objects."""
    found = scan_bytes(collection(feature({"x": 10**30, "y": [{"a": [-(10**30)]}]}), feature({"x": 2**63 - 1})))
    assert reading_warnings(found, into_json=into_json) == [
        "2 values in x, y: integers beyond 64 bits are clamped to the 64-bit range."
    ]


@pytest.mark.parametrize("into_json", [True, False])
def test_values_that_change_their_type_are_told_for_every_target(*, into_json: bool) -> None:
    """The driver makes texts of numbers in a column with texts, and numbers of true and false in one with numbers."""
    first, second = feature({"x": 0.1, "y": True, "z": True}), feature({"x": "a", "y": "b", "z": 2})
    decimal, whole, truth = reading_warnings(scan_bytes(collection(first, second)), into_json=into_json)
    assert decimal.startswith("1 value in x: decimal numbers became texts")
    assert whole.startswith("1 value in y: integers, true and false became texts")
    assert truth.startswith("1 value in z: true and false became 1 and 0")


UTM, GRADS = ({"type": "name", "properties": {"name": f"EPSG:{code}"}} for code in (25832, 4807))


@pytest.mark.parametrize(
    ("document", "count", "first"),
    [
        (collection(feature(), feature(geometry={**POINT, "crs": UTM}), feature(crs=UTM)), 2, 2),
        (collection(feature(crs=UTM), feature(geometry={**POINT, "crs": GRADS}), crs=UTM), 1, 2),
        (collection(feature(crs=None), feature(geometry={**POINT, "crs": UTM}), crs=UTM), 0, 0),
        (json.dumps({**POINT, "crs": UTM}).encode(), 0, 0),
    ],
)
def test_systems_that_features_name_are_told_unless_the_document_names_the_same(
    document: bytes, count: int, first: int
) -> None:
    """PostGIS writes them into geometries; only that of the document is read."""
    found = scan_bytes(document)
    assert flaw(found, Flaw.OTHER_SYSTEM) == Occurrence(count, first)
    assert sum("with a coordinate system (crs) in the feature" in told for told in reading_warnings(found)) == bool(
        count
    )


def test_a_repeated_member_is_a_loss() -> None:
    """One of the geometries is dropped."""
    (issue,) = told({**feature({}), "Geometry": None}).geometry_coercions
    assert issue.issue == "repeated_member"


def test_what_is_kept_gives_no_warning() -> None:
    """Plain values of all kinds."""
    assert warned(feature({"a": 1, "b": 2.5, "c": "text", "d": True, "e": None, "f": "2020-01-01"})) == []


def test_features_without_geometry_are_warnings() -> None:
    """Their rows are in the file."""
    assert warned(feature(id=1), feature(None, None, id=2), feature(None, geometry("LineString", []))) == [
        "1 feature without geometry: the row is written with an empty shape.",
        "1 feature with an empty geometry: the row is written with an empty shape.",
    ]


def test_lost_ids_are_told_for_every_target_but_json() -> None:
    """Only another JSON format has a place for them beside the properties."""
    found = scan_bytes(collection(feature(id=1), feature(None, None, id=2)))
    assert reading_warnings(found) == [
        "2 features with an id outside the properties: it is not written; copy it into the properties to keep it."
    ]
    assert reading_warnings(found, into_json=True) == []


def test_a_warning_names_a_few_columns() -> None:
    """The first few, and how many more there are."""
    (warning,) = warned(feature({f"c{number}": [1] for number in range(1200)}))
    assert warning == "1,200 values in c0, c1, c2, c3, c4 and 1195 more: objects and arrays are written as JSON text."
