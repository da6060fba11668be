"""The settings of compose.yaml start the real service on a real PostgreSQL and a real S3 server."""

import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from service.accounts.administration import Terms
from tests.support.data import lakes
from tests.support.patience import polls
from tests.support.server import EXECUTED, create_account, running_server

COMPOSE = Path(__file__).parents[2] / "compose.yaml"
GIVEN = "secret-key-of-the-test"
VARIABLE = re.compile(r"\$\{(\w+):[-?]([^}]*)\}")
SETTING = re.compile(r"^ {6}(GEOMILL_\w+): (.*)$", re.MULTILINE)
ARGUMENT = re.compile(r"^ {6}- (.*)$", re.MULTILINE)
BUCKET = re.compile(r"results:/data/(\w+)")


def filled_in() -> str:
    """The file with the variables of its .env, or their defaults, filled in."""
    given = {"POSTGRES_PASSWORD": "password", "S3_SECRET_KEY": GIVEN}
    return VARIABLE.sub(lambda variable: given.get(variable[1], variable[2]), COMPOSE.read_text(encoding="utf-8"))


@pytest.fixture
def s3_url(tmp_path: Path) -> Iterator[str]:
    """The S3 server, started with the file's arguments on a free port of this host."""
    text = filled_in()
    bucket = BUCKET.search(text)
    assert bucket is not None
    (tmp_path / "data" / bucket[1]).mkdir(parents=True)
    places = {"--addr=0.0.0.0:9000": "--addr=127.0.0.1:0", "/data": str(tmp_path / "data")}
    arguments = [places.get(argument, argument) for argument in ARGUMENT.findall(text)]
    log = tmp_path / "rclone.log"
    with log.open("w") as errors:
        rclone = Path(sys.executable).with_name("rclone")
        process = subprocess.Popen([str(rclone), "--config", "", *arguments], stderr=errors)
    try:
        yield _url_in(log)
    finally:
        process.kill()
        process.wait()


def _url_in(log: Path) -> str:
    for _ in polls():
        if started := re.search(r"Starting s3 server on \[(https?://[^/\]]+)", log.read_text()):
            return started[1]
    raise AssertionError(log.read_text())


def test_what_compose_starts_converts(tmp_path: Path, database_url: str, s3_url: str) -> None:
    """Only addresses differ from the file: those of the database, the S3 server and the ports."""
    settings = {name: value.strip('"') for name, value in SETTING.findall(filled_in())}
    assert settings["GEOMILL_DATABASE_URL"] == "postgresql://geomill:password@postgres:5432/geomill"
    settings |= {"GEOMILL_DATABASE_URL": database_url, "GEOMILL_S3_ENDPOINT": s3_url, "GEOMILL_PRIVATE_PORT": "0"}
    settings |= {"GEOMILL_S3_PUBLIC_ENDPOINT": s3_url}
    terms = Terms(plan="team", plan_owner="organization")
    with (
        running_server(tmp_path, database_url, settings, program=EXECUTED) as server,
        create_account(server, terms) as client,
    ):
        private = server.events("server.ready")[0]["private_url"]
        assert httpx.get(f"{private}/readyz").json()["ready"]
        answer = client.convert("a.geojson", lakes(), outputFormat="Csv")
        assert answer["downloadUrl"].startswith(f"{s3_url}/results/")
        assert b"Ladoga" in client.download(answer)
