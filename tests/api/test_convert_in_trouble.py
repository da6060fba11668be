"""`geomill convert` against servers and disks that fail: it repeats, gives up or stops in order, and says what is left.

What no real server does on request (refuse, fall silent, disappear) is done by one that follows a script.
"""

import json
import os
import shutil
import signal
import socket
import struct
import subprocess
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

from service.cli import convert, main
from service.cli.client import http, requests
from service.cli.client.http import HttpExchange
from service.cli.client.interrupting import end_job
from tests.api.test_convert_command import Command, command, former_log, jobs, through
from tests.support.converters import at_a_standstill
from tests.support.data import bare_points, lakes
from tests.support.endless import NAME, endless_file
from tests.support.patience import PATIENCE_SECONDS, wait_until
from tests.support.server import Client
from tests.support.small_disk import small_disk

__all__ = ["command", "former_log"]

RESULT = b"result"
FREE_SOME = "Free some, or name another directory in TMPDIR."
JOB_ID = "019df0a2-7c1e-7b52-9d3c-3b1f5a2e8d10"
Step = Callable[["Teller"], None]


class Teller(BaseHTTPRequestHandler):
    """Responds to each request with the next step of the server's script, and notes the request."""

    protocol_version = "HTTP/1.1"

    @property
    def script(self) -> "Script":
        """The server."""
        assert isinstance(self.server, Script)
        return self.server

    def log_message(self, *_: object) -> None:
        """Say nothing."""

    def do_POST(self) -> None:
        """Respond to an upload."""
        self._follow()

    def do_GET(self) -> None:
        """Respond to a question about the job, or to a link."""
        self._follow()

    def do_DELETE(self) -> None:
        """Respond to a cancellation."""
        self._follow()

    def _follow(self) -> None:
        self.script.noted.append((self.command, self.path, dict(self.headers)))
        self.close_connection = True
        with suppress(OSError):
            self.script.steps.pop(0)(self)

    def read_all(self) -> None:
        """Read the body of an upload."""
        self.rfile.read(int(self.headers.get("Content-Length", "0")))

    def respond(self, status: int, body: bytes, headers: Mapping[str, str]) -> None:
        """Send a response."""
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


