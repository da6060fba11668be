"""A request belongs to its caller's trace: in the log, in its response and at the collector."""

import re
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
from opentelemetry.proto.trace.v1.trace_pb2 import Span, Status

from service.accounts.administration import Terms
from tests.support.collector import Collector, attributes_of, running_collector
from tests.support.data import lakes
from tests.support.patience import wait_until
from tests.support.server import Client, Server, create_account, running_server

TRACE = "4bf92f3577b34da6a3ce929d0e0e4736"
CALLER = "00f067aa0ba902b7"
TRACEPARENT = f"00-{TRACE}-{CALLER}-01"
POINTS = b"name,lon,lat\nLadoga,31,60\n"
TEAM = Terms(plan="team", plan_owner="organization")


def test_an_answer_names_a_span_of_the_callers_trace(server: Server) -> None:
    """The same trace and sampling decision, a new span."""
    answered = httpx.get(f"{server.url}/healthz", headers={"traceparent": TRACEPARENT}).headers["traceparent"]
    assert re.fullmatch(f"00-{TRACE}-[0-9a-f]{{16}}-01", answered)
    assert CALLER not in answered


@pytest.mark.parametrize("given", [None, "nonsense", f"00-{'0' * 32}-{CALLER}-01", TRACEPARENT.upper()])
def test_a_request_without_a_trace_begins_one(server: Server, given: str | None) -> None:
    """So does one with a malformed header."""
    headers = {"traceparent": given} if given else {}
    answers = [httpx.get(f"{server.url}/healthz", headers=headers).headers["traceparent"] for _ in range(2)]
    assert all(re.fullmatch("00-[0-9a-f]{32}-[0-9a-f]{16}-00", answer) for answer in answers)
    assert answers[0][:35] != answers[1][:35]


def test_the_log_of_a_request_and_its_job_names_the_trace(client: Client) -> None:
    """Every line."""
    trace = "a" * 32

    def traced(server: Server) -> list[str]:
        return [event["trace_id"] for event in server.events("request.finished") if event["trace_id"] == trace]

    job_id = client.convert("a.geojson", lakes(), headers={"traceparent": f"00-{trace}-{CALLER}-01"})["jobId"]
    for name in ("job.admitted", "job.completed"):
        [event] = [event for event in client.server.events(name) if event["job_id"] == job_id]
        assert event["trace_id"] == trace
    wait_until(lambda: traced(client.server))  # the line is written once the answer is
    assert traced(client.server) == [trace]


@pytest.fixture
def collector() -> Iterator[Collector]:
    """A running collector."""
    with running_collector() as running:
        yield running


def test_a_collector_is_sent_what_a_conversion_spent_its_time_on(
    tmp_path: Path, database_url: str, collector: Collector
) -> None:
    """The request within the caller's span, every stage within the request, and a run beside what it was held for."""
    settings = {"GEOMILL_TRACES_URL": collector.url}
    with running_server(tmp_path, database_url, settings) as server, create_account(server, TEAM) as client:
        response = client.post(
            "/api/geo/convert/file",
            files={"file": ("a.csv", POINTS)},
            data={"sourceEpsg": "4326"},
            headers={"traceparent": TRACEPARENT},
        )
        assert response.json()["success"]
        broken = client.convert("broken.kml", b"<kml><Document><Placemark></kml>")
        assert not broken["success"]
        assert server.stop() == 0
        assert "detach" not in server.log.read_text(encoding="utf-8")
    spans = {span.name: span for span in collector.spans if span.trace_id.hex() == TRACE}
    request = spans.pop("POST /api/geo/convert/file")
    assert request.parent_span_id.hex() == CALLER
    assert response.headers["traceparent"] == f"00-{TRACE}-{request.span_id.hex()}-01"
    del spans["ask"]
    within = {name: spans.pop(name) for name in ("inspecting", "planning", "converting", "verifying", "run")}
    assert set(spans) == {"receive", "detect", "admit", "wait", "convert", "pack", "secure", "store", "settle"}
    assert {span.parent_span_id for span in spans.values()} == {request.span_id}
    assert {span.parent_span_id for span in within.values()} == {spans["convert"].span_id}
    about_job = {"job_id": response.json()["jobId"]}
    assert attributes_of(spans.pop("receive")) == {}  # which precedes the job
    assert attributes_of(spans.pop("convert")) == about_job | {"input": "csv", "output": "geojson"}
    assert attributes_of(within.pop("run")) == about_job | {"program": "ogr2ogr", "part": "inspecting"}
    assert all(attributes_of(span) == about_job for span in (*spans.values(), *within.values()))
    failed = [one for one in collector.spans if attributes_of(one).get("job_id") == broken["jobId"]]
    states = {span.name: span.status.code == Status.STATUS_CODE_ERROR for span in failed}
    assert states["convert"]
    assert states["inspecting"]


def test_a_trace_names_what_a_conversion_asked_and_ran(tmp_path: Path, database_url: str, collector: Collector) -> None:
    """Questions to a run that is held open are within the part that asks them, and each run names its program."""
    settings = {"GEOMILL_TRACES_URL": collector.url}
    with running_server(tmp_path, database_url, settings) as server, create_account(server, TEAM) as client:
        workbook = client.convert("a.csv", POINTS, sourceEpsg="4326", outputFormat="Xlsx")["jobId"]
        columns = client.convert("a.geojson", lakes(), outputFormat="GeoParquet")["jobId"]
        assert server.stop() == 0
    assert {("inspecting", "load"), ("converting", "sheets"), ("verifying", "count")} <= questions(collector, workbook)
    ran = {(run["program"], run["part"]) for run in map(attributes_of, spans_of(collector, columns, "run"))}
    assert ("ogr2ogr", "inspecting") in ran
    assert ("parquet_writing", "converting") in ran


def spans_of(collector: Collector, job_id: str, name: str) -> list[Span]:
    """The spans of a job that have this name."""
    return [span for span in collector.spans if span.name == name and attributes_of(span).get("job_id") == job_id]


def questions(collector: Collector, job_id: str) -> set[tuple[str, str | int]]:
    """What runs were asked for a job, and the name of the span within which they were."""
    named = {span.span_id: span.name for span in collector.spans}
    asked = spans_of(collector, job_id, "ask")
    return {(named[span.parent_span_id], attributes_of(span)["question"]) for span in asked}


def test_a_collector_that_is_away_stops_nothing(tmp_path: Path, database_url: str) -> None:
    """Conversions succeed, and the service shuts down in order."""
    settings = {"GEOMILL_TRACES_URL": "http://127.0.0.1:9/v1/traces"}
    with running_server(tmp_path, database_url, settings) as server, create_account(server, TEAM) as client:
        assert client.convert("a.geojson", lakes())["success"]
        assert server.stop() == 0
