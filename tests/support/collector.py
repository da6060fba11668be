"""A trace collector, and what it was sent."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import cast

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.trace.v1.trace_pb2 import Span


class Collector(HTTPServer):
    """Takes traces by OTLP over HTTP."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Take)
        self.url = f"http://127.0.0.1:{self.server_port}/v1/traces"
        self.spans: list[Span] = []
        self.process_of: dict[bytes, int] = {}
        """The process that recorded each span."""


class _Take(BaseHTTPRequestHandler):
    def do_POST(self) -> None:
        message = ExportTraceServiceRequest.FromString(self.rfile.read(int(self.headers["Content-Length"])))
        collector = cast("Collector", self.server)
        for resource in message.resource_spans:
            [process] = [one.value.int_value for one in resource.resource.attributes if one.key == "process.pid"]
            spans = [span for scope in resource.scope_spans for span in scope.spans]
            collector.process_of |= {span.span_id: process for span in spans}
            collector.spans += spans
        self.send_response(200)
        self.end_headers()

    def log_message(self, *_: object) -> None:
        pass


@contextmanager
def running_collector() -> Iterator[Collector]:
    """Run a collector until the end of the block."""
    with Collector() as running:
        thread = threading.Thread(target=running.serve_forever)
        thread.start()
        yield running
        running.shutdown()
        thread.join()


def attributes_of(span: Span) -> dict[str, str | int]:
    """The attributes of a span that are texts or numbers."""
    return {one.key: one.value.string_value or one.value.int_value for one in span.attributes}