class Script(ThreadingHTTPServer):
    """A server on a port of its own; `noted` are the requests that it has received."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Teller)
        self.url = f"http://127.0.0.1:{self.server_port}"
        self.steps: list[Step] = []
        self.noted: list[tuple[str, str, Mapping[str, str]]] = []
        self.is_silent, self.over = threading.Event(), threading.Event()

    def handle_error(self, *_: object) -> None:
        """Say nothing: clients break off."""

    def uploads(self) -> list[str]:
        """The idempotency keys of the uploads."""
        return [headers["Idempotency-Key"] for method, _, headers in self.noted if method == "POST"]


def refuse(status: int, **headers: str) -> Step:
    """Refuse a request."""

    def step(teller: Teller) -> None:
        teller.read_all()
        told = {name.replace("_", "-"): value for name, value in headers.items()}
        teller.respond(status, json.dumps({"error": f"refused with {status}"}).encode(), told)

    return step


def record(status: str, *, has_link: bool = True, answer: int = 200, **members: object) -> Step:
    """Respond with the record of the job, by default with status 200."""

    def step(teller: Teller) -> None:
        teller.read_all()
        told: dict[str, Any] = {"jobId": JOB_ID, "status": status, "originalFileName": "x", **members}
        if status == "Completed" and has_link:
            told |= {"downloadUrl": f"{teller.script.url}/link", "outputSizeBytes": len(RESULT)}
        teller.respond(answer, json.dumps(told).encode(), {})

    return step


def deliver(teller: Teller) -> None:
    """Send the result."""
    teller.respond(200, RESULT, {"Content-Disposition": 'attachment; filename="x.csv"'})


def obey(teller: Teller) -> None:
    """Respond to a cancellation."""
    teller.respond(204, b"", {})


def lose(teller: Teller) -> None:
    """Receive a whole upload, and break the connection."""
    teller.read_all()
    hang_up(teller)


def hang_up(teller: Teller) -> None:
    """Break the connection, whatever the client is doing."""
    teller.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    teller.connection.close()


def fall_silent(teller: Teller) -> None:
    """Never respond."""
    teller.read_all()
    teller.script.is_silent.set()
    teller.script.over.wait()


@pytest.fixture
def script() -> Iterator[Script]:
    """A server without a script yet."""
    with Script() as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
        thread.start()
        yield server
        server.over.set()
        server.shutdown()
        thread.join()


class Here:
    """The command in this process, in its directory, with less patience than it has."""

    def __init__(self, command: Command, capsys: pytest.CaptureFixture[str]) -> None:
        self._capsys = capsys
        self.files = command.files
        self.directory = command.directory

    def json(self, url: str, *files: str) -> tuple[int, dict[str, Any]]:
        """Convert files through a server; return exit code and report."""
        code = main(("convert", *files, "--to", "csv", "--url", url, "--key", "k", "--json"))
        out, err = self._capsys.readouterr()
        assert err == ""
        return code, json.loads(out)

    def said(self) -> str:
        """What the command has said to people."""
        return self._capsys.readouterr().err

    def only(self, url: str) -> tuple[int, dict[str, Any]]:
        """Convert one file; return exit code and outcome."""
        code, told = self.json(url, "lakes.geojson")
        [outcome] = told["files"]
        assert (told["converted"], told["failed"]) == (int(outcome["success"]), int(not outcome["success"]))
        return code, outcome


@pytest.fixture
def here(command: Command, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Here:
    """The command in this process."""
    monkeypatch.chdir(command.directory)
    monkeypatch.setattr(requests, "RETRY_SECONDS", 0.01)
    return Here(command, capsys)


END: tuple[Step, ...] = (record("Processing"), record("Completed"), deliver)
TROUBLES: Mapping[str, tuple[Step, ...]] = {
    "full": (refuse(429, Retry_After="1"), refuse(503, Retry_After="1"), *END),
    "full, with senseless pauses": (refuse(429, Retry_After="-1"), refuse(503, Retry_After="9" * 5000), *END),
    "gone during the upload": (hang_up, hang_up, *END),
    "silent after the upload": (fall_silent, *END),
    "full while the job runs": (record("Pending"), refuse(503), refuse(429, Retry_After="1"), *END[1:]),
    "gone while the job runs": (record("Pending"), hang_up, hang_up, *END[1:]),
    "silent while the job runs": (record("Pending"), fall_silent, *END[1:]),
    "link expired": (*END[:-1], refuse(410), record("Completed"), deliver),
    "link refused by S3": (*END[:-1], refuse(403), record("Completed"), deliver),
    "store full": (*END[:-1], refuse(503, Retry_After="1"), record("Completed"), deliver),
    "store gone": (*END[:-1], hang_up, record("Completed"), deliver),
}


@pytest.mark.parametrize("trouble", TROUBLES)
def test_trouble_that_passes_costs_only_time(
    here: Here, script: Script, trouble: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """However often the file is sent, it is sent under one key."""
    monkeypatch.setattr(http, "TIMEOUT_SECONDS", 1.0)
    script.steps = list(TROUBLES[trouble])
    code, outcome = here.only(script.url)
    assert (code, outcome["output"], outcome["jobId"]) == (0, "lakes.csv", JOB_ID), outcome
    assert (here.directory / "lakes.csv").read_bytes() == RESULT
    assert here.files() == {"lakes.geojson", "lakes.csv"}
    assert (len(set(script.uploads())), script.steps) == (1, [])


GOES_ON = f"Job {JOB_ID} goes on without this command; look it up later."
IS_KEPT = f"Job {JOB_ID} is complete: "
LASTING: Mapping[str, tuple[tuple[Step, ...], tuple[str, ...]]] = {
    "full": ((refuse(429, Retry_After="86400"),), ("refused with 429",)),
    "gone during the upload": ((hang_up,), ("cannot be reached (",)),
    "gone while the job runs": ((record("Pending"), hang_up), ("cannot be reached (", GOES_ON)),
    "full while the job runs": ((record("Pending"), refuse(503)), ("refused with 503", GOES_ON)),
    "without the job": ((record("Pending"), refuse(404)), ("refused with 404",)),
    "store gone": ((*END[:-1], hang_up), ("The result cannot be fetched (", IS_KEPT)),
    "link refused": (
        (*END[:-1], refuse(403), record("Completed"), refuse(403)),
        ("The result cannot be fetched (status 403).", IS_KEPT, f"/jobs/{JOB_ID}/result links to its result"),
    ),
    "result deleted": ((record("Processing"), record("Completed", has_link=False)), ("no longer kept",)),
    "result deleted meanwhile": ((*END[:-1], refuse(410), record("Expired")), ("no longer kept",)),
    "job failed": ((record("Processing"), record("Failed", errorMessage="It is damaged.")), ("It is damaged.",)),
}


@pytest.mark.parametrize("trouble", LASTING)
def test_trouble_that_lasts_is_told(here: Here, script: Script, trouble: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """With what became of the job, and its id if there is one; nothing is left here."""
    if trouble != "link refused" and "deleted" not in trouble:
        monkeypatch.setattr(requests, "PATIENCE_SECONDS", 0.0)
    steps, words = LASTING[trouble]
    script.steps = list(steps)
    code, outcome = here.only(script.url)
    assert (code, outcome["output"]) == (1, None)
    for each in words:
        assert each in outcome["error"]
    assert outcome["jobId"] == (JOB_ID if len(steps) > 1 else None)
    assert (here.files(), script.steps) == ({"lakes.geojson"}, [])


@pytest.mark.parametrize("name", ["huts.csv", "huts.geojson"])
def test_nothing_is_sent_whose_result_has_no_name(here: Here, script: Script, name: str) -> None:
    """Because there is such a file, with the default format as well, or another file's result has the name."""
    (here.directory / name).write_bytes(b"x,y\n1,2\n" if name.endswith("csv") else lakes())
    default = here.directory / ("huts.geojson" if name.endswith("csv") else "huts.zip")
    default.write_bytes(b"mine")
    arguments = ("convert", name, "--url", script.url, "--key", "k")
    assert main(arguments) == 1
    assert (default.read_bytes(), script.noted) == (b"mine", [])
    here.said()

    script.steps = [record("Completed"), deliver]
    (here.directory / "lakes.json").write_bytes(lakes())
    code, told = here.json(script.url, "lakes.geojson", "lakes.json")
    [first, second] = told["files"]
    assert (code, first["success"], second["success"]) == (1, True, False)
    assert "lakes.csv is the name of the result of lakes.geojson" in second["error"]
    assert len(script.uploads()) == 1


