"""The record of a job, from which responses are built, immediately or later."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any

import msgspec

from service.errors import LayerCount, Limit
from service.ids import JobId
from service.jobs.lifecycle import Stage, Status


class Details(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Response details beyond the job's columns; stored with the job, so that a lost response can be repeated."""

    warnings: tuple[str, ...] = ()
    output_epsg: int | None = None
    truncation_report: dict[str, Any] | None = None
    limit: Limit | None = None
    needs_upgrade: bool = False
    payment_past_due: bool = False
    target_format: str | None = None
    layers: tuple[LayerCount, ...] = ()
    remaining_conversions: int | None = None
    remaining_bytes: int | None = None
    wallet_cents: int | None = None

    def encode(self) -> dict[str, Any]:
        """Return the details as JSON members; members with default values are omitted."""
        members: dict[str, Any] = msgspec.to_builtins(self)
        return members


class Job(msgspec.Struct, frozen=True, kw_only=True):
    """One job as stored: those columns of its row that the service reads."""

    id: JobId
    status: Status
    original_file_name: str
    input_format: str | None
    output_format: str | None
    input_size_bytes: int
    created_at: datetime
    attempt: int = 1
    completed_at: datetime | None = None
    feature_count: int | None = None
    geometry_type: str | None = None
    processing_time_ms: int | None = None
    output_size_bytes: int | None = None
    object_key: str | None = None
    download_name: str | None = None
    media_type: str | None = None
    expires_at: datetime | None = None
    error_message: str | None = None
    details: Details = Details()
    stage: Stage | None = None
    """What happened to it when it was last looked at, while it is open."""
    stage_share: float | None = None
    """Which share of its stage was done then."""


def job_from(row: Mapping[str, Any]) -> Job:
    """Read a job from a row of `job` and its `shown_status`."""
    return msgspec.convert({**row, "status": row["shown_status"], "details": row["details"] or {}}, Job)
