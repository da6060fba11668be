"""The metrics count what happened (interface 10)."""

import http.client
import signal
import time
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from functools import partial
from pathlib import Path
from typing import TypeAlias
from urllib.parse import urlsplit

import httpx
import pytest
from prometheus_client.parser import text_string_to_metric_families

from service.accounts.administration import Terms
from tests.support.data import lakes, lengthy
from tests.support.patience import wait_until
from tests.support.server import Client, Server, create_account, running_server

FILE = "/api/geo/convert/file"
TEAM = Terms(plan="team", plan_owner="organization")

Samples: TypeAlias = Mapping[tuple[str, frozenset[tuple[str, str]]], float]


def scrape(server: Server) -> Samples:
    """Every sample that the server exposes, by name and labels."""
    response = httpx.get(f"{server.url}/metrics")
    assert response.headers["content-type"].startswith("text/plain; version=")
    families = text_string_to_metric_families(response.text)
    return {(sample.name, frozenset(sample.labels.items())): sample.value for one in families for sample in one.samples}


def value(samples: Samples, name: str, **labels: str) -> float:
    """One sample; 0 if nothing was counted."""
    return samples.get((name, frozenset(labels.items())), 0.0)


Growth: TypeAlias = Callable[..., float]


@pytest.fixture
def growth(server: Server) -> Growth:
    """How much a sample has grown since the start of the test; what former tests began has ended."""
    assert server.wait_until_idle() == []
    before = scrape(server)

    def grown(name: str, **labels: str) -> float:
        return value(scrape(server), name, **labels) - value(before, name, **labels)

    return grown


def test_a_conversion_is_counted_at_every_stage(growth: Growth, client: Client) -> None:
    """The request, its job, its bytes, and the duration of each stage."""
    answer = client.convert("a.geojson", lakes())
    assert growth("geomill_request_seconds_count", method="POST", route=FILE, status="200") == 1
    assert growth("geomill_jobs_admitted_total", input="geojson") == 1
    assert growth("geomill_jobs_ended_total", outcome="completed") == 1
    assert growth("geomill_conversion_seconds_count", input="geojson", output="shapefile") == 1
    assert growth("geomill_input_bytes_total") == len(lakes())
    assert growth("geomill_output_bytes_total") == answer["outputSizeBytes"]
    assert growth("geomill_received_bytes_total") > len(lakes())
    assert growth("geomill_sent_bytes_total") > len(str(answer))
    assert growth("geomill_converter_runs_total", ending="ok") >= 1
    for stage in ("receive", "admit", "wait", "convert", "store", "settle"):
        assert growth("geomill_stage_seconds_count", stage=stage) == 1, stage
    for statement in ("admit", "settle"):
        assert growth("geomill_statement_seconds_count", statement=statement) == 1
    assert growth("geomill_storage_seconds_count", operation="put") == 1
    assert growth("geomill_storage_seconds_count", operation="link") == 1


def test_refusals_are_counted_by_what_refused(growth: Growth, new_client: Callable[..., Client]) -> None:
    """A plan limit, or the file itself, before or after admission."""
    poor = new_client("free")
    poor.convert("a.geojson", lakes() + b" " * 6_000_000)
    assert growth("geomill_jobs_refused_total", limit="fileSize") == 1
    poor.convert("a.unknown", b"x")
    assert growth("geomill_jobs_refused_total", limit="file") == 1
    poor.convert("a.geojson", b"{")
    assert growth("geomill_jobs_ended_total", outcome="rejected") == 1
    assert growth("geomill_jobs_ended_total", outcome="completed") == 0


def test_the_lag_of_the_event_loop_is_looked_at_all_the_time(growth: Growth) -> None:
    """Without any request for it."""
    wait_until(lambda: growth("geomill_event_loop_lag_seconds_count") >= 10)