@pytest.mark.parametrize("waits", ["response", "connection"])
def test_a_request_is_broken_off_whatever_it_waits_for(script: Script, waits: str) -> None:
    """The thread that waits for a silent server, or is about to connect, goes on at once."""
    script.steps = [fall_silent]
    exchange, failed = HttpExchange(script.url, 10 * PATIENCE_SECONDS), threading.Event()

    def send() -> None:
        with suppress(OSError):
            exchange.send("GET", {})
            return
        failed.set()

    thread = threading.Thread(target=send, daemon=True)
    if waits == "connection":
        exchange.break_off()
    thread.start()
    if waits == "response":
        wait_until(script.is_silent.is_set)
        exchange.break_off()
    assert failed.wait(PATIENCE_SECONDS)
    exchange.close()


@contextmanager
def frozen(client: Client) -> Iterator[None]:
    """Let the server stand still."""
    client.server.process.send_signal(signal.SIGSTOP)
    try:
        yield
    finally:
        client.server.process.send_signal(signal.SIGCONT)


def test_a_frozen_server_delays_and_nothing_else(command: Command, client: Client) -> None:
    """A conversion in progress is completed once, when the server goes on."""
    with at_a_standstill(client.server):
        process = command.start("lakes.geojson", "--to", "gpkg", "--json", *through(client))
        wait_until(lambda: bool(jobs(client)))
        with frozen(client), pytest.raises(subprocess.TimeoutExpired):
            process.wait(1)
    out, err = process.printed()
    assert (process.returncode, err, json.loads(out)["converted"]) == (0, "", 1)
    assert client.usage()[0] == 1


