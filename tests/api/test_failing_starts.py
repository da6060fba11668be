"""A failed start says in one sentence what is wrong, which variable causes it, and its valid values (interface 10)."""

import os
import shutil
import signal
import socket
import subprocess
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from tests.sandbox.test_hosts import NOBODY, environment, python_for_everyone
from tests.support.forked import environment_for
from tests.support.geomill import Geomill, Started
from tests.support.patience import PATIENCE_SECONDS
from tests.support.small_disk import small_disk


@pytest.fixture
def taken_port() -> Iterator[int]:
    """A port on which another process listens."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        yield listening.getsockname()[1]


WRONG: dict[str, tuple[Mapping[str, str], tuple[str, ...]]] = {
    "enumeration": ({"SANDBOX": "lax"}, ("GEOMILL_SANDBOX is 'lax'", "best-effort, strict")),
    "empty enumeration": ({"S3_SSE": "AES"}, ("GEOMILL_S3_SSE is 'AES'", "nothing, AES256, aws:kms")),
    "number": ({"PORT": "http"}, ("GEOMILL_PORT is 'http'", "from 0 to 65535")),
    "optional number": ({"PRIVATE_PORT": "-1"}, ("GEOMILL_PRIVATE_PORT is '-1'", "from 0 to 65535")),
    "exclusive bound": ({"CONVERSION_SECONDS": "0"}, ("GEOMILL_CONVERSION_SECONDS is '0'", "above 0")),
    "another database": ({"DATABASE_URL": "mysql://u:secret@h/x"}, ("GEOMILL_DATABASE_URL", "postgresql://")),
    "URL that cannot be parsed": ({"DATABASE_URL": "postgresql://h:port/x"}, ("GEOMILL_DATABASE_URL", "Check the URL")),
    "database that is away": ({"DATABASE_URL": "postgresql://127.0.0.1:1/x"}, ("GEOMILL_DATABASE_URL", "127.0.0.1")),
    "unknown host": ({"HOST": "nowhere.invalid"}, ("nowhere.invalid", "Set GEOMILL_HOST")),
    "host with a blank": ({"HOST": "1.2.3 .4"}, ("Set GEOMILL_HOST",)),
    "host of another machine": ({"HOST": "192.0.2.1"}, ("192.0.2.1", "Set GEOMILL_HOST")),
    "private host": ({"PRIVATE_HOST": "192.0.2.1", "PRIVATE_PORT": "0"}, ("Set GEOMILL_PRIVATE_HOST",)),
    "private host alone": ({"PRIVATE_HOST": "127.0.0.1"}, ("GEOMILL_PRIVATE_HOST", "Set GEOMILL_PRIVATE_PORT")),
    "bucket": ({"S3_BUCKET": "A_B"}, ("bucket's name", "lower-case letters, digits", "GEOMILL_S3_ADDRESSING=path")),
    "bucket with a blank": ({"S3_BUCKET": "A B"}, ("GEOMILL_S3_BUCKET", "lower-case letters, digits", "geomill-eu")),
    "short bucket": ({"S3_BUCKET": "x"}, ("GEOMILL_S3_BUCKET", "3 to 63")),
    "endpoint": ({"S3_BUCKET": "results", "S3_ENDPOINT": "minio:9000"}, ("https://",)),
    "root path": ({"ROOT_PATH": "geo/"}, ("GEOMILL_ROOT_PATH",)),
    "proxies": ({"TRUSTED_PROXIES": "proxy.local"}, ("GEOMILL_TRUSTED_PROXIES",)),
    "short secret": ({"IDENTITY_SECRET": "short"}, ("GEOMILL_IDENTITY_SECRET", "32 characters")),
    "data directory": ({"DATA_DIR": "/proc/geomill"}, ("GEOMILL_DATA_DIR", "/proc/geomill")),
}
SERVED = frozenset({"HOST", "PRIVATE_HOST", "TRUSTED_PROXIES", "IDENTITY_SECRET"})
"""What only `serve` looks at."""


@pytest.mark.parametrize("name", WRONG)
def test_a_wrong_setting_is_named(name: str, database_url: str, tmp_path: Path) -> None:
    """With the values that it may have; passwords are not shown."""
    settings, expected = WRONG[name]
    given = {"DATABASE_URL": database_url, "PORT": "0", "LOG_LEVEL": "error", **settings}
    geomill = Geomill(tmp_path, {f"GEOMILL_{variable}": value for variable, value in given.items()})
    done = geomill("serve" if SERVED & settings.keys() else "audit")
    assert done.returncode == 1
    assert_one_sentence(done.stderr, *expected)


FLEET: Mapping[str, str] = {
    "GEOMILL_DATABASE_URL": "postgresql://127.0.0.1:1/x",
    "GEOMILL_NATS_URL": "nats://127.0.0.1:1",
    "GEOMILL_S3_BUCKET": "results",
    "GEOMILL_PORT": "0",
    "GEOMILL_LOG_LEVEL": "error",
}
DATABASE_AWAY = ("GEOMILL_DATABASE_URL", "Connect call failed ('127.0.0.1', 1)")


@pytest.mark.parametrize(
    ("command", "lacks", "expected"),
    [
        (("serve",), "GEOMILL_NATS_URL", DATABASE_AWAY),
        (("serve", "--role", "gateway"), None, DATABASE_AWAY),
        (("worker",), None, DATABASE_AWAY),
        (("serve", "--role", "gateway"), "GEOMILL_NATS_URL", ("GEOMILL_NATS_URL",)),
        (("worker",), "GEOMILL_S3_BUCKET", ("GEOMILL_S3_BUCKET",)),
        (("audit",), None, DATABASE_AWAY),
    ],
)
def test_each_role_says_what_it_lacks(
    command: tuple[str, ...], lacks: str | None, expected: tuple[str, ...], tmp_path: Path
) -> None:
    """With the cause that the driver told, and without log events on standard output."""
    done = Geomill(tmp_path, {name: value for name, value in FLEET.items() if name != lacks})(*command)
    assert (done.returncode, done.stdout) == (1, "")
    assert_one_sentence(done.stderr, *expected)


def test_a_taken_port_is_named(taken_port: int, tmp_path: Path) -> None:
    """With the variable that selects another port."""
    done = Geomill(tmp_path, {"GEOMILL_PORT": str(taken_port), "GEOMILL_LOG_LEVEL": "error"})("serve")
    assert done.returncode == 1
    assert_one_sentence(done.stderr, str(taken_port), "Set GEOMILL_PORT")


@pytest.mark.parametrize("command", [("serve",), ("worker",)])
def test_a_stop_ends_a_start_that_waits(command: tuple[str, ...], tmp_path: Path) -> None:
    """As for a database that accepts connections and says nothing: the signal had to wait for the end of the start."""
    with socket.create_server(("127.0.0.1", 0)) as silent:
        silent.settimeout(PATIENCE_SECONDS)
        url = f"postgresql://geomill@127.0.0.1:{silent.getsockname()[1]}/geomill"
        settings = {**FLEET, "GEOMILL_DATABASE_URL": url, "GEOMILL_DATA_DIR": str(tmp_path)}
        starting = Started(command, environment_for(settings))
        with silent.accept()[0]:
            starting.send_signal(signal.SIGTERM)
            _, told = starting.printed()
        assert starting.wait() == 0, told


def test_a_host_that_cannot_convert_is_told(tmp_path: Path, database_url: str) -> None:
    """ogr2ogr is missing or does not run, or converters could read private files."""
    prefix = tmp_path / "prefix"
    for name, text in (
        ("broken", "#!/bin/sh\nexit 1\n"),
        ("unlinked", "#!/bin/sh\necho 'libgdal.so.32: cannot open shared object file' >&2\nexit 127\n"),
        ("killed", "#!/bin/sh\nkill -KILL $$\n"),
        ("foreign", "of another processor"),
    ):
        (tmp_path / name).write_text(text)
        (tmp_path / name).chmod(0o755)
    (prefix / "bin").mkdir(parents=True)
    ogr2ogr = prefix / "bin" / "ogr2ogr"
    ogr2ogr.write_text(f'#!/bin/sh\nexec {shutil.which("ogr2ogr")} "$@"\n')
    ogr2ogr.chmod(0o755)
    exposed = prefix / "share" / "gdal" / "data"
    exposed.mkdir(parents=True)
    for program, data_dir, expected in (
        ("/nonexistent/ogr2ogr", tmp_path, ("There is no ogr2ogr", "GEOMILL_OGR2OGR")),
        (str(tmp_path / "broken"), tmp_path, ("cannot be run (exit code 1)", "GEOMILL_OGR2OGR")),
        (str(tmp_path / "unlinked"), tmp_path, ("(exit code 127: libgdal.so.32: cannot open shared object file)",)),
        (str(tmp_path / "killed"), tmp_path, ("cannot be run (signal 9)",)),
        (str(tmp_path / "foreign"), tmp_path, ("cannot be run (Exec format error)",)),
        (str(ogr2ogr), exposed, (str(exposed), "Move one of them", "GEOMILL_DATA_DIR")),
    ):
        settings = {"GEOMILL_DATABASE_URL": database_url, "GEOMILL_PORT": "0", "GEOMILL_OGR2OGR": program}
        done = Geomill(data_dir, {**settings, "GEOMILL_LOG_LEVEL": "error"})("serve")
        assert (done.returncode, done.stdout) == (1, "")
        assert_one_sentence(done.stderr, *expected)


@pytest.mark.parametrize("command", ["serve", "audit"])
def test_a_data_directory_that_is_no_text_is_named(command: str, tmp_path: Path) -> None:
    """As on a disk from the time before UTF-8; neither PostgreSQL nor the sandbox could be told of it."""
    directory = Path(os.fsdecode(os.fsencode(tmp_path) + b"/D\xe4ta"))
    done = Geomill(directory, {"GEOMILL_PORT": "0", "GEOMILL_LOG_LEVEL": "error"})(command)
    assert done.returncode == 1
    assert_one_sentence(done.stderr, "GEOMILL_DATA_DIR", "D?ta", "UTF-8")
    assert not directory.exists()


FULL = "Free some space, or name another directory in GEOMILL_DATA_DIR."
FIRST_PORT = Path("/proc/sys/net/ipv4/ip_unprivileged_port_start")


@pytest.mark.parametrize("processes", ["1", "2"])
def test_a_full_disk_is_named(processes: str, tmp_path: Path) -> None:
    """With the variable that names another one, also by the first of several processes."""
    with small_disk(tmp_path / "full", 2048) as full:
        settings = {"GEOMILL_PROCESSES": processes, "GEOMILL_CONVERTERS": processes}  # also if the host has one core
        done = Geomill(full, {**settings, "GEOMILL_PORT": "0", "GEOMILL_LOG_LEVEL": "error"})("serve")
    assert (done.returncode, done.stdout) == (1, "")
    first, _, rest = done.stderr.partition("\n")
    assert_one_sentence(f"{first}\n", "The embedded database could not be set up (", FULL)
    assert rest.startswith("geomill: Serving process 1 ended") if processes == "2" else rest == ""


@pytest.fixture
def everyones() -> Iterator[Path]:
    """A directory that every user may look into."""
    with tempfile.TemporaryDirectory() as directory:
        Path(directory).chmod(0o755)
        yield Path(directory)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root becomes somebody else")
def test_an_ordinary_user_is_told_the_same(everyones: Path) -> None:
    """Of a directory in which only others write, of a port that needs rights, and of a program that cannot be run."""
    program, own = everyones / "ogr2ogr", everyones / "own"
    program.write_text("no program")
    own.mkdir()
    os.chown(own, NOBODY, NOBODY)
    cases: list[tuple[tuple[str, ...], Mapping[str, str], tuple[str, ...]]] = [
        (("serve",), {"DATA_DIR": str(everyones)}, (str(everyones), "GEOMILL_DATA_DIR")),
        (("convert", "none.csv"), {"DATA_DIR": str(own), "OGR2OGR": str(program)}, ("no ogr2ogr", "GEOMILL_OGR2OGR")),
    ]
    if int(FIRST_PORT.read_text(encoding="ascii")) > 80:
        port = {"DATA_DIR": str(own), "PORT": "80"}
        cases.append((("serve",), port, ("Set GEOMILL_PORT to a port of 1024 or more",)))
    for command, settings, expected in cases:
        given = {f"GEOMILL_{name}": value for name, value in {"PORT": "0", "LOG_LEVEL": "error", **settings}.items()}
        done = subprocess.run(
            [python_for_everyone(), "-m", "service", *command],
            user=NOBODY,
            group=NOBODY,
            extra_groups=[],
            env={**environment(), "PATH": os.environ["PATH"], **given},
            cwd="/",
            capture_output=True,
            text=True,
            check=False,
        )
        assert (done.returncode, done.stdout) == (1, "")
        assert_one_sentence(done.stderr, *expected)


def assert_one_sentence(told: str, *expected: str) -> None:
    """One line that contains all of it, with neither a traceback nor a password."""
    assert told.startswith("geomill: ")
    assert told.count("\n") == 1, told
    assert "u:secret" not in told
    for words in expected:
        assert words in told
    assert os.sep + "service" + os.sep not in told
