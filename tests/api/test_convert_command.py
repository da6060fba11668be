"""`geomill convert` converts locally or through a server, and never leaves partial results."""

import json
import signal
import socket
import subprocess
import sys
import threading
import zipfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, ClassVar

import pytest
import structlog

from service.cli import main
from service.usecases.delete_job import CANCELLED
from tests.support.data import lakes
from tests.support.endless import NAME, endless_file
from tests.support.forked import environment_for
from tests.support.geomill import Started
from tests.support.patience import PATIENCE_SECONDS, wait_until
from tests.support.server import Client

BROKEN = 'br\u00f6ken "1".geojson'


class Command:
    """The command in its own directory, with temporary files that tests can inspect."""

    def __init__(self, directory: Path, temporary: Path) -> None:
        self.directory = directory
        self.temporary = temporary
        self._environment = environment_for({"TMPDIR": str(temporary)})

    def with_temporary(self, temporary: Path) -> "Command":
        """The same with another directory for temporary files."""
        return Command(self.directory, temporary)

    def start(self, *arguments: str) -> Started:
        """Start `geomill convert`."""
        return Started(("convert", *arguments), self._environment, self.directory)

    def json(self, *arguments: str) -> tuple[int, dict[str, Any]]:
        """Run the command; return its exit code and its JSON object."""
        process = self.start(*arguments, "--json")
        out, err = process.printed()
        assert err == ""
        return process.wait(), json.loads(out)

    def files(self) -> set[str]:
        """The names of the files in the directory."""
        return {path.name for path in self.directory.iterdir()} - {self.temporary.name}


@pytest.fixture
def command(tmp_path: Path) -> Command:
    """The command and a file to convert."""
    (tmp_path / "lakes.geojson").write_bytes(lakes())
    (tmp_path / "temporary").mkdir()
    return Command(tmp_path, tmp_path / "temporary")


@pytest.fixture(autouse=True)
def former_log() -> Iterator[None]:
    """Let commands that run in this process configure no log but their own."""
    former = structlog.get_config()
    yield
    structlog.configure(**former)


def through(client: Client) -> tuple[str, ...]:
    """The arguments that select the server."""
    return "--url", str(client.base_url), "--key", client.key.api_key


@pytest.mark.parametrize("is_remote", [False, True], ids=["here", "through a server"])
def test_several_files_are_converted_with_a_summary(command: Command, client: Client, *, is_remote: bool) -> None:
    """Each file on its own; the parts of a Shapefile together; a broken file with its reason."""
    where = through(client) if is_remote else ()
    (command.directory / BROKEN).write_bytes(b"{")
    code, told = command.json("lakes.geojson", BROKEN, "none.csv", "--to", "shapefile", *where)
    good, broken, missing = told["files"]
    assert (code, told["converted"], told["failed"]) == (1, 1, 2)
    assert (good["output"], good["featureCount"], good["truncationReport"]["featureCount"]) == ("lakes.zip", 3, 3)
    assert "GeoJSON" in broken["error"]
    assert missing["error"] == "There is no such file."
    assert command.files() == {"lakes.geojson", BROKEN, "lakes.zip"}
    if is_remote:
        assert {job["originalFileName"] for job in jobs(client)} == {"lakes.geojson", BROKEN}

    unpacked = command.directory / "parts"
    subprocess.run(
        [sys.executable, "-m", "zipfile", "-e", "lakes.zip", str(unpacked)], cwd=command.directory, check=True
    )
    code, told = command.json(str(unpacked / "lakes.shp"), "--to", "gpkg", "--epsg", "3857", "--force", *where)
    assert (code, told["files"][0]["output"], told["files"][0]["featureCount"]) == (0, "lakes.gpkg", 3)
    assert b"Titicaca" in (command.directory / "lakes.gpkg").read_bytes()  # the attributes came along
    assert not list(command.temporary.iterdir())


