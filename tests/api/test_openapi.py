"""The OpenAPI description is accurate: the server accepts and returns what it says (interface 10)."""

import json
import os
import re
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import httpx
import jsonschema
import pytest

from service.http.api.endpoint import Endpoint
from service.http.application import ON_ONE_PORT
from service.http.problems import KINDS
from service.http.routes import ENDPOINTS
from tests.support.data import collection, feature, lakes, point, square
from tests.support.server import Client, Server, running_server

API = "/api/geo"
FILE = f"{API}/convert/file"
BATCH = f"{API}/convert/batch"
ANALYZE = f"{API}/convert/analyze"
STATUS = f"{API}/convert/jobs/{{jobId}}/status"
JOB = f"{API}/convert/jobs/{{jobId}}"
FILES = "/files/{key}/{name}"

Document = dict[str, Any]


@pytest.fixture(scope="session")
def document(server: Server) -> Document:
    """The response of /openapi.json, without a key."""
    response = httpx.get(f"{server.url}/openapi.json")
    assert response.status_code == 200
    served: Document = response.json()
    return served


def strict(schema: Any) -> Any:
    """The schema, modified to refuse members that it does not name."""
    if isinstance(schema, list):
        return [strict(item) for item in schema]
    if not isinstance(schema, dict):
        return schema
    closed = {name: strict(item) for name, item in schema.items()}
    if schema.get("type") == "object" and "properties" in schema:
        closed["additionalProperties"] = False
    return closed


def assert_described(document: Document, path: str, response: httpx.Response) -> None:
    """The description has this status, these headers and this body for the request."""
    operation = document["paths"][path][response.request.method.lower()]
    described = operation["responses"].get(str(response.status_code))
    assert described is not None, f"{path} is not said to answer {response.status_code}"
    missing = {name for name in described["headers"] if name.lower() not in response.headers}
    assert missing <= {"Retry-After"}, f"{path} {response.status_code} lacks {missing}"
    media_type = response.headers.get("content-type", "").partition(";")[0]
    content = described.get("content", {})
    if not content:
        assert response.content == b""
        return
    known = next(kind for kind in (media_type, f"{media_type.partition('/')[0]}/*", "*/*") if kind in content)
    if media_type.endswith("json") and "schema" in content[known]:
        components = {"schemas": strict(document["components"]["schemas"])}
        jsonschema.Draft202012Validator({**content[known]["schema"], "components": components}).validate(
            response.json()
        )


def upload(name: str = "a.geojson", content: bytes | None = None) -> dict[str, tuple[str, bytes]]:
    """The form of a single upload."""
    return {"file": (name, lakes() if content is None else content)}


def test_every_route_is_described(document: Document) -> None:
    """By its own path and method; nothing else is described."""
    described = {(path, method.upper()) for path, methods in document["paths"].items() for method in methods}
    assert described == {
        (route.path, method) for route in ON_ONE_PORT for method in (route.methods or set()) - {"HEAD"}
    }


def test_every_problem_is_described_where_it_may_come(document: Document) -> None:
    """Exactly the codes that an endpoint's faults have."""
    codes = set(re.findall(r'"code": \{"enum": \[(.*?)\]', json.dumps(document["paths"])))
    listed = {code for enumeration in codes for code in json.loads(f"[{enumeration}]")}
    assert listed == {kind.code for kind in KINDS.values()} | {"internal_error"}


def test_every_parameter_of_a_path_is_described(document: Document) -> None:
    """Each placeholder in a path has a parameter."""
    for path, methods in document["paths"].items():
        for operation in methods.values():
            described = {parameter["name"] for parameter in operation["parameters"] if parameter["in"] == "path"}
            assert described == set(re.findall(r"\{(\w+)\}", path))


def test_every_field_and_record_has_a_meaning(document: Document) -> None:
    """In words for callers, without references to documents that they do not have."""
    for schema in document["components"]["schemas"].values():
        assert schema.get("description") or "enum" in schema
    for endpoint in ENDPOINTS:
        for field in endpoint.form.fields if endpoint.form else ():
            assert field.description
    assert not re.search(r"\binterface \d", json.dumps(document))


def test_absent_members_are_optional_and_the_others_required(document: Document) -> None:
    """Nullable members are always present; optional members are never null (interface 2.6)."""
    result = document["components"]["schemas"]["ConversionResult"]
    required = set(result["required"])
    assert {"success", "limit", "remainingBytes", "truncationReport", "outputEpsg", "warnings"} <= required
    assert required.isdisjoint({"downloadUrl", "error", "layers", "targetFormat", "featureCount"})
    assert {"type": "null"} not in result["properties"]["error"].get("anyOf", [])


