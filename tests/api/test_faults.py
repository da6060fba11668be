"""An invalid request gets the right status and problem, and leaves nothing behind (interface 7.1)."""

import http.client
import socket
from collections.abc import Iterator
from urllib.parse import urlsplit

import httpx
import pytest

from service.accounts.keys import new_key
from tests.support.data import lakes
from tests.support.patience import PATIENCE_SECONDS
from tests.support.server import Client, Server

FILE = "/api/geo/convert/file"
BATCH = "/api/geo/convert/batch"
MALFORMED = "malformed_request"
PART = b'--x\r\nContent-Disposition: form-data; name="file"; filename="a.kml"\r\n\r\n'


@pytest.fixture(autouse=True)
def _nothing_is_left(server: Server) -> Iterator[None]:
    yield
    assert server.wait_until_idle() == []


def assert_problem(response: httpx.Response, status: int, code: str) -> dict[str, object]:
    """The response is a problem of RFC 9457 with the members of interface 7.1."""
    assert response.status_code == status, response.text
    assert response.headers["content-type"] == "application/problem+json"
    problem: dict[str, object] = response.json()
    assert problem["status"] == status
    assert problem["code"] == code
    assert problem["success"] is False
    assert problem["error"] == problem["detail"]
    assert problem["title"]
    assert problem["type"]
    assert problem["requestId"] == response.headers["x-request-id"]
    return problem


@pytest.mark.parametrize(
    "key", ["nonsense", new_key(), "gm_" + "0" * 38, "ä" * 41], ids=["nonsense", "unknown", "misspelt", "not ASCII"]
)
def test_an_unknown_key_is_refused(server: Server, key: str) -> None:
    """Whether it looks like a key or not."""
    response = httpx.get(f"{server.url}/api/geo/pricing/tiers", headers={b"X-API-Key": key.encode()})
    assert_problem(response, 401, "invalid_api_key")


def test_of_two_keys_none_is_taken(server: Server, client: Client) -> None:
    """Not even of equal ones: a proxy that adds its own must not decide which account pays."""
    key = client.headers["X-API-Key"]
    for second in (key, new_key()):
        response = httpx.get(f"{server.url}/api/geo/pricing/tiers", headers=[("X-API-Key", key), ("X-API-Key", second)])
        assert "occurs 2 times" in str(assert_problem(response, 401, "invalid_api_key")["detail"])


def test_a_refused_upload_is_told_so_though_its_body_is_long(server: Server) -> None:
    """A client in the middle of sending megabytes receives the 401."""
    response = httpx.post(server.url + FILE, files={"file": ("a.geojson", b" " * 8_000_000)})
    assert_problem(response, 401, "missing_api_key")


@pytest.mark.parametrize(
    ("content_type", "body"),
    [
        ("application/json", b"{}"),
        ("multipart/form-data", b"--x--\r\n"),
        ("multipart/form-data; boundary=x", b""),
        ("multipart/form-data; boundary=x", b"--x--\r\n"),
        ("multipart/form-data; boundary=x", PART + b"x"),
        ("multipart/form-data; boundary=x", b"nonsense"),
        ("", lakes()),
    ],
    ids=["json", "no boundary", "empty", "no part", "truncated", "nonsense", "no type"],
)
def test_a_body_that_is_no_complete_form_is_malformed(client: Client, content_type: str, body: bytes) -> None:
    """The status is 400."""
    response = client.post(FILE, content=body, headers={"Content-Type": content_type})
    assert_problem(response, 400, MALFORMED)


@pytest.mark.parametrize("path", [FILE, BATCH, "/api/geo/convert/upload", "/api/geo/convert/analyze"])
@pytest.mark.parametrize("encoding", ["gzip", "GZIP", "identity, br"])
def test_a_compressed_body_is_refused(client: Client, path: str, encoding: str) -> None:
    """The response says what to send instead; even if the header is wrong, and the body a form."""
    field = "files" if path == BATCH else "file"
    response = client.post(path, files={field: ("a.geojson", lakes())}, headers={"Content-Encoding": encoding})
    assert_problem(response, 415, "unsupported_encoding")
    assert response.headers["accept-encoding"] == "identity"
    assert client.usage() == (0, 0)


def test_a_body_that_is_said_to_be_as_it_is_is_read(client: Client) -> None:
    """The encoding `identity` is none."""
    response = client.post(FILE, files={"file": ("a.geojson", lakes())}, headers={"Content-Encoding": "identity"})
    assert response.json()["success"] is True


def test_a_form_without_a_file_is_malformed(client: Client) -> None:
    """The part must be named file."""
    assert_problem(client.post(FILE, files={"other": ("a.geojson", lakes())}), 400, MALFORMED)
    assert_problem(client.post(BATCH, files={"file": ("a.geojson", lakes())}), 400, MALFORMED)


def test_a_file_part_without_a_name_is_malformed(client: Client) -> None:
    """The format follows from the name."""
    body = b'--x\r\nContent-Disposition: form-data; name="file"\r\n\r\n{}\r\n--x--\r\n'
    response = client.post(FILE, content=body, headers={"Content-Type": "multipart/form-data; boundary=x"})
    assert_problem(response, 400, MALFORMED)