def test_the_encoding_of_the_locale_changes_nothing(command: Command) -> None:
    """The name of a layer is that of the file in most formats. Here the locale has only ASCII."""
    name = "北京-für"
    (command.directory / f"{name}.geojson").write_bytes(lakes())
    run = subprocess.run(
        [sys.executable, "-m", "service", "convert", f"{name}.geojson", "--to", "shapefile", "--json"],
        cwd=command.directory,
        env=environment_for({"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}),
        capture_output=True,
        check=False,
    )
    assert run.returncode == 0, run.stderr
    with zipfile.ZipFile(command.directory / f"{name}.zip") as archive:
        assert f"{name}.shp" in archive.namelist()


NOWHERE = ("--url", "http://127.0.0.1:1", "--key", "k")


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (("--to", "nonsense"), "Valid are: GeoJson"),
        (("--output", "nowhere"), "There is no directory nowhere"),
        (("--key", "k"), "Name the server with --url"),
        (("--url", "ftp://x", "--key", "k"), "starts with http://"),
        (("--url", "http://127.0.0.1:1"), "--key-file"),
        (("--url", "http://a b", "--key", "k"), "starts with http://"),
        (("--url", "http://a..b", "--key", "k"), "starts with http://"),
        (("--url", "http://127.0.0.1:1", "--key", "k\n"), "characters that an API key cannot have"),
        (("--url", "http://127.0.0.1:1", "--key-file", "none"), "none is not a file with a key"),
    ],
)
def test_a_command_that_cannot_work_is_invalid(
    command: Command,
    arguments: tuple[str, ...],
    complaint: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Before anything is sent or converted."""
    monkeypatch.chdir(command.directory)
    assert main(("convert", "lakes.geojson", *arguments)) == 2
    out, err = capsys.readouterr()
    assert (out, err.count("\n")) == ("", 1)
    assert complaint in err


def test_a_result_never_replaces_a_file_unasked(
    command: Command, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """It is refused before anything is sent."""
    existing = command.directory / "lakes.csv"
    existing.write_bytes(b"mine")
    monkeypatch.chdir(command.directory)
    assert main(("convert", "lakes.geojson", "--to", "csv", *NOWHERE)) == 1
    out, err = capsys.readouterr()
    assert (out, err.count("\n")) == ("", 1)
    assert "lakes.csv exists already. Use --force" in err
    assert existing.read_bytes() == b"mine"


def test_a_refusal_of_the_server_is_told(
    command: Command, client: Client, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """With the server's message."""
    monkeypatch.chdir(command.directory)
    assert main(("convert", "lakes.geojson", "--url", str(client.base_url), "--key", "wrong")) == 1
    _, err = capsys.readouterr()
    assert (err.startswith("lakes.geojson: "), "API key" in err) == (True, True)


NONE: Mapping[str, str] = {}


class Odd(BaseHTTPRequestHandler):
    """A server that is no Geomill, or one that is in trouble; the first part of a path says which."""

    protocol_version = "HTTP/1.1"
    results: ClassVar[list[tuple[int, bytes]]] = []

    def log_message(self, *_: object) -> None:
        """Say nothing."""

    def do_POST(self) -> None:
        """Answer an upload."""
        self.rfile.read(int(self.headers["Content-Length"]))
        status, kind, body = ANSWERS[self.path.split("/")[1]]
        if status == HTTPStatus.SERVICE_UNAVAILABLE:  # only once
            ANSWERS["busy"] = ANSWERS["html"]
        self._answer(status, body, headers={"Content-Type": kind, "Location": "/login", "Retry-After": "-1"})

    def do_GET(self) -> None:
        """Answer a question about a job, or a link."""
        if "/status" in self.path:
            return self._answer(200, self.record())
        status, body = self.results.pop(0)
        return self._answer(status, body, length=len(RESULT))

    def record(self) -> bytes:
        """A job that has completed."""
        link = f"http://{self.headers['Host']}/link"
        return json.dumps(
            {"jobId": "1", "status": "Completed", "originalFileName": "x", "downloadUrl": link, "outputSizeBytes": 6}
        ).encode()

    def _answer(self, status: int, body: bytes, length: int = 0, headers: Mapping[str, str] = NONE) -> None:
        body = body or self.record()
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(length or len(body)))
        self.send_header("Connection", "close")
        self.end_headers()
        self.wfile.write(body)
        self.close_connection = True


RESULT = b"result"
ANSWERS = {
    "html": (200, "text/html", b"<html>Welcome</html>"),
    "list": (200, "application/json", b"[1]"),
    "login": (302, "text/html", b"Log in"),
    "busy": (503, "text/html", b"<html>Full</html>"),
    "done": (200, "application/json", b""),
}


@pytest.fixture(scope="module")
def odd() -> Iterator[str]:
    """The address of such a server."""
    with ThreadingHTTPServer(("127.0.0.1", 0), Odd) as server:
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()
        thread.join()