@pytest.mark.parametrize("endpoint", ["file", "upload"])
@pytest.mark.parametrize(
    "fields", [{}, {"outputFormat": "GeoPackage", "includeWallet": "true"}, {"outputFormat": "GeoJson"}, {"layer": "x"}]
)
def test_answers_of_a_conversion_are_as_described(
    client: Client, document: Document, endpoint: str, fields: dict[str, str]
) -> None:
    """Converted or rejected."""
    path = f"{API}/convert/{endpoint}"
    assert_described(document, path, client.post(path, files=upload(), data=fields))


def test_answers_of_a_download_are_as_described(client: Client, document: Document) -> None:
    """The file, the reason why there is none, and the refusal to send a file before it exists."""
    download = {"download": "true"}
    for content, headers, status in ((None, {}, 200), (b"{", {}, 422), (None, {"Prefer": "respond-async"}, 400)):
        response = client.post(FILE, params=download, files=upload(content=content), headers=headers)
        assert response.status_code == status
        assert_described(document, FILE, response)


def test_answers_with_losses_and_layers_are_as_described(client: Client, document: Document) -> None:
    """A full data-loss report, and an archive of several layers."""
    lossy = collection(
        feature(point(1, 2), a_very_long_name_1="x" * 300, a_very_long_name_2=1), feature(square(), other_long_name=1)
    )
    response = client.post(FILE, files=upload(content=lossy))
    assert response.json()["truncationReport"]["hasDataLoss"]
    assert_described(document, FILE, response)
    assert_described(document, ANALYZE, client.post(ANALYZE, files=upload(content=lossy)))
    layered = client.post(FILE, files=upload(content=lossy), data={"outputFormat": "GeoPackage"}).json()
    packed = upload("a.gpkg", client.download(layered))
    assert_described(document, FILE, client.post(FILE, files=packed, data={"outputFormat": "FlatGeobuf"}))


def test_answers_of_refused_accounts_are_as_described(new_client: Any, document: Document) -> None:
    """Above a plan limit, and without credit."""
    for poor in (new_client("free"), new_client(wallet_cents=0)):
        response = poor.post(FILE, files=upload(content=lakes() + b" " * 6_000_000))
        assert response.json()["needsUpgrade"]
        assert_described(document, FILE, response)


def test_answers_of_a_batch_are_as_described(client: Client, document: Document) -> None:
    """With converted and rejected files."""
    files = [("files", ("a.geojson", lakes())), ("files", ("b.unknown", b"x")), ("files", ("c.geojson", b"{"))]
    assert_described(document, BATCH, client.post(BATCH, files=files))


def test_answers_before_the_end_are_as_described(client: Client, document: Document) -> None:
    """Prefer: respond-async, for one file and for several."""
    prefer = {"Prefer": "respond-async"}
    one = client.post(FILE, files=upload(), headers=prefer)
    many = client.post(BATCH, files={"files": ("a.geojson", lakes())}, headers=prefer)
    assert (one.status_code, many.status_code) == (202, 202)
    assert_described(document, FILE, one)
    assert_described(document, BATCH, many)
    status = client.get(f"{API}/convert/jobs/{one.json()['jobId']}/status")
    assert_described(document, STATUS, status)


def test_lists_are_as_described(client: Client, document: Document) -> None:
    """Jobs, completed and failed, plans and formats."""
    converted = client.convert("a.geojson", lakes())
    client.convert("a.unknown", b"x")
    jobs = client.get(f"{API}/convert/jobs")
    assert len(jobs.json()["jobs"]) == 2
    assert_described(document, f"{API}/convert/jobs", jobs)
    for path in (f"{API}/pricing/tiers", f"{API}/formats"):
        assert_described(document, path, client.get(path))
    assert_described(document, JOB, client.delete(JOB.format(jobId=converted["jobId"])))


