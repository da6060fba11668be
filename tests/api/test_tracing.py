"""A request belongs to its caller's trace: in the log, in its response and at the collector."""

import re
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import cast

import httpx
import pytest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.trace.v1.trace_pb2 import Span

from service.accounts.administration import Terms
from tests.support.data import lakes
from tests.support.patience import PATIENCE_SECONDS
from tests.support.server import Client, Server, create_account, running_server

TRACE = "4bf92f3577b34da6a3ce929d0e0e4736"
CALLER = "00f067aa0ba902b7"
TRACEPARENT = f"00-{TRACE}-{CALLER}-01"
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
    give_up_at = time.monotonic() + PATIENCE_SECONDS
    while not (finished := traced(client.server)) and time.monotonic() < give_up_at:
        time.sleep(0.01)  # the line is written once the answer is
    assert finished == [trace]


class Collector(HTTPServer):
    """Receives traces by OTLP over HTTP."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Take)
        self.spans: list[Span] = []


class _Take(BaseHTTPRequestHandler):
    def do_POST(self) -> None:
        message = ExportTraceServiceRequest.FromString(self.rfile.read(int(self.headers["Content-Length"])))
        for resource in message.resource_spans:
            cast("Collector", self.server).spans += [span for scope in resource.scope_spans for span in scope.spans]
        self.send_response(200)
        self.end_headers()

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def collector() -> Iterator[Collector]:
    """A running collector."""
    with Collector() as running:
        thread = threading.Thread(target=running.serve_forever)
        thread.start()
        yield running
        running.shutdown()
        thread.join()


def test_a_collector_is_sent_what_a_conversion_spent_its_time_on(
    tmp_path: Path, database_url: str, collector: Collector
) -> None:
    """The request within the caller's span, and every stage and converter run within the request."""
    settings = {"GEOMILL_TRACES_URL": f"http://127.0.0.1:{collector.server_port}/v1/traces"}
    with running_server(tmp_path, database_url, settings) as server, create_account(server, TEAM) as client:
        response = client.post(
            "/api/geo/convert/file", files={"file": ("a.geojson", lakes())}, headers={"traceparent": TRACEPARENT}
        )
        assert response.json()["success"]
        assert server.stop() == 0
    spans = {span.name: span for span in collector.spans if span.trace_id.hex() == TRACE}
    request = spans.pop("POST /api/geo/convert/file")
    assert request.parent_span_id.hex() == CALLER
    assert response.headers["traceparent"] == f"00-{TRACE}-{request.span_id.hex()}-01"
    run = spans.pop("run")
    assert set(spans) == {"receive", "admit", "wait", "convert", "store", "settle"}
    assert {span.parent_span_id for span in spans.values()} == {request.span_id}
    assert run.parent_span_id == spans["convert"].span_id
    attributes = {attribute.key: attribute.value.string_value for attribute in spans["convert"].attributes}
    assert attributes == {"input": "geojson", "output": "shapefile"}


def test_a_collector_that_is_away_stops_nothing(tmp_path: Path, database_url: str) -> None:
    """Conversions succeed, and the service shuts down in order."""
    settings = {"GEOMILL_TRACES_URL": "http://127.0.0.1:9/v1/traces"}
    with running_server(tmp_path, database_url, settings) as server, create_account(server, TEAM) as client:
        assert client.convert("a.geojson", lakes())["success"]
        assert server.stop() == 0
