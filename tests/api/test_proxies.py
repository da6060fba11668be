"""The examples for nginx, HAProxy, Caddy and Traefik in deploy/ start and pass on what clients need."""

import os
import shutil
import socket
import ssl
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, suppress
from pathlib import Path

import httpx
import msgspec
import pytest

from service.accounts.administration import Terms
from tests.database import TestServer
from tests.support.data import lakes
from tests.support.patience import PATIENCE_SECONDS, polls
from tests.support.ports import free_port
from tests.support.server import Server, create_account, running_server

pytestmark = pytest.mark.xdist_group("proxies")  # one server for all

PATH = os.pathsep.join((os.environ["PATH"], "/usr/sbin", str(Path(sys.executable).parent)))
EXAMPLES = Path(__file__).parents[2] / "deploy" / "proxy"
UNTRUSTED = ssl.create_default_context()
UNTRUSTED.check_hostname = False
UNTRUSTED.verify_mode = ssl.CERT_NONE


class Example(msgspec.Struct, frozen=True):
    """How to run one of the examples: its changes for this host, and the command."""

    files: tuple[str, ...]
    changes: Callable[[int, int, Path], Mapping[str, str]]
    command: Callable[[Path], tuple[str, ...]]


PROXIES = {
    "nginx": Example(
        ("nginx.conf",),
        lambda port, upstream, here: {
            "listen 443 ": f"listen 127.0.0.1:{port} ",
            "127.0.0.1:8080": f"127.0.0.1:{upstream}",
            "/etc/ssl/": f"{here}/",
        },
        lambda here: ("nginx", "-p", str(here), "-c", str(here / "main.conf"), "-e", "stderr"),
    ),
    "haproxy": Example(
        ("haproxy.cfg",),
        lambda port, upstream, here: {
            "bind :443 ": f"bind 127.0.0.1:{port} ",
            "127.0.0.1:8080": f"127.0.0.1:{upstream}",
            "port 8081": f"port {upstream}",
            "/etc/haproxy/geomill.pem": f"{here}/both.pem",
        },
        lambda here: ("haproxy", "-db", "-f", str(here / "haproxy.cfg")),
    ),
    "caddy": Example(
        ("Caddyfile",),
        lambda port, upstream, here: {
            "https://maps.example.org": f"{{\n\tadmin off\n\tauto_https off\n}}\nhttps://localhost:{port}",
            "127.0.0.1:8080": f"127.0.0.1:{upstream}",
            "health_port 8081": f"health_port {upstream}",
            "/etc/ssl/": f"{here}/",
        },
        lambda here: ("caddy", "run", "--adapter", "caddyfile", "--config", str(here / "Caddyfile")),
    ),
    "traefik": Example(
        ("traefik.yaml", "traefik-routes.yaml"),
        lambda port, upstream, here: {
            '":443"': f"127.0.0.1:{port}",
            "/etc/traefik/geomill.yaml": f"{here}/traefik-routes.yaml",
            "127.0.0.1:8080": f"127.0.0.1:{upstream}",
            "port: 8081": f"port: {upstream}",
            "/etc/ssl/": f"{here}/",
        },
        lambda here: ("traefik", f"--configfile={here}/traefik.yaml"),
    ),
}
NGINX = """
daemon off;
pid nginx.pid;
events {}
http {
    access_log off;
    client_body_temp_path body; proxy_temp_path proxy;
    fastcgi_temp_path fastcgi; uwsgi_temp_path uwsgi; scgi_temp_path scgi;
    include nginx.conf;
}
"""


