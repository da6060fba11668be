"""A job has one trace, wherever it is converted."""

import pytest
from opentelemetry.proto.trace.v1.trace_pb2 import Span

from tests.fleet.site import Site
from tests.fleet.test_roles import LARGE
from tests.support.collector import Collector, attributes_of
from tests.support.patience import wait_until

pytestmark = pytest.mark.xdist_group("fleet")
CALLER = "00f067aa0ba902b7"
POINTS = b"name,lon,lat\nLadoga,31,60\n"
ON_WORKER = {
    *("job", "wait", "convert", "inspecting", "planning", "converting", "verifying", "run", "ask"),
    *("pack", "secure", "store", "settle"),
}


def sent(collector: Collector, trace: str) -> dict[str, Span]:
    """The spans of a trace by name, once its request has ended and its job has."""

    def found() -> dict[str, Span]:
        return {span.name: span for span in collector.spans if span.trace_id.hex() == trace}

    wait_until(lambda: {"POST /api/geo/convert/file", "hand_over", "job"} <= found().keys())
    return found()


def test_a_worker_continues_the_trace_of_the_gateway(fleet: Site, collector: Collector) -> None:
    """Its spans are within the one in which the gateway handed the job over; each has the id of the job."""
    trace = "a" * 32
    with fleet.client() as client:
        headers = {"traceparent": f"00-{trace}-{CALLER}-01"}
        answer = client.convert("a.csv", POINTS, outputFormat="geojson", sourceEpsg="4326", headers=headers)
    spans = sent(collector, trace)
    job, handed_over = spans["job"], spans["hand_over"]
    assert job.parent_span_id == handed_over.span_id
    assert handed_over.parent_span_id == spans["POST /api/geo/convert/file"].span_id
    processes = collector.process_of
    assert processes[handed_over.span_id] == fleet.gateway.process.pid
    assert len({processes[spans[name].span_id] for name in ON_WORKER} - {fleet.gateway.process.pid}) == 1
    assert attributes_of(job) == {"job_id": answer["jobId"], "attempt": 2}
    for name in ON_WORKER | {"admit", "hand_over"}:
        assert attributes_of(spans[name])["job_id"] == answer["jobId"], name
    lines = [line for worker in fleet.workers for line in worker.events("job.completed")]
    assert [line["trace_id"] for line in lines if line["job_id"] == answer["jobId"]] == [trace]


def test_a_promised_job_takes_its_trace_along_with_its_input(fleet: Site, collector: Collector) -> None:
    """The request has ended long before; the input is stored by the gateway and fetched by the worker."""
    trace = "b" * 32
    headers = {"traceparent": f"00-{trace}-{CALLER}-01", "Prefer": "respond-async"}
    with fleet.client() as client:
        with fleet.frozen_workers():
            accepted = client.convert("large.geojson", LARGE, outputFormat="csv", headers=headers)
        assert client.wait_for(accepted["jobId"], 120)["status"] == "Completed"
    spans = sent(collector, trace)
    assert spans["job"].parent_span_id == spans["hand_over"].span_id
    assert spans["store_input"].parent_span_id == spans["hand_over"].span_id
    assert spans["fetch"].parent_span_id == spans["job"].span_id
