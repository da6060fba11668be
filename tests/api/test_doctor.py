"""`geomill doctor` tries each part of an installation, and says what to do about what is broken."""

import json
import os
from collections.abc import Iterator
from pathlib import Path

import anyio
import pytest

from service.db.migrate import migrate
from tests.fleet.nats import NatsServer, nats_server
from tests.integration.storage.servers import ACCESS_KEY, BUCKET, SECRET_KEY, S3Server, s3_server
from tests.support.geomill import Geomill
from tests.support.small_disk import remount, small_disk

pytestmark = pytest.mark.xdist_group("doctor")  # one S3 server and one NATS server for all


@pytest.fixture(scope="module")
def s3(tmp_path_factory: pytest.TempPathFactory) -> Iterator[S3Server]:
    """A running S3 server."""
    with s3_server(tmp_path_factory.mktemp("s3")) as running:
        yield running


@pytest.fixture(scope="module")
def nats(tmp_path_factory: pytest.TempPathFactory) -> Iterator[NatsServer]:
    """A running NATS server, on which nobody has made a queue yet."""
    with nats_server(tmp_path_factory.mktemp("nats")) as running:
        yield running


@pytest.fixture
def settings(s3: S3Server, nats: NatsServer, empty_database_url: str) -> dict[str, str]:
    """Those of a worker whose parts are all there."""
    anyio.run(migrate, empty_database_url)
    return {
        "GEOMILL_DATABASE_URL": empty_database_url,
        "GEOMILL_NATS_URL": nats.url,
        "GEOMILL_S3_ENDPOINT": s3.url,
        "GEOMILL_S3_PUBLIC_ENDPOINT": s3.url,
        "GEOMILL_S3_BUCKET": BUCKET,
        "GEOMILL_S3_ACCESS_KEY": ACCESS_KEY,
        "GEOMILL_S3_SECRET_KEY": SECRET_KEY,
    }


Lines = dict[str, tuple[str, str]]


def examined(directory: Path, settings: dict[str, str], role: str = "gateway") -> tuple[int, Lines]:
    """The exit code, and for each finding its state and its sentences."""
    done = Geomill(directory, settings)("doctor", "--json", "--role", role)
    report = json.loads(done.stdout)
    assert report["ready"] == (done.returncode == 0)
    assert report["role"] == role
    lines = {
        f"{part} {finding['name']}": (finding["state"], f"{finding['detail']} {finding['advice']}")
        for part, findings in report["parts"].items()
        for finding in findings
    }
    return done.returncode, lines


def test_everything_is_tried_on_a_whole_installation(tmp_path: Path, settings: dict[str, str]) -> None:
    """For a worker, whose links nobody follows: GDAL and its formats, the isolation, PostgreSQL, and the queue."""
    del settings["GEOMILL_S3_PUBLIC_ENDPOINT"]
    code, lines = examined(tmp_path, settings, "worker")
    assert code == 0, lines
    names = """
        Converter GDAL, Converter Shapefile, Converter resource limits, Host work directory, Host open files,
        Host processes, Database PostgreSQL, Database schema, Database clocks, Database connections, Storage store,
        Queue NATS, Queue stream
    """
    for name in names.replace("\n", " ").split(","):
        assert lines[name.strip()][0] in {"ok", "warn"}, name
    assert "Storage link" not in lines
    assert lines["Settings settings"] == ("ok", "nothing contradicts ")


@pytest.mark.skipif(os.geteuid() != 0, reason="only root creates what the service cannot read")
def test_root_is_told_that_the_directory_is_another_users(tmp_path: Path, settings: dict[str, str]) -> None:
    """The service could not start with the secrets that are created there."""
    os.chown(tmp_path, 1, -1)
    state, told = examined(tmp_path, settings)[1]["Settings settings"]
    assert (state, "belongs to user 1," in told) == ("warn", True)


BROKEN = (
    {
        "GEOMILL_NATS_URL": ("nats://127.0.0.1:1", "Queue cannot be used", "fail"),
        "GEOMILL_DATABASE_URL": ("postgresql://127.0.0.1:1/x", "Database cannot be used", "fail"),
        "GEOMILL_S3_BUCKET": ("another", "Storage cannot be used", "fail"),
        "GEOMILL_PRIVATE_PORT": ("8080", "Settings settings", "fail"),
    },
    {
        "GEOMILL_S3_SECRET_KEY": ("wrong", "Storage cannot be used", "fail"),
        "GEOMILL_MAX_CONNECTIONS": ("1000000", "Host open files", "warn"),
        "GEOMILL_PRIVATE_HOST": ("127.0.0.1", "Settings settings", "fail"),
    },
    {
        "GEOMILL_DATABASE_URL": ("{}&default_transaction_read_only=on", "Database access", "fail"),
        "GEOMILL_S3_PUBLIC_ENDPOINT": ("http://127.0.0.1:1", "Storage link", "warn"),
        "GEOMILL_CONVERSION_SECONDS": ("900", "Settings settings", "warn"),
    },
)
"""What is broken at a time: each setting with its value, of the right one, and the line that then says what to do."""


@pytest.mark.parametrize("broken", BROKEN, ids=lambda broken: next(iter(broken)).removeprefix("GEOMILL_"))
def test_what_is_broken_is_named(
    tmp_path: Path, settings: dict[str, str], broken: dict[str, tuple[str, str, str]]
) -> None:
    """Each in its line, all in one run; what would keep a process from serving makes the exit code 1."""
    code, lines = examined(
        tmp_path, settings | {name: value.format(settings.get(name)) for name, (value, _, _) in broken.items()}
    )
    for _, name, state in broken.values():
        assert lines[name][0] == state, lines
        assert len(lines[name][1]) > len("a sentence of advice"), lines
    assert code == int(any(state == "fail" for _, _, state in broken.values()))


def test_a_directory_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    """With what to do, instead of the system's number, also if it is there and has space."""
    with small_disk(tmp_path / "disk", 1 << 20) as disk:
        remount(disk, "ro")
        code, lines = examined(disk, {}, "all")
    assert code == 1
    for part in ("Converter", "Host", "Storage"):
        state, told = lines[f"{part} cannot be used"]
        assert (state, "GEOMILL_DATA_DIR" in told, "Errno" in told) == ("fail", True, False), told


def test_a_role_lacks_what_it_shares(tmp_path: Path) -> None:
    """All of it in one run, beside what is wrong on this host: here, ogr2ogr."""
    code, lines = examined(tmp_path, {"GEOMILL_OGR2OGR": "/nonexistent/ogr2ogr"}, "worker")
    assert code == 1
    for setting in ("GEOMILL_NATS_URL", "GEOMILL_DATABASE_URL", "GEOMILL_S3_BUCKET"):
        assert setting in lines["Settings cannot be used"][1]
    assert "GEOMILL_OGR2OGR" in lines["Converter cannot be used"][1]
    assert lines["Host work directory"]


def test_settings_of_processes_that_contradict_each_other_hide_no_other_finding(tmp_path: Path) -> None:
    """What only the start of several processes would refuse is a finding like others."""
    code, lines = examined(tmp_path, {"GEOMILL_PROCESSES": "8", "GEOMILL_CONVERTERS": "1"}, "all")
    assert code == 1
    state, words = lines["Settings cannot be used"]
    assert (state, "8 processes need a converter each" in words) == ("fail", True)
    assert lines["Host processes"][0] in {"ok", "warn"}
