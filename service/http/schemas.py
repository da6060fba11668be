"""The answers on the wire: camelCase, UNSET is absent, None is null (specification 2, contract 2)."""

from datetime import UTC, datetime
from typing import Any

import msgspec
from msgspec import UNSET, UnsetType
from starlette.responses import Response

from service.dataloss.rules import Report
from service.errors import LayerCount, Limit
from service.metering.plans import Plan


class ConversionResult(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """The answer of a single-file conversion (specification 2.1)."""

    success: bool
    job_id: str
    status: str
    input_format: str | UnsetType = UNSET
    output_format: str | UnsetType = UNSET
    download_url: str | UnsetType = UNSET
    download_expires_at: str | UnsetType = UNSET
    feature_count: int | UnsetType = UNSET
    geometry_type: str | UnsetType = UNSET
    processing_time_ms: int | UnsetType = UNSET
    output_size_bytes: int | UnsetType = UNSET
    remaining_conversions: int | None = None
    remaining_bytes: int | None = None
    new_wallet_balance_cents: int | None = None
    truncation_report: dict[str, Any] | None = None
    error: str | UnsetType = UNSET
    needs_upgrade: bool = False
    limit: Limit | None = None
    payment_past_due: bool = False
    multi_layer: bool = False
    target_format: str | UnsetType = UNSET
    layers: tuple[LayerCount, ...] | UnsetType = UNSET
    output_epsg: int | None = None
    warnings: tuple[str, ...] = ()


class BatchEntry(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """What became of one file of a batch (specification 2.2), with the flags that a single answer has."""

    file_name: str
    success: bool
    job_id: str
    status: str
    download_url: str | UnsetType = UNSET
    download_expires_at: str | UnsetType = UNSET
    feature_count: int | UnsetType = UNSET
    output_size_bytes: int | UnsetType = UNSET
    processing_time_ms: int | UnsetType = UNSET
    truncation_report: dict[str, Any] | None = None
    error: str | None = None
    needs_upgrade: bool = False
    limit: Limit | None = None
    payment_past_due: bool = False
    multi_layer: bool = False
    target_format: str | UnsetType = UNSET
    layers: tuple[LayerCount, ...] | UnsetType = UNSET
    output_epsg: int | None = None
    warnings: tuple[str, ...] = ()


class BatchResult(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """The answer of a batch (specification 4.2)."""

    success: bool
    results: tuple[BatchEntry, ...]
    remaining_conversions: int | None
    remaining_bytes: int | None
    new_wallet_balance_cents: int | None


class JobRecord(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """One job (specification 2.3)."""

    job_id: str
    original_file_name: str
    status: str
    download_url: str | UnsetType = UNSET
    download_expires_at: str | UnsetType = UNSET
    feature_count: int | UnsetType = UNSET
    geometry_type: str | UnsetType = UNSET
    input_size_bytes: int
    output_size_bytes: int | UnsetType = UNSET
    processing_time_ms: int | UnsetType = UNSET
    created_at: str
    completed_at: str | UnsetType = UNSET
    error_message: str | UnsetType = UNSET


class RecentJobs(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """The answer of the recent-jobs list (specification 4.7)."""

    success: bool
    jobs: tuple[JobRecord, ...]


class PlanList(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """The answer of the plan list (specification 4.5)."""

    currency: str
    max_file_size_bytes: int
    plans: tuple[Plan, ...]


class Analysis(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """The answer of the pre-flight analysis (specification 4.4)."""

    success: bool
    report: Report | UnsetType = UNSET
    error: str | UnsetType = UNSET


def timestamp(moment: datetime) -> str:
    """Return `moment` as RFC 3339 in UTC, with milliseconds and Z (contract 2)."""
    return moment.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def json_response(answer: msgspec.Struct, status: int = 200, headers: dict[str, str] | None = None) -> Response:
    """Return `answer` as JSON."""
    return Response(msgspec.json.encode(answer), status, headers, media_type="application/json")
