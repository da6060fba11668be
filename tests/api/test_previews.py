"""A result can be viewed on a map before it is downloaded (interface 4.9, 4.10)."""

import gzip
import json
from typing import Any

import httpx
import pytest

from tests.api.conftest import NewClient
from tests.support.data import collection, feature, lakes, point, square
from tests.support.server import Client, Server

JOBS = "/api/geo/convert/jobs"
HERE = [31.0, 60.0]


def preview(client: Client, job_id: str) -> dict[str, Any]:
    """The preview of a job's result."""
    response = client.get(f"{JOBS}/{job_id}/preview")
    assert response.status_code == 200, response.text
    assert response.headers["content-type"] == "application/geo+json"
    document: dict[str, Any] = response.json()
    return document


def runs(server: Server) -> float:
    """How many times converters have run."""
    lines = httpx.get(f"{server.url}/metrics").text.splitlines()
    return sum(float(line.split()[-1]) for line in lines if line.startswith("geomill_converter_runs_total{"))


@pytest.mark.parametrize("target", ["Shapefile", "Csv", "Xlsx", "Dxf", "Wkt", "GeoParquet"])
def test_a_preview_is_in_longitude_and_latitude(client: Client, target: str) -> None:
    """Whatever the result's format and coordinate system, and whether or not the file records the system."""
    document = collection(feature(point(*HERE), name="Ladoga"), feature(point(13, 59), name="Vänern"))
    answer = client.convert("a.geojson", document, outputFormat=target, targetEpsg="3857")
    assert answer["success"], answer
    seen = preview(client, answer["jobId"])
    assert seen["features"][0]["geometry"]["coordinates"] == pytest.approx(HERE, abs=1e-5)
    about = {"featureCount": 2, "shown": 2, "complete": True, "simplified": False, "reason": None}
    assert seen["preview"] == about


def test_a_preview_is_made_once_and_not_counted(server: Server, client: Client) -> None:
    """The second request starts no converter, and neither changes what is left."""
    answer = client.convert("a.geojson", lakes(), outputFormat="Csv")
    counted = client.usage()
    seen = preview(client, answer["jobId"])
    assert server.wait_until_idle() == []  # of former tests, too
    before = runs(server)
    assert preview(client, answer["jobId"]) == seen
    assert (runs(server), client.usage()) == (before, counted)


def test_a_preview_tells_layers_apart(client: Client) -> None:
    """Each feature names its layer if there are several."""
    document = collection(feature(point(1, 2), a=1), feature(square(), a=2))
    answer = client.convert("a.geojson", document, outputFormat="Shapefile")
    assert answer["success"], answer
    layers = {one["layer"]: one["geometry"]["type"] for one in preview(client, answer["jobId"])["features"]}
    assert sorted(layers.values()) == ["Point", "Polygon"]


def test_a_table_has_a_preview_without_places(client: Client) -> None:
    """Its rows are features without a geometry."""
    answer = client.convert("a.csv", b"name,depth\nLadoga,230\n", outputFormat="Xlsx")
    (row,) = preview(client, answer["jobId"])["features"]
    assert (row["properties"], row["geometry"]) == ({"name": "Ladoga", "depth": 230}, None)


def test_texts_beside_lists_are_seen_whole(client: Client) -> None:
    """A date beside a list was seen as the number of its year."""
    document = collection(feature(point(1, 2), a=[1, 2]), feature(point(3, 4), a="2024-05-22"))
    answer = client.convert("a.geojson", document, outputFormat="GeoPackage")
    seen = preview(client, answer["jobId"])["features"]
    assert [one["properties"]["a"] for one in seen] == [[1, 2], "2024-05-22"]


def test_coordinates_of_an_unknown_system_are_left_out(client: Client) -> None:
    """They cannot be placed on a map; their attributes are shown."""
    rows = b"name,WKT\nhut,POINT (5000 7000)\n"
    answer = client.convert("a.csv", rows, outputFormat="Shapefile", keepCoordinates="true")
    assert answer["success"], answer
    (row,) = preview(client, answer["jobId"])["features"]
    assert (row["properties"]["name"], row["geometry"]) == ("hut", None)


def test_a_preview_needs_a_result_of_the_caller(client: Client, new_client: NewClient) -> None:
    """A failed job has no preview, and another account's job does not exist."""
    failed = client.convert("a.geojson", lakes(), outputFormat="GeoJson")
    refused = client.get(f"{JOBS}/{failed['jobId']}/preview")
    assert (refused.status_code, refused.json()["code"]) == (409, "no_result")
    done = client.convert("a.geojson", lakes(), outputFormat="Csv")
    for path in (f"{JOBS}/{done['jobId']}/preview", f"{JOBS}/{done['jobId']}/result"):
        assert new_client("free").get(path).json()["code"] == "job_not_found"
        assert client.get(path, headers={"X-API-Key": "gm_x"}).status_code == 401


def test_a_large_preview_is_compressed_for_those_who_can_read_it(client: Client) -> None:
    """Other clients receive it uncompressed."""
    many = collection(*(feature(point(number / 100, 1), name="x" * 50) for number in range(300)))
    answer = client.convert("a.geojson", many, outputFormat="Csv")
    path = f"{JOBS}/{answer['jobId']}/preview"
    with client.stream("GET", path, headers={"Accept-Encoding": "gzip"}) as packed:
        assert packed.headers["content-encoding"] == "gzip"
        content = b"".join(packed.iter_raw())
    plain = client.get(path, headers={"Accept-Encoding": "identity"})
    assert "content-encoding" not in plain.headers
    assert json.loads(gzip.decompress(content)) == plain.json()


def test_a_job_repeats_what_its_conversion_responded(client: Client) -> None:
    """With warnings, the data-loss report and a new link; an open balance is not looked up again."""
    lossy = collection(feature(point(1, 2), a_very_long_name_1="x" * 300))
    answer = client.convert("a.geojson", lossy, outputFormat="Shapefile")
    again = client.get(f"{JOBS}/{answer['jobId']}/result").json()
    changing = {"downloadUrl", "downloadExpiresAt"}
    assert {name: again[name] for name in again.keys() - changing} == {
        name: answer[name] for name in answer.keys() - changing
    }
    assert client.download(again) == client.download(answer)


def test_systems_are_found_by_code_name_and_area(client: Client) -> None:
    """An exact code comes first; otherwise any words of the name match."""

    def found(text: str) -> list[int]:
        response = client.get("/api/geo/systems", params={"search": text})
        assert response.status_code == 200
        return [system["epsg"] for system in response.json()["systems"]]

    assert found("EPSG:3857")[0] == 3857
    assert 32633 in found("utm 33n")
    assert 2154 in found("lambert-93 france")
    assert found("no such system") == []
    assert found("50%") == []
    too_long = client.get("/api/geo/systems", params={"search": "x" * 101})
    assert (too_long.status_code, too_long.json()["parameter"]) == (400, "search")