@pytest.mark.parametrize("kind", ["html", "list", "login", "busy"])
def test_a_server_that_is_no_geomill_is_told(
    command: Command, odd: str, kind: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """In one line for each file, also after it was busy and has told no sensible time to wait."""
    monkeypatch.chdir(command.directory)
    assert main(("convert", "lakes.geojson", "--url", f"{odd}/{kind}", "--key", "k")) == 1
    _, err = capsys.readouterr()
    assert err.startswith(f"lakes.geojson: {odd}/{kind}/api/geo/convert does not respond like Geomill (status ")
    assert (err.count("\n"), "a redirect to /login" in err) == (1, kind == "login")


@pytest.mark.parametrize(
    "story",
    [
        ([(410, b"gone"), (200, RESULT)], ""),
        ([(200, RESULT[:3]), (200, RESULT)], ""),
        ([(404, b"no"), (404, b"no")], "cannot be fetched (status 404)"),
    ],
)
def test_a_download_that_fails_is_repeated_with_a_new_link(
    command: Command,
    odd: str,
    story: tuple[list[tuple[int, bytes]], str],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """An expired link, or a connection that breaks, is no reason to convert again; what never works is told."""
    results, ends = story
    monkeypatch.chdir(command.directory)
    monkeypatch.setattr(Odd, "results", list(results))
    assert main(("convert", "lakes.geojson", "--url", f"{odd}/done", "--key", "k")) == (1 if ends else 0)
    _, err = capsys.readouterr()
    assert ends in err
    assert command.files() == {"lakes.geojson"} | ({"result"} if not ends else set())


def test_an_interrupted_conversion_leaves_nothing(command: Command, client: Client) -> None:
    """No file remains, no job continues, and the account pays nothing."""
    (command.directory / NAME).write_bytes(endless_file())
    process = command.start(NAME, "--to", "csv", *through(client))
    wait_until(lambda: bool(jobs(client)))
    process.send_signal(signal.SIGINT)
    out, _ = process.printed()
    assert (process.returncode, out) == (130, "")
    [job] = jobs(client)
    assert (job["status"], job["errorMessage"]) == ("Failed", CANCELLED)
    assert client.usage() == (0, 0)

    process = command.start(NAME, "--to", "csv")
    wait_until(lambda: bool(list(command.temporary.glob("*/work/uploads/*/*/*"))))
    process.send_signal(signal.SIGINT)
    process.printed()
    assert process.returncode == 130
    assert not list(command.temporary.iterdir())
    assert command.files() == {"lakes.geojson", NAME}


def test_a_job_whose_response_is_still_on_its_way_is_cancelled(command: Command, client: Client) -> None:
    """The server has accepted the file, but the command does not know the job yet."""
    (command.directory / NAME).write_bytes(endless_file())
    with delayed(client) as (url, arrives):
        process = command.start(NAME, "--to", "csv", "--url", url, "--key", client.key.api_key)
        wait_until(lambda: bool(jobs(client)))
        process.send_signal(signal.SIGINT)
        with suppress(subprocess.TimeoutExpired):  # a command that did not wait would have ended
            process.wait(1)
        arrives.set()
        process.printed()
    assert process.returncode == 130
    [job] = jobs(client)
    assert (job["status"], job["errorMessage"]) == ("Failed", CANCELLED)
    assert client.usage() == (0, 0)


@contextmanager
def delayed(client: Client) -> Iterator[tuple[str, threading.Event]]:
    """A second address of the server that holds back responses until the event is set."""
    arrives = threading.Event()
    with socket.create_server(("127.0.0.1", 0)) as listener:
        threading.Thread(target=relay, args=(listener, client, arrives), daemon=True).start()
        try:
            yield f"http://127.0.0.1:{listener.getsockname()[1]}", arrives
        finally:
            listener.shutdown(socket.SHUT_RDWR)


def relay(listener: socket.socket, client: Client, arrives: threading.Event) -> None:
    """Relay every client's connection to the server until the listener is closed."""
    with suppress(OSError):
        while True:
            near, _ = listener.accept()
            far = socket.create_connection((client.base_url.host, client.base_url.port or 80))
            threading.Thread(target=pump, args=(near, far, None), daemon=True).start()
            threading.Thread(target=pump, args=(far, near, arrives), daemon=True).start()


def pump(source: socket.socket, target: socket.socket, when: threading.Event | None) -> None:
    """Pass on what arrives once the event is set."""
    with suppress(OSError), source:
        while piece := source.recv(1 << 16):
            if when is not None:
                when.wait(PATIENCE_SECONDS)
            target.sendall(piece)
        target.shutdown(socket.SHUT_WR)


def jobs(client: Client) -> list[dict[str, Any]]:
    """The account's jobs."""
    found: list[dict[str, Any]] = client.get("/api/geo/convert/jobs").json()["jobs"]
    return found


@pytest.mark.parametrize(
    "stream", ["2>&1 | true", ">&- 2>&- <&-", ">/dev/full 2>&1"], ids=["no reader", "closed", "full"]
)
def test_output_that_nobody_reads_ends_no_batch(command: Command, stream: str) -> None:
    """All files are converted, and the exit code is theirs; a terminal may be gone, or `head` satisfied."""
    names = [f"{name}.geojson" for name in "abc"]
    for name in names:
        (command.directory / name).write_bytes(lakes())
    line = f'{{ "$0" -m service convert "$@" --to csv; echo $? >code; }} {stream}'
    run = subprocess.run(
        ("bash", "-c", line, sys.executable, "none.kml", *names),
        cwd=command.directory,
        env=environment_for({"TMPDIR": str(command.temporary)}),
        capture_output=True,
        check=False,
    )
    assert b"Traceback" not in run.stderr
    assert (command.directory / "code").read_text() == "1\n", run.stderr  # there is no none.kml
    assert {"a.csv", "b.csv", "c.csv"} <= command.files()
