"""The stream of NATS JetStream between gateways and workers: its subjects, its consumers and how they are configured.

Each job has a subject of its own, of which the stream keeps one message; each lane has a consumer.
"""

from typing import Final
from uuid import UUID

from nats.js import api

from service.ids import JobId
from service.jobs.handover import LANES, SIZES

STREAM: Final = "GEOMILL"
_JOBS: Final = "geomill.convert"
ANY_JOB: Final = f"{_JOBS}.>"
"""The subjects of all jobs."""
ALL_LANES: Final = [f"{size}.{number}" for size in SIZES for number in range(LANES)]
STIRRED: Final = "geomill.stirred"
"""Lanes are announced on subjects that begin with it. Gateways of the previous version name the lane in the message."""
LIST_LANES: Final = f"$JS.API.CONSUMER.LIST.{STREAM}"
"""The subject on which the server tells of all consumers."""
MOST_UNACKNOWLEDGED: Final = 100_000
_SAME_NAME_SECONDS: Final = 5.0
ANNOUNCED: Final = api.RePublish(
    src=f"{_JOBS}.*.*.*", dest=f"{STIRRED}.{{{{wildcard(1)}}}}.{{{{wildcard(2)}}}}", headers_only=True
)
"""The server announces the lane of each job that it has stored."""

CONFIG: Final = api.StreamConfig(
    name=STREAM,
    subjects=[ANY_JOB],
    retention=api.RetentionPolicy.WORK_QUEUE,
    storage=api.StorageType.FILE,
    discard=api.DiscardPolicy.NEW,
    discard_new_per_subject=True,
    max_msgs_per_subject=1,
    duplicate_window=_SAME_NAME_SECONDS,
    republish=ANNOUNCED,
)


def consumer(lane: str, lease_seconds: float) -> api.ConsumerConfig:
    """Return the configuration of the consumer of a lane: what shows no sign of life for a lease is delivered again.

    The server writes what workers have to no file, which would take a third of its CPU. If it forgets that, it delivers
    again what workers have, and they refuse it.
    """
    return api.ConsumerConfig(
        durable_name=name_of(lane),
        filter_subject=f"{_JOBS}.{lane}.*",
        ack_policy=api.AckPolicy.EXPLICIT,
        ack_wait=lease_seconds,
        max_ack_pending=MOST_UNACKNOWLEDGED,
        mem_storage=True,
    )


def name_of(lane: str) -> str:
    """Return the name of the consumer of a lane."""
    return lane.replace(".", "-")


def next_of(lane: str) -> str:
    """Return the subject on which the server is asked for the next messages of a lane."""
    return f"$JS.API.CONSUMER.MSG.NEXT.{STREAM}.{name_of(lane)}"


def subject_of(lane: str, job_id: JobId) -> str:
    """Return the subject of a job."""
    return f"{_JOBS}.{lane}.{job_id}"


def lane_in(subject: str) -> str:
    """Return the lane of the job with this subject."""
    return subject.removeprefix(f"{_JOBS}.").rpartition(".")[0]


def job_in(subject: str) -> JobId | None:
    """Return the job with this subject; None if it names none."""
    try:
        return JobId(UUID(subject.rpartition(".")[2]))
    except ValueError:
        return None
