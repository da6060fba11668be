"""Files beyond what a format supports fail with a sentence that says so, and are free."""

from collections.abc import Callable, Iterator
from pathlib import Path

import msgspec
import pytest

from service.accounts.administration import Terms
from service.formats.facts import MAX_LAYERS
from service.formats.plan import MAX_DATASETS
from tests.database import TestServer
from tests.support.large_files import write_csv, write_gml, write_interleaved_gml, write_ods, write_xlsx
from tests.support.server import Client, Server, create_account, running_server

pytestmark = pytest.mark.xdist_group("sizes")  # one server for most

LITTLE_TIME = {"GEOMILL_CONVERSION_SECONDS": "0.2"}
LITTLE_TIME_IN_ALL = {"GEOMILL_FILE_SECONDS": "1"}
TOO_LONG = "longer than allowed|more computing time than allowed"


class Case(msgspec.Struct, frozen=True):
    """A file beyond a limit, and the expected message."""

    write: Callable[[Path, int, int], None]
    size: tuple[int, int]
    name: str
    output: str
    error: str


AS_SET_UP = {
    "ODS, read": Case(write_ods, (1_500, 10), "a.ods", "Csv", "larger than the converter can read. Save it as CSV"),
    "GML of many types, read": Case(
        write_gml, (MAX_LAYERS + 1, MAX_LAYERS + 1), "a.gml", "Kml", "more layers than can be converted. Split it"
    ),
}
IN_LITTLE_TIME = {
    "XLSX, read": Case(write_xlsx, (30_000, 10), "a.xlsx", "Csv", TOO_LONG),
    "XLSX, written": Case(write_csv, (30_000, 10), "a.csv", "Xlsx", TOO_LONG),
    "ODS, written": Case(write_csv, (30_000, 10), "a.csv", "Ods", TOO_LONG),
    "GML of types in turn, read": Case(write_interleaved_gml, (8_000, 100), "a.gml", "GeoPackage", TOO_LONG),
}

OF_MANY_RUNS = Case(write_gml, (MAX_DATASETS - 1, MAX_DATASETS - 1), "a.gml", "GeoPackage", "longer than allowed")


def refused(server: Server, client: Client, case: Case, folder: Path) -> None:
    """Send the file; the response states the problem, nothing is counted and nothing remains."""
    stored = outputs(server)
    path = folder / case.name
    case.write(path, *case.size)
    answer = client.convert(case.name, path.read_bytes(), outputFormat=case.output, sourceEpsg=4326)
    assert answer["success"] is False
    assert any(words in answer["error"] for words in case.error.split("|")), answer["error"]
    assert client.usage() == (0, 0)
    assert server.wait_until_idle() == []
    assert outputs(server) == stored


def outputs(server: Server) -> set[Path]:
    """The results in the store."""
    return {path for path in (server.data_dir / "store").rglob("*") if path.is_file()}


@pytest.fixture(scope="module")
def hurried(postgres: TestServer, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A server that gives each conversion a fifth of a second."""
    dsn = postgres.create_database(postgres.migrated_template())
    with running_server(tmp_path_factory.mktemp("hurried"), dsn, LITTLE_TIME) as running:
        yield running


@pytest.mark.parametrize("name", AS_SET_UP)
def test_what_no_setting_allows_is_refused(client: Client, server: Server, tmp_path: Path, name: str) -> None:
    """With default limits."""
    refused(server, client, AS_SET_UP[name], tmp_path)


@pytest.mark.parametrize("name", IN_LITTLE_TIME)
def test_what_takes_too_long_is_refused(hurried: Server, tmp_path: Path, name: str) -> None:
    """With less time, so that smaller files are too large."""
    with create_account(hurried, Terms(plan="team", plan_owner="user")) as client:
        refused(hurried, client, IN_LITTLE_TIME[name], tmp_path)


def test_many_short_runs_take_no_longer_than_a_file_may(database_url: str, tmp_path: Path) -> None:
    """Otherwise one file could hold a converter for hours, however short each of its runs."""
    with (
        running_server(tmp_path / "data", database_url, LITTLE_TIME_IN_ALL) as server,
        create_account(server, Terms(plan="team", plan_owner="user")) as client,
    ):
        refused(server, client, OF_MANY_RUNS, tmp_path)
