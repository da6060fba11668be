"""All metrics, in one table; docs/operating.md explains them to operators.

Label values come from closed sets, never from a client: routes are templates, formats are tokens.
`exposition` exposes the metrics and combines those of several processes.
"""

from collections.abc import Iterable
from functools import lru_cache, partial
from typing import TypeVar

from prometheus_client import Gauge, disable_created_metrics

from service.telemetry.build import VERSION
from service.telemetry.instruments import Counter, Histogram
from service.telemetry.shared_directory import prepare

Metric = TypeVar("Metric", Counter, Histogram)

prepare()  # before the first metric, which expects the directory
disable_created_metrics()  # a line for each label set that nothing reads, and that several processes never have

_QUICK = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 1, 5)
_WAIT = (0.001, 0.005, 0.025, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 120)
_REQUEST = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 120)
_LAG = (
    *(0.001, 0.0015, 0.002, 0.003, 0.004, 0.005, 0.006, 0.008, 0.01, 0.0125, 0.015, 0.02, 0.025, 0.03, 0.04, 0.05),
    *(0.075, 0.1, 0.25, 1, 5),
)
_LONG = (0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 120)

_summed = partial(Gauge, multiprocess_mode="livesum")
_newest = partial(Gauge, multiprocess_mode="mostrecent")

BUILD_INFO = _newest("geomill_build_info", "The running version.", ["version"])
BUILD_INFO.labels(VERSION).set(1)

PROCESSES = _summed("geomill_processes", "Serving processes.")
REQUEST_SECONDS = Histogram(
    "geomill_request_seconds", "Duration of requests.", ["method", "route", "status"], buckets=_REQUEST
)
EVENT_LOOP_LAG_SECONDS = Histogram(
    "geomill_event_loop_lag_seconds", "Lag of the event loop, for each twentieth of a second.", buckets=_LAG
)
TASKS = _summed("geomill_tasks", "Tasks of the event loop.")
REQUESTS_RUNNING = _summed("geomill_requests_running", "Requests in progress.")
RECEIVED_BYTES = Counter("geomill_received_bytes", "Bytes of request bodies.")
SENT_BYTES = Counter("geomill_sent_bytes", "Bytes of response bodies.")
PROBLEMS = Counter("geomill_problems", "Problem responses.", ["code"])

JOBS_ADMITTED = Counter("geomill_jobs_admitted", "Files admitted.", ["input"])
JOBS_REFUSED = Counter("geomill_jobs_refused", "Files refused before anything was reserved.", ["limit"])
JOBS_ENDED = Counter("geomill_jobs_ended", "Admitted files by outcome.", ["outcome"])
JOBS_WAITING = _summed("geomill_jobs_waiting", "Files waiting for a converter.")
JOBS_RUNNING = _summed("geomill_jobs_running", "Files that have a converter.")
JOBS_SUSPENDED = _summed("geomill_jobs_suspended", "Files suspended while another account uses their converter.")
SUSPENSIONS = Counter("geomill_suspensions", "Times that a file was suspended in favor of another account.")
QUEUE_AGE_SECONDS = Gauge(
    "geomill_queue_age_seconds", "How long the file at the head of the queue has waited.", multiprocess_mode="livemax"
)
STAGE_SECONDS = Histogram("geomill_stage_seconds", "Duration of each stage of a file.", ["stage"], buckets=_WAIT)
CONVERSION_SECONDS = Histogram(
    "geomill_conversion_seconds", "Duration of completed conversions.", ["input", "output"], buckets=_LONG
)
INPUT_BYTES = Counter("geomill_input_bytes", "Bytes of converted files.")
OUTPUT_BYTES = Counter("geomill_output_bytes", "Bytes of results.")

FLEET_JOBS_WAITING = _newest("geomill_fleet_jobs_waiting", "Jobs of all gateways that no worker has begun.")
FLEET_QUEUE_AGE_SECONDS = _newest("geomill_fleet_queue_age_seconds", "How long the first of these jobs has waited.")
FLEET_CONVERTER_SECONDS_WAITING = _newest(
    "geomill_fleet_converter_seconds_waiting", "How long one converter would take for all of these jobs."
)
FLEET_WORKERS_PAUSED = _newest("geomill_fleet_workers_paused", "Workers that take no jobs for now.")
FLEET_DELIVERIES = Counter("geomill_fleet_deliveries", "Jobs that the queue has brought to this worker.", ["delivery"])
FLEET_SUSPECTS = Counter("geomill_fleet_suspects", "Jobs run again because a worker has died with them.")
FLEET_WORKERS_LOST = Counter("geomill_fleet_workers_lost", "Workers that ended without leaving, or froze for a lease.")
FLEET_HANDED_OVER_AGAIN = Counter("geomill_fleet_handed_over_again", "Jobs that were missing in the queue.")

CONVERTER_RUNS = Counter("geomill_converter_runs", "Converter runs by ending.", ["ending"])
CONVERTER_RETRIES = Counter("geomill_converter_retries", "Files restarted because a signal ended a run.")
CONVERTERS = _summed("geomill_converters", "Files that can be converted at the same time.")
SEATS = _summed("geomill_seats", "Files that may be in progress, including waiting ones.")
SEATS_TAKEN = _summed("geomill_seats_taken", "Files in progress, including waiting ones.")
TEMPORARY_BYTES = _summed("geomill_temporary_bytes", "Disk space for uploads, what they unpack to and results.")

RESERVATIONS = _newest("geomill_reservations", "Jobs of all processes that hold a reservation.")
ALLOWANCES_NEARLY_USED = Counter(
    "geomill_allowances_nearly_used",
    "Allowances of accounts and organizations that were nearly used up.",
    ["allowance"],
)
UPKEEP_FAILURES = Counter("geomill_upkeep_failures", "Maintenance tasks that failed and will be retried.", ["chore"])
CLOCK_AHEAD_SECONDS = _newest(
    "geomill_clock_ahead_seconds",
    "How far the clock of this host is ahead of the database's; negative if it is behind.",
)
STATEMENT_SECONDS = Histogram(
    "geomill_statement_seconds", "Duration of database statements.", ["statement"], buckets=_QUICK
)
STORAGE_SECONDS = Histogram(
    "geomill_storage_seconds", "Duration of operations of the store of results.", ["operation"], buckets=_WAIT
)
STORAGE_FAILURES = Counter("geomill_storage_failures", "Failures of the store of results.", ["fault"])

FAMILIES: tuple[Counter | Gauge | Histogram, ...] = tuple(
    each for each in tuple(globals().values()) if isinstance(each, Counter | Gauge | Histogram)
)
"""Everything above."""


def start_at_zero(counter: Counter, values: Iterable[str]) -> None:
    """Expose a counter for each value of its label from the start: Prometheus sees no increase in a first 1."""
    for value in values:
        counter.labels(value)


def observe_statement(name: str, seconds: float) -> None:
    """Observe a database statement."""
    labeled(STATEMENT_SECONDS, name).observe(seconds)


def observe_request(method: str, route: str, status: int, seconds: float) -> None:
    """Observe a request."""
    labeled(REQUEST_SECONDS, method, route, status).observe(seconds)


@lru_cache(maxsize=2048)
def labeled(metric: Metric, *values: str | int) -> Metric:
    """Return the metric with these values of its labels, kept because the library's search costs more than a count."""
    return metric.labels(*values)