def test_a_command_is_interrupted_although_the_server_stands_still(command: Command, client: Client) -> None:
    """It says that the job may go on, and which; files that were not begun are reported, too."""
    (command.directory / NAME).write_bytes(endless_file())
    process = command.start("none.csv", NAME, "--to", "csv", "--json", *through(client))
    wait_until(lambda: bool(jobs(client)))
    [job] = jobs(client)
    with frozen(client):
        process.send_signal(signal.SIGINT)
        out, err = process.printed()
    assert (process.returncode, err) == (130, "")
    told = json.loads(out)
    [missing, interrupted] = told["files"]
    assert (told["converted"], told["failed"], missing["error"]) == (0, 2, "There is no such file.")
    assert interrupted["jobId"] == job["jobId"]
    assert f"does not confirm that job {job['jobId']} is cancelled" in interrupted["error"]
    assert command.files() == {"lakes.geojson", NAME}
    assert not list(command.temporary.iterdir())
    client.delete(f"/api/geo/convert/jobs/{job['jobId']}").raise_for_status()


UPLOAD: tuple[Step, ...] = (fall_silent,)
DOWNLOAD: tuple[Step, ...] = (*END[:-1], fall_silent)


@pytest.mark.parametrize(
    ("number", "steps"),
    [(signal.SIGINT, UPLOAD), (signal.SIGTERM, DOWNLOAD), (signal.SIGHUP, DOWNLOAD)],
    ids=["upload", "download", "end of the terminal"],
)
def test_a_signal_interrupts_every_wait(
    command: Command, script: Script, number: signal.Signals, steps: tuple[Step, ...]
) -> None:
    """For the response to an upload, which may have been accepted, and for a result, which the server keeps."""
    script.steps = list(steps)
    arguments = ("--to", "csv", "--url", script.url, "--key", "k", "--json")
    process = command.start("lakes.geojson", "none.kml", *arguments)
    wait_until(script.is_silent.is_set)
    process.send_signal(number)
    out, err = process.printed()
    assert (process.returncode, err) == (130, "")
    interrupted = json.loads(out)["files"][0]
    assert (interrupted["success"], command.files()) == (False, {"lakes.geojson"})
    if steps == UPLOAD:
        assert "The server may have accepted the file" in interrupted["error"]
    else:
        assert interrupted["jobId"] == JOB_ID
        assert IS_KEPT in interrupted["error"]
        assert {method for method, _, _ in script.noted} == {"POST", "GET"}  # a result is not erased


def test_a_job_that_has_completed_is_not_erased_by_an_interruption(command: Command, script: Script) -> None:
    """Although the command has not seen its end: its result is charged."""
    script.steps = [record("Pending"), fall_silent, record("Completed", answer=409)]
    process = command.start("lakes.geojson", "--to", "csv", "--url", script.url, "--key", "k", "--json")
    wait_until(script.is_silent.is_set)
    process.send_signal(signal.SIGINT)
    out, err = process.printed()
    assert (process.returncode, err) == (130, "")
    [outcome] = json.loads(out)["files"]
    assert (outcome["jobId"], outcome["success"]) == (JOB_ID, False)
    assert IS_KEPT in outcome["error"]
    assert script.noted[-1][:2] == ("DELETE", f"/api/geo/convert/jobs/{JOB_ID}?only=open")


UNCONFIRMED = "does not confirm that job"
ENDS: Mapping[str, tuple[Step, str]] = {
    "cancelled": (obey, ""),
    "completed": (record("Completed", answer=409), IS_KEPT),
    "completed, store away": (record("Completed", answer=409, has_link=False), IS_KEPT),
    "expired": (record("Expired", answer=409), "its result is no longer kept"),
    "refused": (refuse(429), UNCONFIRMED),
    "a conflict of something else": (refuse(409), UNCONFIRMED),
    "silent": (hang_up, UNCONFIRMED),
}


