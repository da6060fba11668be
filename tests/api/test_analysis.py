"""The analysis says what a Shapefile would lose, and the conversion says the same (specification 2.4, 4.4)."""

import json
from typing import Any

from tests.support.data import collection, feature, lakes, point, square
from tests.support.server import Client

LOSSY = collection(
    feature(point(1, 2), population_2020=1, population_2021=2, short="x" * 300, id=1),
    feature(square(), population_2020=3, population_2021=4, short="y", id=2),
)


def analyze(client: Client, name: str, content: bytes) -> dict[str, Any]:
    """The answer of the analysis."""
    response = client.post("/api/geo/convert/analyze", files={"file": (name, content)})
    assert response.status_code == 200, response.text
    answer: dict[str, Any] = response.json()
    return answer


def test_the_report_names_every_loss(client: Client) -> None:
    """Renamed, colliding and over-long fields, and mixed geometry families."""
    answer = analyze(client, "a.geojson", LOSSY)
    report = answer["report"]
    assert answer["success"] is True
    assert (report["applicable"], report["hasWarnings"], report["hasDataLoss"]) == (True, True, True)
    assert report["featureCount"] == 2
    assert {entry["original"] for entry in report["fieldNameTruncations"]} == {"population_2020", "population_2021"}
    assert report["fieldNameCollisions"] == [
        {"truncatedName": "population", "fields": ["population_2020", "population_2021"]}
    ]
    assert report["valueTruncations"] == [{"field": "short", "maxLength": 300, "limit": 254, "affectedFeatures": 1}]
    assert report["geometryCoercions"][0]["issue"] == "mixed_geometry_families"
    assert report["summary"] == {
        "fieldsTruncated": 2, "fieldNameCollisions": 1, "fieldsWithValueTruncation": 1, "geometryIssues": 1,
    }  # fmt: skip


def test_a_conversion_brings_the_same_report(client: Client) -> None:
    """Whether or not analyze was called; and only when the target is Shapefile."""
    assert client.convert("a.geojson", LOSSY)["truncationReport"] == analyze(client, "a.geojson", LOSSY)["report"]
    assert client.convert("a.geojson", LOSSY, outputFormat="GeoPackage")["truncationReport"] is None


def test_the_analysis_counts_nothing_and_makes_no_job(client: Client) -> None:
    """It is free."""
    analyze(client, "a.geojson", LOSSY)
    assert client.usage() == (0, 0)
    jobs = client.get("/api/geo/convert/jobs").json()["jobs"]
    assert [job["originalFileName"] for job in jobs] == ["x.unknown"]


def test_a_large_document_is_analysed_in_the_jail(client: Client) -> None:
    """The report is the same as that of a small one, but for its counts."""
    many = json.loads(LOSSY)
    many["features"] *= 2000
    report = analyze(client, "a.geojson", json.dumps(many).encode())["report"]
    assert report["featureCount"] == 4000
    assert report["valueTruncations"][0]["affectedFeatures"] == 2000


def test_other_inputs_are_not_applicable(client: Client) -> None:
    """A shapefile, or any other format, loses nothing that this report is about."""
    shapefile = client.download(client.convert("lakes.geojson", lakes()))
    for name, content in (("a.zip", shapefile), ("a.kml", b"<kml/>"), ("a.csv", b"a,b\n1,2\n")):
        answer = analyze(client, name, content)
        assert (answer["success"], answer["report"]["applicable"]) == (True, False)


def test_a_conversion_of_another_input_to_shapefile_has_a_report_that_is_not_applicable(client: Client) -> None:
    """The report is present whenever the target is Shapefile."""
    kml = client.download(client.convert("lakes.geojson", lakes(), outputFormat="Kml"))
    report = client.convert("lakes.kml", kml, outputFormat="Shapefile")["truncationReport"]
    assert (report["applicable"], report["hasWarnings"], report["fieldNameTruncations"]) == (False, False, [])


def test_a_broken_document_is_a_clear_failure(client: Client) -> None:
    """Not a report."""
    for content in (b"{", b"[]", b"", b"\xff\xfe"):
        answer = analyze(client, "a.geojson", content)
        assert answer["success"] is False
        assert answer["error"]
        assert "report" not in answer