def test_problems_are_as_described(server: Server, client: Client, document: Document) -> None:
    """Requests without a key, without a form, with an invalid field, or with another request's Idempotency-Key."""
    key = {"Idempotency-Key": "one"}
    client.post(FILE, files=upload(), headers=key)
    asked = [
        (FILE, httpx.post(server.url + FILE, files=upload()), 401),
        (FILE, client.post(FILE), 400),
        (FILE, client.post(FILE, files=upload(), data={"targetEpsg": "WGS84"}), 400),
        (FILE, client.post(FILE, files=upload("b.geojson"), headers=key), 422),
        (FILE, client.post(FILE, files=upload(content=b" " * (100 * 2**20 + 1))), 413),
        (BATCH, client.post(BATCH, files=[("files", ("a.geojson", b"{}"))] * 21), 400),
        (f"{API}/convert/jobs", client.get(f"{API}/convert/jobs?limit=0"), 400),
        (STATUS, client.get(STATUS.format(jobId="x")), 404),
        (STATUS, client.get(STATUS.format(jobId="x"), params={"wait": "61"}), 400),
        (JOB, client.delete(JOB.format(jobId="x")), 404),
        (FILES, client.get(FILES.format(key="0" * 32, name="a.zip")), 403),
        ("/docs/{asset}", client.get("/docs/nothing"), 404),
    ]
    for path, response, status in asked:
        assert response.status_code == status
        assert_described(document, path, response)


def test_downloads_are_as_described(client: Client, document: Document) -> None:
    """Whole, in part, unmodified, beyond the end, and with an altered signature."""
    link = client.convert("a.geojson", lakes())["downloadUrl"]
    whole = httpx.get(link)
    asked = [
        (whole, 200),
        (httpx.get(link, headers={"Range": "bytes=0-9"}), 206),
        (httpx.get(link, headers={"If-None-Match": whole.headers["etag"]}), 304),
        (httpx.get(link, headers={"Range": "bytes=9-0"}), 400),
        (httpx.get(link, headers={"Range": "bytes=99999999-"}), 416),
        (httpx.get(link + "0"), 403),
    ]
    for response, status in asked:
        assert response.status_code == status
        assert_described(document, FILES, response)


def test_a_range_that_cannot_be_served_is_a_problem_like_any_other(client: Client) -> None:
    """It states what is wrong and the total size; ranges in unknown units are ignored."""
    link = client.convert("a.geojson", lakes())["downloadUrl"]
    whole = httpx.get(link).content
    unreadable = httpx.get(link, headers={"Range": "bytes=9-0"})
    assert (unreadable.json()["code"], unreadable.json()["parameter"]) == ("invalid_parameter", "Range")
    beyond = httpx.get(link, headers={"Range": f"bytes={len(whole)}-"})
    assert beyond.json()["code"] == "range_not_satisfiable"
    assert beyond.headers["content-range"] == f"bytes */{len(whole)}"
    for problem in (unreadable, beyond):
        assert problem.headers["content-type"] == "application/problem+json"
        assert problem.json()["requestId"] == problem.headers["x-request-id"]
    lines = httpx.get(link, headers={"Range": "lines=0-1"})
    assert (lines.status_code, lines.content) == (200, whole)


@pytest.mark.parametrize("path", ["/healthz", "/readyz", "/metrics", "/openapi.json", "/docs", "/"])
def test_what_needs_no_key_is_as_described(server: Server, document: Document, path: str) -> None:
    """Operators' endpoints, and the description itself."""
    response = httpx.get(server.url + path)
    assert response.status_code == 200
    assert_described(document, path, response)


def test_the_description_says_where_the_service_is(server: Server, tmp_path: Path, database_url: str) -> None:
    """The configured public address, or the requested host with its root path."""
    assert httpx.get(f"{server.url}/openapi.json").json()["servers"] == [{"url": "/"}]
    for settings, address in (
        ({"GEOMILL_PUBLIC_URL": "https://maps.example/convert"}, "https://maps.example/convert"),
        ({"GEOMILL_ROOT_PATH": "/convert"}, "/convert"),
    ):
        with running_server(tmp_path, database_url, {**settings, "GEOMILL_PRIVATE_PORT": "0"}) as other:
            [ready] = other.events("server.ready")
            described = httpx.get(f"{ready['private_url']}/openapi.json").json()
            assert described["servers"] == [{"url": address}]


@pytest.mark.parametrize("path", ["/", "/docs"])
def test_a_page_is_whole_and_may_load_nothing_from_elsewhere(server: Server, path: str) -> None:
    """All files that it names exist beside it, and its policy allows no other scripts."""
    page = httpx.get(server.url + path)
    policy = page.headers["content-security-policy"]
    assert "default-src 'none'" in policy
    assert "unsafe" not in policy
    assert "<script>" not in page.text
    for part in set(re.findall(r'(?:src|href)="([^"#]+)"', page.text)):
        response = httpx.get(httpx.URL(server.url + path).join(part))
        assert response.status_code == 200


