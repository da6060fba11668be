"""The metrics: all of them, in one table. What they mean to an operator is in `docs/operating.md`.

Labels come from closed sets of ours, never from a client: routes are templates, formats are tokens.

How they are shown, and shared between processes, is in `exposition`.
"""

from prometheus_client import Counter, Gauge, Histogram

from service.telemetry.build import VERSION
from service.telemetry.shared_directory import prepare

prepare()  # before the first metric, which looks for it

_QUICK = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 1, 5)
_WAIT = (0.001, 0.005, 0.025, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 120)
_REQUEST = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 120)
_LAG = (
    *(0.001, 0.0015, 0.002, 0.003, 0.004, 0.005, 0.006, 0.008, 0.01, 0.0125, 0.015, 0.02, 0.025, 0.03, 0.04, 0.05),
    *(0.075, 0.1, 0.25, 1, 5),
)
_LONG = (0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 120)

BUILD_INFO = Gauge("geomill_build_info", "Which version runs.", ["version"], multiprocess_mode="mostrecent")
BUILD_INFO.labels(VERSION).set(1)

REQUEST_SECONDS = Histogram(
    "geomill_request_seconds", "Requests by how long they took.", ["method", "route", "status"], buckets=_REQUEST
)
EVENT_LOOP_LAG_SECONDS = Histogram(
    "geomill_event_loop_lag_seconds", "How late the event loop is, looked at 20 times a second.", buckets=_LAG
)
TASKS = Gauge("geomill_tasks", "Tasks of the event loop.", multiprocess_mode="livesum")
REQUESTS_RUNNING = Gauge("geomill_requests_running", "Requests under way.", multiprocess_mode="livesum")
RECEIVED_BYTES = Counter("geomill_received_bytes", "Bytes of request bodies.")
SENT_BYTES = Counter("geomill_sent_bytes", "Bytes of answers' bodies.")
PROBLEMS = Counter("geomill_problems", "Requests answered with a problem.", ["code"])

JOBS_ADMITTED = Counter("geomill_jobs_admitted", "Files that were admitted.", ["input"])
JOBS_REFUSED = Counter("geomill_jobs_refused", "Files that were refused before anything was reserved.", ["limit"])
JOBS_ENDED = Counter("geomill_jobs_ended", "Admitted files by how they ended.", ["outcome"])
JOBS_WAITING = Gauge("geomill_jobs_waiting", "Files that wait for a converter.", multiprocess_mode="livesum")
JOBS_RUNNING = Gauge("geomill_jobs_running", "Files that have a converter.", multiprocess_mode="livesum")
JOBS_SUSPENDED = Gauge(
    "geomill_jobs_suspended", "Files that have lent their converter to another account.", multiprocess_mode="livesum"
)
SUSPENSIONS = Counter("geomill_suspensions", "Times that a file lent its converter to another account.")
QUEUE_AGE_SECONDS = Gauge(
    "geomill_queue_age_seconds",
    "How long the file that waits longest has waited for a converter.",
    multiprocess_mode="livemax",
)
STAGE_SECONDS = Histogram("geomill_stage_seconds", "How long each stage of a file took.", ["stage"], buckets=_WAIT)
CONVERSION_SECONDS = Histogram(
    "geomill_conversion_seconds", "Conversions by how long they took.", ["input", "output"], buckets=_LONG
)
INPUT_BYTES = Counter("geomill_input_bytes", "Bytes of files that were converted.")
OUTPUT_BYTES = Counter("geomill_output_bytes", "Bytes of results.")

CONVERTER_RUNS = Counter("geomill_converter_runs", "Runs of converters by how they ended.", ["ending"])
CONVERTER_RETRIES = Counter("geomill_converter_retries", "Files begun anew because a run ended by a signal.")
CONVERTERS = Gauge("geomill_converters", "Files that can be converted at once.", multiprocess_mode="livesum")
SEATS = Gauge("geomill_seats", "Files that may be under way, waiting ones included.", multiprocess_mode="livesum")
SEATS_TAKEN = Gauge("geomill_seats_taken", "Seats that are taken.", multiprocess_mode="livesum")

RESERVATIONS = Gauge(
    "geomill_reservations", "Jobs of all processes that hold a reservation.", multiprocess_mode="mostrecent"
)
UPKEEP_FAILURES = Counter("geomill_upkeep_failures", "Chores that failed and will be tried again.", ["chore"])
STATEMENT_SECONDS = Histogram(
    "geomill_statement_seconds", "Statements of the database by how long they took.", ["statement"], buckets=_QUICK
)
STORAGE_SECONDS = Histogram(
    "geomill_storage_seconds", "Uses of the store of results by how long they took.", ["operation"], buckets=_WAIT
)
STORAGE_FAILURES = Counter("geomill_storage_failures", "Failures of the store of results.", ["fault"])


def observe_statement(name: str, seconds: float) -> None:
    """Count a statement of the database."""
    STATEMENT_SECONDS.labels(name).observe(seconds)
