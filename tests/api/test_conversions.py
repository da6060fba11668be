"""One file in, one file out, and everything that the response reports (interface 2.1, 4.1, 4.3)."""

import io
import json
import re
import zipfile
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

import httpx
import pytest

from tests.api.conftest import NewClient
from tests.support.data import LAKES, collection, feature, lakes, point, square
from tests.support.server import Client

TIMESTAMP = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z")
ALWAYS = {
    "success", "jobId", "status", "inputFormat", "outputFormat", "downloadUrl", "downloadExpiresAt", "featureCount",
    "geometryType", "processingTimeMs", "outputSizeBytes", "remainingConversions", "remainingBytes",
    "newWalletBalanceCents", "truncationReport", "needsUpgrade", "limit", "paymentPastDue", "multiLayer", "outputEpsg",
    "warnings",
}  # fmt: skip


def names_in(document: bytes) -> set[str]:
    """The names of the features of a GeoJSON document."""
    return {entry["properties"]["name"] for entry in json.loads(document)["features"]}


def test_geojson_becomes_a_zipped_shapefile_by_default(client: Client) -> None:
    """GeoJSON becomes Shapefile, and the archive contains all its parts."""
    answer = client.convert("lakes.geojson", lakes())
    with zipfile.ZipFile(io.BytesIO(client.download(answer))) as archive:
        suffixes = {name.rpartition(".")[2] for name in archive.namelist()}
    assert (answer["inputFormat"], answer["outputFormat"]) == ("geojson", "shapefile")
    assert suffixes >= {"shp", "shx", "dbf", "prj", "cpg"}


def test_a_zipped_shapefile_becomes_geojson_by_default(client: Client) -> None:
    """Shapefile becomes GeoJSON; non-ASCII names survive the round trip."""
    shapefile = client.download(client.convert("lakes.geojson", lakes()))
    answer = client.convert("lakes.zip", shapefile)
    assert (answer["inputFormat"], answer["outputFormat"]) == ("shapefile", "geojson")
    assert names_in(client.download(answer)) == {name for name, _, _ in LAKES}


def test_the_answer_has_every_field_of_the_specification(client: Client) -> None:
    """All fields are present with their types; fields of failures are absent."""
    answer = client.convert("lakes.geojson", lakes())
    assert set(answer) == ALWAYS
    assert answer["success"] is True
    assert answer["status"] == "Completed"
    assert UUID(answer["jobId"]).version == 7
    assert answer["featureCount"] == len(LAKES)
    assert answer["geometryType"] == "Point"
    assert answer["outputEpsg"] == 4326
    assert TIMESTAMP.fullmatch(answer["downloadExpiresAt"])
    assert answer["outputSizeBytes"] == len(client.download(answer))
    assert (answer["remainingConversions"], answer["remainingBytes"], answer["newWalletBalanceCents"]) == (None,) * 3


@pytest.mark.parametrize("parts", [[], [point(1, 2)]], ids=["alone", "beside a collection"])
@pytest.mark.parametrize(("name", "output"), [("a.geojson", "GeoJsonSeq"), ("a.geojsonl", "GeoJson")])
def test_empty_geometries_stay_what_they_are_between_json_formats(
    client: Client, name: str, output: str, parts: list[dict[str, Any]]
) -> None:
    """They were told as missing, and the result as one with more geometries than expected."""
    shapes = [{"type": "GeometryCollection", "geometries": held} for held in ([], parts)]
    features = [feature(shape, n=1) for shape in shapes]
    document = collection(*features) if output == "GeoJsonSeq" else "\n".join(map(json.dumps, features)).encode()
    answer = client.convert(name, document, outputFormat=output)
    result = client.download(answer)
    found = map(json.loads, result.splitlines()) if output == "GeoJsonSeq" else json.loads(result)["features"]
    assert ([each["geometry"] for each in found], answer["warnings"]) == (shapes, [])


@pytest.mark.parametrize("output", ["Kml", "GEOPACKAGE", "flatgeobuf", "Csv", "shapefile"])
def test_the_output_format_is_matched_in_any_case(client: Client, output: str) -> None:
    """The field is case-insensitive, and the result has the same features."""
    answer = client.convert("lakes.geojson", lakes(), outputFormat=output)
    assert answer["success"], answer
    name = {"Kml": "a.kml", "GEOPACKAGE": "a.gpkg", "flatgeobuf": "a.fgb", "Csv": "a.csv", "shapefile": "a.zip"}[output]
    back = client.convert(name, client.download(answer), sourceEpsg=4326)
    assert back["success"], back
    assert back["outputFormat"] == "geojson"
    assert back["featureCount"] == len(LAKES)


def test_fields_may_come_before_or_after_the_file(client: Client) -> None:
    """The order of the parts does not matter."""
    boundary = "x" * 20

    def part(name: str, value: bytes, extra: str = "") -> bytes:
        head = f'--{boundary}\r\nContent-Disposition: form-data; name="{name}"{extra}\r\n\r\n'
        return head.encode() + value + b"\r\n"

    parts = [part("outputFormat", b"Kml"), part("file", lakes(), '; filename="a.geojson"')]
    for order in (parts, parts[::-1]):
        response = client.post(
            "/api/geo/convert/file",
            content=b"".join(order) + f"--{boundary}--\r\n".encode(),
            headers={"Content-Type": f"multipart/form-data; boundary={boundary}"},
        )
        assert response.json()["outputFormat"] == "kml", response.text