def test_the_page_links_to_the_documentation_where_it_is(server: Server, tmp_path: Path, database_url: str) -> None:
    """With a private port, the page's port has none, and the page shows no link."""
    shown = re.compile(r'<nav aria-label="Pages">\s*<a href="docs"')
    assert shown.search(httpx.get(server.url).text)
    with running_server(tmp_path, database_url, {"GEOMILL_PRIVATE_PORT": "0"}) as other:
        assert httpx.get(f"{other.url}/docs").status_code == 404
        page = httpx.get(other.url)
    assert page.status_code == 200
    assert not shown.search(page.text)
    assert '<nav aria-label="Pages" hidden>' in page.text


def test_a_file_of_a_page_is_compressed_and_sent_once(server: Server) -> None:
    """A browser that has the file revalidates it."""
    url = f"{server.url}/page/app.js"
    first = httpx.get(url, headers={"Accept-Encoding": "gzip"})
    assert first.headers["content-encoding"] == "gzip"
    again = httpx.get(url, headers={"If-None-Match": first.headers["etag"]})
    assert (again.status_code, again.content) == (304, b"")
    assert httpx.get(url, headers={"Accept-Encoding": "identity"}).text == first.text
    for name in ("nothing.js", "..%2fassets.py", "stamp"):
        assert httpx.get(f"{server.url}/page/{name}").json()["code"] == "not_found"


SAMPLED = [endpoint for endpoint in ENDPOINTS if endpoint.path.startswith(API)]


@pytest.mark.parametrize("endpoint", SAMPLED, ids=[endpoint.name for endpoint in SAMPLED])
@pytest.mark.parametrize("label", ["curl", "Python"])
def test_samples_can_be_copied_and_run(
    client: Client, document: Document, tmp_path: Path, endpoint: Endpoint, label: str
) -> None:
    """With the address and key in the environment and the file at hand, they succeed."""
    (tmp_path / "lakes.geojson").write_bytes(lakes())
    job_id = client.convert("a.geojson", lakes())["jobId"]
    operation = document["paths"][endpoint.path][endpoint.method.lower()]
    offered: list[Mapping[str, str]] = operation["x-codeSamples"]
    source = next(sample["source"] for sample in offered if sample["label"] == label).replace("JOB_ID", job_id)
    environment = {**os.environ, "URL": client.server.url, "KEY": client.key.api_key}
    program = ["sh", "-c"] if label == "curl" else [sys.executable, "-c"]
    done = subprocess.run([*program, source], cwd=tmp_path, env=environment, capture_output=True, check=True)
    expected = endpoint.answers[0]  # the others are for what samples do not ask for
    if not (expected.body or expected.media_type.endswith("json")):
        assert done.stdout.strip() == b""
        return
    answer = json.loads(done.stdout)
    assert "code" not in answer, answer
    assert answer.get("success", True) is True


def test_every_record_has_a_sample_that_fits_its_description(document: Document) -> None:
    """Strictly: without members that are not described."""
    components = {"schemas": strict(document["components"]["schemas"])}
    sampled = 0
    for methods in document["paths"].values():
        for operation in methods.values():
            for response in operation["responses"].values():
                content = response.get("content", {}).get("application/json", {})
                if "schema" in content:
                    schema = {**content["schema"], "components": components}
                    jsonschema.Draft202012Validator(schema).validate(content["example"])
                    sampled += 1
    assert sampled > 10


def test_generators_see_files_formats_and_whom_an_endpoint_is_for(document: Document) -> None:
    """An upload is a file, a format is one of a list, and operators' endpoints stand apart."""
    form = document["paths"][FILE]["post"]["requestBody"]["content"]["multipart/form-data"]["schema"]["properties"]
    assert form["file"]["format"] == "binary"
    assert "GeoPackage" in form["outputFormat"]["enum"]
    listed = {tag["name"] for tag in document["tags"]}
    for path, methods in document["paths"].items():
        for operation in methods.values():
            assert set(operation["tags"]) <= listed
            assert (operation["tags"] == ["Operation"]) is not path.startswith((API, "/files/"))
    assert document["info"]["license"]["identifier"] == "Apache-2.0"
