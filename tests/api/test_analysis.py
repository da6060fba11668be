"""The analysis reports what a Shapefile would lose, and the conversion reports the same (interface 2.4, 4.4)."""

import json
import socket
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import httpx
import pytest

from service.accounts.administration import Terms
from service.http.middleware.request_context import CLIENT_LEFT
from service.usecases.detect_format import UNPACKED
from tests.support.converters import at_a_standstill
from tests.support.data import collection, feature, lakes, point, square
from tests.support.large_files import crafted_gpx
from tests.support.patience import polls
from tests.support.server import Client, create_account, running_server

LOSSY = collection(
    feature(point(1, 2), population_2020=1, population_2021=2, short="x" * 300, id=1),
    feature(square(), population_2020=3, population_2021=4, short="y", id=2),
)


def analyze(client: Client, name: str, content: bytes) -> dict[str, Any]:
    """The response of the analysis."""
    response = client.post("/api/geo/convert/analyze", files={"file": (name, content)})
    assert response.status_code == 200, response.text
    answer: dict[str, Any] = response.json()
    return answer


def test_the_report_names_every_loss(client: Client) -> None:
    """Renamed, colliding and overlong fields, and mixed geometry families."""
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
    """Whether or not the analysis was requested, and only if the target is Shapefile."""
    assert client.convert("a.geojson", LOSSY)["truncationReport"] == analyze(client, "a.geojson", LOSSY)["report"]
    assert client.convert("a.geojson", LOSSY, outputFormat="GeoPackage")["truncationReport"] is None


def test_the_analysis_counts_nothing_and_makes_no_job(client: Client) -> None:
    """It is free."""
    analyze(client, "a.geojson", LOSSY)
    assert client.usage() == (0, 0)
    jobs = client.get("/api/geo/convert/jobs").json()["jobs"]
    assert [job["originalFileName"] for job in jobs] == ["x.unknown"]


def test_a_large_document_is_analysed_in_the_jail(client: Client) -> None:
    """The report equals that of a small document, except for the counts."""
    many = json.loads(LOSSY)
    many["features"] *= 2000
    report = analyze(client, "a.geojson", json.dumps(many).encode())["report"]
    assert report["featureCount"] == 4000
    assert report["valueTruncations"][0]["affectedFeatures"] == 2000


def test_other_inputs_are_not_applicable(client: Client) -> None:
    """Shapefiles and all formats other than GeoJSON lose nothing that this report covers."""
    shapefile = client.download(client.convert("lakes.geojson", lakes()))
    for name, content in (("a.zip", shapefile), ("a.kml", b"<kml/>"), ("a.csv", b"a,b\n1,2\n")):
        answer = analyze(client, name, content)
        assert (answer["success"], answer["report"]["applicable"]) == (True, False)


def test_a_conversion_of_another_input_to_shapefile_has_a_report(client: Client) -> None:
    """Whatever the input, the report lists what the Shapefile truncated, renamed and split."""
    rows = collection(feature(point(1, 2), a_long_name_indeed="x" * 300), feature(square(), a_long_name_indeed="y"))
    database = client.download(client.convert("a.geojson", rows, outputFormat="GeoPackage"))
    report = client.convert("a.gpkg", database, outputFormat="Shapefile")["truncationReport"]
    assert report["applicable"]
    assert report["hasDataLoss"]
    assert report["featureCount"] == 2
    assert report["fieldNameTruncations"] == [{"original": "a_long_name_indeed", "truncated": "a_long_nam"}]
    (cut,) = report["valueTruncations"]
    assert (cut["maxLength"], cut["affectedFeatures"]) == (300, 1)
    assert [entry["issue"] for entry in report["geometryCoercions"]] == ["mixed_geometry_families"]


def test_a_broken_document_is_a_clear_failure(client: Client) -> None:
    """It gets an error rather than a report."""
    for content in (b"{", b"[]", b"", b"\xff\xfe"):
        answer = analyze(client, "a.geojson", content)
        assert answer["success"] is False
        assert answer["error"]
        assert "report" not in answer


TOPOJSON = b"""{"type": "Topology", "arcs": [], "objects": {"places": {"type": "GeometryCollection", "geometries":
    [{"type": "Point", "coordinates": [1, 2], "properties": {"a_long_property": 1}}]}}}"""
ESRI_JSON = b"""{"geometryType": "esriGeometryPoint", "spatialReference": {"wkid": 4326}, "fields":
    [{"name": "a_long_property", "type": "esriFieldTypeInteger"}], "features":
    [{"attributes": {"a_long_property": 1}, "geometry": {"x": 1, "y": 2}}]}"""