def test_two_files_in_a_single_call_are_malformed(client: Client) -> None:
    """Several files need the batch endpoint."""
    files = [("file", ("a.geojson", lakes())), ("file", ("b.geojson", lakes()))]
    assert_problem(client.post(FILE, files=files), 400, MALFORMED)


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("targetEpsg", "WGS84"),
        ("targetEpsg", "4326.0"),
        ("sourceEpsg", "EPSG:4326"),
        ("sourceEpsg", "1" * 30),
        ("includeWallet", "perhaps"),
    ],
)
def test_a_field_of_the_wrong_kind_is_named(client: Client, field: str, value: str) -> None:
    """The problem names the parameter."""
    response = client.post(FILE, files={"file": ("a.geojson", lakes())}, data={field: value})
    problem = assert_problem(response, 400, "invalid_parameter")
    assert problem["parameter"] == field
    assert field in str(problem["detail"])


def test_more_files_than_a_batch_may_carry_are_refused(client: Client) -> None:
    """Twenty files are accepted, twenty-one are not."""
    files = [("files", (f"{number}.geojson", b"{}")) for number in range(21)]
    assert_problem(client.post(BATCH, files=files), 400, "too_many_files")


@pytest.mark.parametrize("field", ["outputFormats", "sourceEpsgs"])
def test_more_formats_or_systems_than_files_are_refused(client: Client, field: str) -> None:
    """Entries correspond to files by position."""
    response = client.post(BATCH, files={"files": ("a.geojson", lakes())}, data={field: ["", ""]})
    assert_problem(response, 400, "invalid_parameter")


def test_an_upload_above_the_ceiling_is_refused(client: Client) -> None:
    """100 MB, with or without Content-Length."""
    big = b" " * (100 * 2**20 + 1)
    assert_problem(client.post(FILE, files={"file": ("a.geojson", big)}), 413, "upload_too_large")


def test_a_declared_length_above_the_ceiling_is_refused_before_the_body(server: Server, client: Client) -> None:
    """A client need not send 300 MB to learn that they are too many."""
    address = urlsplit(server.url)
    connection = http.client.HTTPConnection(str(address.hostname), address.port, timeout=PATIENCE_SECONDS)
    connection.putrequest("POST", FILE)
    connection.putheader("X-API-Key", client.key.api_key)
    connection.putheader("Content-Type", "multipart/form-data; boundary=x")
    connection.putheader("Content-Length", str(300 * 2**20))
    connection.endheaders()
    assert connection.getresponse().status == 413
    connection.close()


def test_a_batch_above_its_ceiling_is_refused(client: Client) -> None:
    """200 MB for the whole body."""
    files = [("files", (f"{number}.geojson", b" " * 70 * 2**20)) for number in range(3)]
    assert_problem(client.post(BATCH, files=files), 413, "batch_too_large")


def test_an_unknown_path_is_not_found(client: Client) -> None:
    """With or without a key."""
    assert_problem(client.get("/api/geo/nothing"), 404, "not_found")
    assert_problem(httpx.get(f"{client.base_url}/nothing"), 404, "not_found")


def test_a_slash_too_many_is_told_the_right_path(server: Server) -> None:
    """Without a scheme: a client that has come by HTTPS would otherwise send its key on in the clear."""
    response = httpx.post(f"{server.url}/api/geo/convert/file/?download=true", headers={"Host": "public"})
    assert_problem(response, 307, "not_found")
    assert response.headers["Location"] == "/api/geo/convert/file?download=true"
    assert response.json()["detail"].endswith(" Send the request to /api/geo/convert/file.")


def test_a_wrong_method_is_told_the_right_one(client: Client) -> None:
    """In the header Allow, and in words."""
    response = client.get(FILE)
    assert_problem(response, 405, "method_not_allowed")
    assert response.headers["allow"] == "POST"
    assert response.json()["detail"] == "This address does not allow GET. Use POST."


def test_a_well_formed_request_id_is_taken_up(client: Client) -> None:
    """Any other id is replaced."""
    path = "/api/geo/pricing/tiers"
    assert client.get(path, headers={"X-Request-Id": "abc-1.2_3"}).headers["x-request-id"] == "abc-1.2_3"
    for bad in ("a b", "x" * 65, "<script>"):
        assert client.get(path, headers={"X-Request-Id": bad}).headers["x-request-id"] != bad


def test_a_client_that_leaves_midway_leaves_nothing(client: Client) -> None:
    """No job, no file, no reservation (interface 3)."""
    address = urlsplit(str(client.base_url))
    head = (
        f"POST {FILE} HTTP/1.1\r\nHost: x\r\nX-API-Key: {client.key.api_key}\r\n"
        "Content-Type: multipart/form-data; boundary=x\r\nContent-Length: 5000000\r\n\r\n"
        '--x\r\nContent-Disposition: form-data; name="file"; filename="a.geojson"\r\n\r\n'
    )
    with socket.create_connection((str(address.hostname), address.port or 80)) as connection:
        connection.sendall(head.encode() + b" " * 3_000_000)
    assert client.server.wait_until_idle() == []
    assert client.get("/api/geo/convert/jobs").json()["jobs"] == []
    assert client.usage() == (0, 0)