@pytest.fixture(scope="module")
def trusting(postgres: TestServer, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A server that trusts a proxy on this host."""
    dsn = postgres.create_database(postgres.migrated_template())
    directory = tmp_path_factory.mktemp("behind")
    settings = {"GEOMILL_TRUSTED_PROXIES": "127.0.0.1", "GEOMILL_IDENTITY_SECRET": "x" * 32}
    with running_server(directory, dsn, settings) as server:
        yield server


@pytest.fixture(scope="module", params=list(PROXIES))
def proxy(request: pytest.FixtureRequest, trusting: Server, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of a proxy that runs one of the examples, adapted to this host."""
    example = PROXIES[request.param]
    if shutil.which(request.param, path=PATH) is None:
        pytest.skip(f"{request.param} is not installed")
    here = tmp_path_factory.mktemp(request.param)
    here.chmod(0o755)
    _certify(here)
    port = free_port()
    texts = [(EXAMPLES / file).read_text(encoding="utf-8") for file in example.files]
    for old, new in example.changes(port, httpx.URL(trusting.url).port or 0, here).items():
        assert any(old in text for text in texts)
        texts = [text.replace(old, new) for text in texts]
    for file, text in zip(example.files, texts, strict=True):
        (here / file).write_text(text)
    (here / "main.conf").write_text(NGINX)
    with _running(example.command(here), here, port):
        yield f"https://localhost:{port}"


def _certify(here: Path) -> None:
    """Create a self-signed certificate."""
    key, certificate = here / "geomill.key", here / "geomill.pem"
    request = ("openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes")
    files = ("-keyout", str(key), "-out", str(certificate), "-subj", "/CN=localhost", "-days", "1")
    subprocess.run([*request, *files], check=True, capture_output=True)
    (here / "both.pem").write_bytes(certificate.read_bytes() + key.read_bytes())
    key.chmod(0o644)


@contextmanager
def _running(command: tuple[str, ...], here: Path, port: int) -> Iterator[None]:
    log = here / "log"
    environment = {"PATH": PATH, "HOME": str(here)}
    with log.open("wb") as output:
        process = subprocess.Popen(command, cwd=here, env=environment, stdout=output, stderr=output)
    try:
        assert any(_answers(port) or process.poll() is not None for _ in polls()), log.read_text()
        assert process.poll() is None, log.read_text()
        yield
    finally:
        process.terminate()
        process.wait(PATIENCE_SECONDS)


def _answers(port: int) -> bool:
    """Whether the proxy reaches the server; some proxies check its readiness first."""
    try:
        return httpx.get(f"https://localhost:{port}/api/geo/formats", verify=UNTRUSTED).status_code in {200, 401}
    except httpx.HTTPError:
        return False


def test_a_file_is_converted_and_fetched_through_the_proxy(proxy: str, trusting: Server) -> None:
    """The link uses the proxy's scheme, name and port, whatever the client claims; an identity does not get through."""
    with closing(create_account(trusting, Terms(plan="personal"))) as account:
        claims = {"X-Forwarded-Proto": "http", "X-Forwarded-For": "192.0.2.1", "X-Geomill-Identity": "forged"}
        headers = {**account.headers, **claims}
    with httpx.Client(base_url=proxy, headers=headers, verify=UNTRUSTED) as client:
        answer = client.post("/api/geo/convert/file", files={"file": ("a.geojson", lakes())}).json()
        assert answer["success"], answer
        assert answer["downloadUrl"].startswith(f"{proxy}/files/")
        assert client.get(answer["downloadUrl"]).content[:2] == b"PK"


def answer_to(proxy: str, path: str, fields: Mapping[str, str], pieces: Sequence[bytes] = ()) -> bytes:
    """The beginning of the response to a POST whose body is incomplete, and goes on for as long as there is none.

    A proxy may pass a response on only with the next piece, which it is waiting for when the response arrives.
    """
    port = httpx.URL(proxy).port or 0
    head = "".join(f"{name}: {value}\r\n" for name, value in {"Host": f"localhost:{port}", **fields}.items())
    with (
        socket.create_connection(("localhost", port), timeout=PATIENCE_SECONDS) as plain,
        UNTRUSTED.wrap_socket(plain, server_hostname="localhost") as connection,
    ):
        connection.sendall(f"POST {path} HTTP/1.1\r\n{head}\r\n".encode())
        for piece in pieces:
            connection.sendall(piece)
            connection.settimeout(1)
            with suppress(TimeoutError):
                return connection.recv(4096)
        connection.settimeout(PATIENCE_SECONDS)
        return connection.recv(4096)


def test_a_refused_upload_is_not_awaited(proxy: str) -> None:
    """The proxy streams the body, so that a client learns of an invalid key when its upload begins."""
    fields = {
        "X-API-Key": "gm_wrong",
        "Content-Type": "multipart/form-data; boundary=x",
        "Content-Length": "1048576",
    }
    assert answer_to(proxy, "/api/geo/convert/file", fields, [bytes(65_536)] * 8).startswith(b"HTTP/1.1 401")


@pytest.mark.parametrize("path", ["/healthz", "/readyz", "/metrics", "/%6Detrics"])
def test_what_is_for_operators_is_not_passed_on(proxy: str, path: str) -> None:
    """Operators use the private port."""
    response = httpx.get(f"{proxy}{path}", verify=UNTRUSTED)
    assert (response.status_code, "geomill" in response.text) == (404, False)


def test_a_body_beyond_every_limit_ends_at_the_proxy(proxy: str) -> None:
    """The proxy refuses it because of its Content-Length."""
    fields = {"Content-Length": "250000000"}
    answer = answer_to(proxy, "/api/geo/convert/batch", fields)
    assert answer.startswith(b"HTTP/1.1 413")
    assert b"problem+json" not in answer