@pytest.mark.parametrize(("title", "content"), [("TopoJSON", TOPOJSON), ("Esri JSON", ESRI_JSON)])
def test_json_that_is_no_geojson_is_called_by_its_name(client: Client, title: str, content: bytes) -> None:
    """Analysis supports only GeoJSON, and says so; a conversion has its report nonetheless."""
    answer = analyze(client, "a.json", content)
    assert (answer["success"], answer["report"]["applicable"]) == (True, False)
    (sentence,) = answer["warnings"]
    assert sentence.startswith(f"The file is {title}, not GeoJSON")
    converted = client.convert("a.json", content, outputFormat="Shapefile", sourceEpsg="4326")
    assert converted["success"], converted["error"]
    assert converted["truncationReport"]["applicable"] is True
    assert converted["truncationReport"]["fieldNameTruncations"][0]["truncated"] == "a_long_pro"
    assert any("'a_long_property' to 'a_long_pro'" in warning for warning in converted["warnings"])
    elsewhere = client.convert("a.json", content, outputFormat="Csv", sourceEpsg="4326")["warnings"]
    assert not any("not GeoJSON" in warning for warning in elsewhere)


@pytest.mark.parametrize("length", [1, 100_000])
def test_json_of_another_kind_is_refused_by_its_name(client: Client, length: int) -> None:
    """Wherever a file can be sent, and the member that names it is."""
    content = b'{"generator": "%s", "elements": []}' % (b"x" * length)
    targets = ("Csv", "GeoJson") if length == 1 else ("Csv",)
    answers = [client.convert("a.json", content, outputFormat=target) for target in targets]
    for answer in (analyze(client, "a.json", content), *answers):
        assert "it is an Overpass result" in answer["error"]


def test_the_description_of_a_layer_is_no_file_that_can_be_converted(client: Client) -> None:
    """Analysis called it Esri JSON, which the conversion then refused."""
    content = b'{"currentVersion": 10.91, "geometryType": "esriGeometryPoint", "fields": []}'
    for answer in (analyze(client, "a.json", content), client.convert("a.json", content, outputFormat="Csv")):
        assert "it is the description of an ArcGIS layer" in answer["error"]


def test_geojson_of_a_feature_a_line_is_analysed_by_its_name(client: Client) -> None:
    """It is treated as one document. Newline-delimited GeoJSON has no report, but the same warnings."""
    lines = b"".join(json.dumps(row).encode() + b"\n" for row in json.loads(LOSSY)["features"])
    report = analyze(client, "a.geojson", lines)["report"]
    assert report == analyze(client, "a.geojson", LOSSY)["report"]
    assert client.convert("a.json", lines, outputFormat="Shapefile")["truncationReport"] == report
    assert analyze(client, "a.geojsonl", lines)["report"]["applicable"] is False


def test_what_the_report_has_no_member_for_is_told_beside_it(client: Client) -> None:
    """In the same words as in the conversion."""
    odd = collection({**feature(point(1, 2), a={"b": 1}), "style": 1})
    told = analyze(client, "a.geojson", odd)["warnings"]
    assert len(told) == 2
    assert set(told) <= set(client.convert("a.geojson", odd)["warnings"])
    assert analyze(client, "a.geojson", lakes())["warnings"] == []


def test_an_analysis_has_a_place_of_its_account(tmp_path: Path, database_url: str) -> None:
    """Also one that needs no converter: any number of crafted files could wait to be looked at."""
    terms = Terms(plan="team", plan_owner="organization")
    one = {"GEOMILL_MAX_PER_ACCOUNT": "1"}
    with (
        running_server(tmp_path, database_url, one) as server,
        create_account(server, terms) as client,
        at_a_standstill(server),
    ):
        client.post("/api/geo/convert/file", files={"file": ("a.geojson", LOSSY)}, headers={"Prefer": "respond-async"})
        response = client.post("/api/geo/convert/analyze", files={"file": ("a.kml", b"<kml/>")})
        assert (response.status_code, response.json()["code"]) == (429, "too_many_requests")


def test_an_analysis_ends_with_its_client(tmp_path: Path, database_url: str) -> None:
    """A crafted file was looked through for minutes after its client had left."""
    terms, long = Terms(plan="team", plan_owner="organization"), {"GEOMILL_CONVERSION_SECONDS": "1000000"}
    with running_server(tmp_path, database_url, long) as server, create_account(server, terms) as client:
        address = urlsplit(server.url)
        request = httpx.Request("POST", server.url, files={"file": ("a.gpx.gz", crafted_gpx())})
        fields = {**request.headers, "X-API-Key": client.key.api_key}
        head = "".join(f"{name}: {value}\r\n" for name, value in fields.items())
        with socket.create_connection((address.hostname, address.port)) as connection:
            connection.sendall(f"POST /api/geo/convert/analyze HTTP/1.1\r\n{head}\r\n".encode() + request.read())
            assert any(list(server.data_dir.rglob(UNPACKED)) for _ in polls())
        assert any(server.events("request.finished") for _ in polls())
        assert [event["status"] for event in server.events("request.finished")] == [CLIENT_LEFT]
        assert server.wait_until_idle() == []