def test_a_body_may_come_in_chunks_without_a_length(client: Client) -> None:
    """Chunked transfer encoding is accepted."""
    request = httpx.Request("POST", "http://x/", files={"file": ("a.geojson", lakes())})
    body = request.read()

    def chunks() -> Any:
        for start in range(0, len(body), 7):
            yield body[start : start + 7]

    headers = {"Content-Type": request.headers["Content-Type"]}
    response = client.post("/api/geo/convert/file", content=chunks(), headers=headers)
    assert response.json()["success"], response.text


def test_include_wallet_fills_the_usage_fields(client: Client) -> None:
    """With `includeWallet`, the response reports what is left after the conversion."""
    content = lakes()
    answer = client.convert("lakes.geojson", content, includeWallet="true")
    assert answer["remainingConversions"] == 5000 - 1
    assert answer["remainingBytes"] == 10 * 2**30 - len(content)
    assert answer["newWalletBalanceCents"] is None


def test_the_legacy_endpoint_always_fills_them(client: Client) -> None:
    """`convert/upload` is `convert/file` with the usage fields."""
    answer = client.convert("lakes.geojson", lakes(), endpoint="upload")
    assert set(answer) == ALWAYS
    assert answer["remainingConversions"] == 5000 - 1


def test_prepaid_credit_shows_the_balance_and_no_allowance(new_client: NewClient) -> None:
    """For a wallet account, the allowance fields are null and the balance is what is left."""
    wallet = new_client(wallet_cents=100)
    answer = wallet.convert("lakes.geojson", lakes(), endpoint="upload")
    assert (answer["remainingConversions"], answer["remainingBytes"]) == (None, None)
    assert answer["newWalletBalanceCents"] == 100 - 6


def test_a_target_system_is_kept_where_the_format_can(client: Client) -> None:
    """GeoPackage is written in `targetEpsg`, and `outputEpsg` reports it."""
    answer = client.convert("lakes.geojson", lakes(), outputFormat="GeoPackage", targetEpsg=3857)
    assert answer["outputEpsg"] == 3857


def test_a_target_system_that_the_format_overrides_is_told(client: Client) -> None:
    """KML is always in WGS 84: a warning rather than an error, and the true `outputEpsg` (interface 9)."""
    answer = client.convert("lakes.geojson", lakes(), outputFormat="Kml", targetEpsg=3857)
    assert answer["success"]
    assert answer["outputEpsg"] == 4326
    assert any("4326" in warning for warning in answer["warnings"])


def test_the_dominant_geometry_type_is_reported(client: Client) -> None:
    """`geometryType` is the most frequent type in the input."""
    mixed = collection(feature(square(), n=1), feature(square(2), n=2), feature(point(1, 1), n=3))
    answer = client.convert("mixed.geojson", mixed, outputFormat="GeoPackage")
    assert (answer["geometryType"], answer["featureCount"]) == ("Polygon", 3)


@pytest.mark.parametrize("output", ["Csv", "Xlsx", "Gml", "Kml", "Shapefile", "GeoPackage", "GeoJsonSeq"])
def test_a_document_without_features_is_converted(client: Client, output: str) -> None:
    """To every target that can be empty; CSV was refused as damaged."""
    answer = client.convert("none.geojson", collection(), outputFormat=output)
    assert (answer["success"], answer["featureCount"]) == (True, 0), answer
    if output == "Csv":
        assert client.download(answer) == b"WKT\n"


@pytest.mark.parametrize("output", ["Csv", "Xlsx", "Ods"])
def test_quotation_marks_in_names_of_columns_are_kept_or_told(client: Client, output: str) -> None:
    """The driver of CSV, by which results are read back and workbooks are written, leaves them out."""
    document = collection(feature(point(1, 2), **{'5" pipe': 1, "b": 2}))
    answer = client.convert("pipes.geojson", document, outputFormat=output)
    renamed = [] if output == "Csv" else ["Columns were renamed: '5\" pipe' to '5_ pipe'."]
    assert answer["warnings"] == renamed
    if output == "Csv":
        assert client.download(answer).splitlines()[0] == b'X,Y,"5"" pipe",b'


def test_a_file_name_that_is_not_ascii_is_kept(client: Client) -> None:
    """The job shows the name as sent, and the download carries its base name."""
    answer = client.convert("Seen größer.geojson", lakes(), outputFormat="Kml")
    job = client.get(f"/api/geo/convert/jobs/{answer['jobId']}/status").json()
    assert job["originalFileName"] == "Seen größer.geojson"
    disposition = httpx.get(answer["downloadUrl"]).headers["content-disposition"]
    assert "Seen%20gr%C3%B6%C3%9Fer.kml" in disposition


def test_a_link_lasts_as_long_as_the_plan_keeps_outputs(new_client: NewClient) -> None:
    """On plan free, four hours."""
    free = new_client("free")
    before = datetime.now().astimezone()
    answer = free.convert("lakes.geojson", lakes())
    expires = datetime.fromisoformat(answer["downloadExpiresAt"])
    assert timedelta(hours=3, minutes=59) < expires - before < timedelta(hours=4, minutes=1)