def test_an_idle_server_wakes_up_less_often_than_it_counts_its_lag(server: Server) -> None:
    """It counts 20 times a second, and wakes up twice a second for periodic work, and for answers of the database."""

    def wakes() -> int:
        status = Path(f"/proc/{server.process.pid}/status").read_text(encoding="ascii")  # of its main thread
        return int(status.partition("\nvoluntary_ctxt_switches:")[2].split()[0])

    def counted() -> float:
        return value(scrape(server), "geomill_event_loop_lag_seconds_count")

    assert server.wait_until_idle() == []
    counts_before, wakes_before = counted(), wakes()
    time.sleep(4)  # a look would wake it up
    assert wakes() - wakes_before < (counted() - counts_before) / 2


def test_problems_are_counted_by_their_code(growth: Growth, server: Server) -> None:
    """For example, a request without a key."""
    httpx.post(server.url + FILE)
    assert growth("geomill_problems_total", code="missing_api_key") == 1
    assert growth("geomill_request_seconds_count", method="POST", route=FILE, status="401") == 1


def test_strangers_cannot_make_labels(growth: Growth, server: Server) -> None:
    """Invented methods and paths do not add time series."""
    address = urlsplit(server.url)
    for number in range(3):
        connection = http.client.HTTPConnection(str(address.hostname), address.port)
        connection.request(f"BREW{number}", f"/{number}")
        assert connection.getresponse().status == 404
        connection.close()
    assert growth("geomill_request_seconds_count", method="other", route="none", status="404") == 3


def test_what_is_under_way_is_shown_and_is_gone_in_the_end(tmp_path: Path, database_url: str) -> None:
    """With one converter, one file runs and others wait; they hold places and reservations until they end."""
    slow = lengthy(5_000)
    one = {"GEOMILL_CONVERTERS": "1", "GEOMILL_WAITING_ROOM": "7"}
    with running_server(tmp_path, database_url, one) as server, create_account(server, TEAM) as client:

        def shows(name: str, expected: float) -> bool:
            return value(scrape(server), name) == expected

        def shows_while_busy(name: str) -> bool:
            files = [("files", (f"{number}.geojson", slow)) for number in range(4)]
            client.post("/api/geo/convert/batch", files=files, headers={"Prefer": "respond-async"})
            return value(scrape(server), name) > 0

        for name in ("jobs_running", "jobs_waiting", "reservations", "seats_taken"):
            wait_until(partial(shows_while_busy, f"geomill_{name}"))
            assert value(scrape(server), "geomill_jobs_running") <= 1
        assert shows("geomill_converters", 1)
        assert shows("geomill_seats", 8)
        assert shows("geomill_requests_running", 1)
        for name in ("jobs_running", "jobs_waiting", "reservations", "seats_taken"):
            wait_until(partial(shows, f"geomill_{name}", 0))


def test_processes_that_share_a_directory_show_their_sum(tmp_path: Path, database_url: str) -> None:
    """Every process reports the sum.

    Counters of a process outlive it; gauges do not, whether it was stopped or killed.
    """
    settings = {"PROMETHEUS_MULTIPROC_DIR": str(tmp_path / "metrics"), "GEOMILL_CONVERTERS": "2"}
    (tmp_path / "store").mkdir()

    def start(name: str) -> AbstractContextManager[Server]:
        (tmp_path / name).mkdir()
        (tmp_path / name / "store").symlink_to(tmp_path / "store")
        return running_server(tmp_path / name, database_url, settings)

    def sums(server: Server) -> tuple[float, float]:
        samples = scrape(server)
        return value(samples, "geomill_jobs_ended_total", outcome="completed"), value(samples, "geomill_converters")

    with start("one") as one, create_account(one, TEAM) as client:
        assert client.convert("a.geojson", lakes())["success"]
        with start("two") as two, Client(two, client.account, client.key) as other:
            assert other.convert("a.geojson", lakes())["success"]
            assert sums(one) == sums(two) == (2, 4)
            two.stop(signal.SIGKILL)
        with start("three") as three:
            assert sums(one) == sums(three) == (2, 4)
            looks = value(scrape(one), "geomill_event_loop_lag_seconds_count")
            wait_until(lambda: value(scrape(three), "geomill_event_loop_lag_seconds_count") > looks)
        assert sums(one) == (2, 2)