@pytest.mark.parametrize("end", ENDS)
def test_what_became_of_an_interrupted_job_is_told(script: Script, end: str) -> None:
    """By the response to its cancellation, which erases nothing."""
    step, words = ENDS[end]
    script.steps = [step]
    told = end_job(script.url, {}, JOB_ID)
    assert words in told if words else told == ""
    assert [noted[:2] for noted in script.noted] == [("DELETE", f"/jobs/{JOB_ID}?only=open")]


def test_a_result_survives_the_interruption(client: Client) -> None:
    """With a real server: its link still works; one that its owner has erased is not called kept."""
    files = {"file": ("lakes.geojson", lakes())}
    client.post("/api/geo/convert/file", files=files, data={"outputFormat": "csv"}).raise_for_status()
    [job] = jobs(client)
    api, headers = f"{client.base_url}/api/geo/convert".replace("//api", "/api"), {"X-API-Key": client.key.api_key}
    assert f"Job {job['jobId']} is complete" in end_job(api, headers, job["jobId"])
    assert client.get(jobs(client)[0]["downloadUrl"]).is_success
    client.delete(f"/api/geo/convert/jobs/{job['jobId']}").raise_for_status()
    assert "no longer kept" in end_job(api, headers, job["jobId"])


MAY_BE_ACCEPTED = "The server may have accepted the file; "


@pytest.mark.parametrize("key", [None, "of a user"])
def test_an_upload_that_may_be_accepted_is_told(here: Here, script: Script, key: str | None) -> None:
    """With the jobs, and with the key under which a repeat is safe; a later refusal does not take that back."""
    given = () if key is None else ("--idempotency-key", key)
    script.steps = [lose, refuse(429, Retry_After="86400")]
    code, told = here.json(script.url, "lakes.geojson", *given)
    error = told["files"][0]["error"]
    [used] = set(script.uploads())
    assert (code, used) == (1, key or used)
    assert f"refused with 429 {MAY_BE_ACCEPTED}{script.url}/api/geo/convert/jobs shows whether it has." in error
    assert f"--idempotency-key {used}" in error.replace("'", "")
    assert ("charge it twice" in error) == (key is None)


@pytest.mark.parametrize("refusal", [refuse(429, Retry_After="86400"), refuse(413)])
def test_an_upload_that_is_refused_is_not_called_accepted(here: Here, script: Script, refusal: Step) -> None:
    """The server says what became of it."""
    script.steps = [refusal]
    _, outcome = here.only(script.url)
    assert "refused with" in outcome["error"]
    assert MAY_BE_ACCEPTED not in outcome["error"]


def test_a_command_with_a_key_is_charged_once(here: Here, client: Client) -> None:
    """However often it is run."""
    shutil.copy(here.directory / "lakes.geojson", here.directory / "huts.geojson")
    arguments = ("--force", "--idempotency-key", "k1", *through(client))
    for _ in range(2):
        assert main(("convert", "lakes.geojson", "huts.geojson", "--to", "csv", *arguments)) == 0
    assert sorted(job["originalFileName"] for job in jobs(client)) == ["huts.geojson", "lakes.geojson"]
    assert client.usage()[0] == 2


@pytest.mark.parametrize("key", ["", " k", "k\n", "k\u00e9", "k" * 256])
def test_a_key_that_no_server_accepts_is_refused(here: Here, script: Script, key: str) -> None:
    """Before anything is sent; and one without a server has no use."""
    arguments = ("convert", "lakes.geojson", "--idempotency-key", key)
    assert main((*arguments, "--url", script.url, "--key", "k")) == 2
    assert "idempotency key" in here.said()
    assert main(arguments) == 2
    assert "Name the server with --url." in here.said()
    assert script.noted == []


MIF = b'Version 300\nDelimiter ","\nColumns 1\n  name Char(9)\nData\n\nPoint 7 46\n'


@pytest.mark.parametrize("is_remote", [False, True], ids=["here", "through a server"])
def test_names_need_not_be_text(command: Command, client: Client, *, is_remote: bool) -> None:
    """A name that is not UTF-8 is shown with a question mark, and spoils neither its own result nor the others'."""
    odd = os.fsdecode(b"w\xf6ge")
    shutil.copy(command.directory / "lakes.geojson", command.directory / f"{odd}.geojson")
    (command.directory / f"{odd}2.mif").write_bytes(MIF)
    (command.directory / f"{odd}2.mid").write_bytes(b'"hut"\n')
    arguments = ("--source-epsg", "4326", "--to", "csv", *(through(client) if is_remote else ()))
    code, told = command.json(f"{odd}.geojson", f"{odd}2.mif", "lakes.geojson", f"{odd}.none", *arguments)
    assert [one["file"] for one in told["files"]] == ["w?ge.geojson", "w?ge2.mif", "lakes.geojson", "w?ge.none"]
    assert (code, told["converted"]) == (1, 3), [one["error"] for one in told["files"]]
    assert [one["output"] for one in told["files"]] == ["w\ufffdge.csv", "w\ufffdge2.csv", "lakes.csv", None]
    assert {"w\ufffdge.csv", "w\ufffdge2.csv", "lakes.csv"} <= command.files()


def test_a_report_of_a_newer_server_is_ignored(here: Here, script: Script) -> None:
    """The result is written, and charged."""
    script.steps = [record("Completed", truncationReport={"applicable": "partly"}), deliver]
    code, outcome = here.only(script.url)
    assert (code, outcome["output"], outcome["truncationReport"]) == (0, "lakes.csv", None)


def test_a_defect_ends_one_file_alone(here: Here, script: Script, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is told as such, with what to report; the other files are converted."""
    monkeypatch.setattr(convert, "AT_ONCE", 1)
    shutil.copy(here.directory / "lakes.geojson", here.directory / "huts.geojson")
    script.steps = [record("Completed", outputSizeBytes="many", downloadUrl=script.url, has_link=False), deliver, *END]
    code, told = here.json(script.url, "huts.geojson", "lakes.geojson")
    [broken, converted] = told["files"]
    assert (code, told["converted"], converted["output"]) == (1, 1, "lakes.csv"), told
    assert broken["error"].startswith("This is a defect of geomill ")
    assert "Report it" in broken["error"]
    assert "ValueError in " in broken["error"]


def test_a_full_disk_is_told(command: Command, client: Client) -> None:
    """A result that does not fit is written nowhere; that of a server can still be fetched."""
    with small_disk(command.directory / "full", 64) as full:
        arguments = ("lakes.geojson", "--to", "gpkg", "--output", str(full))
        for where in (through(client), ()):
            code, told = command.json(*arguments, *where)
            [outcome] = told["files"]
            assert (code, outcome["output"], list(full.iterdir())) == (1, None, [])
            assert f"{full}/lakes.gpkg cannot be written (No space left on device)." in outcome["error"]
            if where:
                assert f"Job {outcome['jobId']} is complete" in outcome["error"]
                link = client.get(f"/api/geo/convert/jobs/{outcome['jobId']}/result").json()["downloadUrl"]
                assert client.get(link).content.startswith(b"SQLite format 3")


def test_a_lack_of_temporary_space_is_told(command: Command, client: Client) -> None:
    """With the variable that names another directory; the file that is copied or packed there is not blamed."""
    (command.directory / "large.shp").write_bytes(bare_points(100_000))
    (command.directory / "large.dbf").write_bytes(os.urandom(1 << 20))
    with small_disk(command.directory / "full", 512) as full:
        small = command.with_temporary(full)
        for where in (through(client), ()):
            code, told = small.json("large.shp", "--source-epsg", "4326", "--to", "gpkg", *where)
            assert (code, told["files"][0]["error"]) == (1, f"There is no space left in {full}. {FREE_SOME}")
        assert list(full.iterdir()) == []
    with small_disk(command.directory / "tiny", 64) as tiny:
        done = command.with_temporary(tiny).start("lakes.geojson", "--to", "gpkg")
        assert (done.printed()[1], done.returncode) == (f"geomill: There is no space left in {tiny}. {FREE_SOME}\n", 1)
        assert list(tiny.iterdir()) == []
