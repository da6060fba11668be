"""Renders jobs as responses: the first and repeated responses of a conversion, and that of the job itself."""

from collections.abc import Sequence
from http import HTTPStatus
from typing import TypeVar

import msgspec
from msgspec import UNSET, UnsetType
from starlette.requests import Request
from starlette.responses import Response

from service.dataloss.rules import Report
from service.http.api.schemas import (
    BatchEntry,
    BatchResult,
    ConversionResult,
    JobProgress,
    JobRecord,
    Outcome,
    RecentJobs,
    json_response,
    timestamp,
)
from service.http.api.urls import JOBS, address_of, status_path
from service.jobs.lifecycle import ENDED, Status
from service.jobs.records import Details, Job
from service.metering.balance import Balance
from service.storage.port import Link
from service.usecases.jobs import LinkedJob
from service.usecases.read_balance import Left

_T = TypeVar("_T")


def conversion_result(request: Request, linked: LinkedJob, notes: Sequence[str], left: Left | None) -> ConversionResult:
    """Render an ended job as the response of its conversion, with the balance if given (interface 2.1, 4.1).

    `notes` are warnings about the request itself.
    """
    job = linked.job
    return ConversionResult(
        **msgspec.structs.asdict(_outcome(request, linked, notes)),
        input_format=_or_absent(job.input_format),
        output_format=_or_absent(job.output_format),
        geometry_type=_or_absent(job.geometry_type),
        remaining_conversions=left.remaining_conversions if left else None,
        remaining_bytes=left.remaining_bytes if left else None,
        new_wallet_balance_cents=left.wallet_cents if left else None,
        error=_or_absent(job.error_message),
    )


def _outcome(request: Request, linked: LinkedJob, notes: Sequence[str]) -> Outcome:
    job, details = linked.job, linked.job.details
    return Outcome(
        success=job.status in {Status.COMPLETED, Status.EXPIRED},
        job_id=str(job.id),
        status=job.status,
        download_url=_url(request, linked.link),
        download_expires_at=_expiry(linked.link),
        feature_count=_or_absent(job.feature_count),
        processing_time_ms=_or_absent(job.processing_time_ms),
        output_size_bytes=_or_absent(job.output_size_bytes),
        truncation_report=_losses(details),
        needs_upgrade=details.needs_upgrade,
        limit=details.limit,
        payment_past_due=details.payment_past_due,
        multi_layer=bool(details.layers),
        target_format=_or_absent(details.target_format),
        layers=details.layers or UNSET,
        output_epsg=details.output_epsg,
        warnings=(*notes, *details.warnings),
    )


def batch_result(request: Request, jobs: Sequence[LinkedJob], balance: Balance, notes: Sequence[str]) -> BatchResult:
    """Render ended jobs as the response of their batch; `notes` are warnings about the request itself."""
    entries = tuple(_batch_entry(request, linked, notes) for linked in jobs)
    return BatchResult(
        success=any(entry.success for entry in entries),
        results=entries,
        remaining_conversions=balance.remaining_conversions,
        remaining_bytes=balance.remaining_bytes,
        new_wallet_balance_cents=balance.wallet_cents,
    )


def _batch_entry(request: Request, linked: LinkedJob, notes: Sequence[str]) -> BatchEntry:
    return BatchEntry(
        **msgspec.structs.asdict(_outcome(request, linked, notes)),
        file_name=linked.job.original_file_name,
        error=linked.job.error_message,
    )


def accepted(request: Request, job: Job) -> Response:
    """Respond that a job was accepted, with its address (RFC 7240, interface 3)."""
    location = address_of(request, status_path(job.id))
    return json_response(job_record(request, LinkedJob(job, None)), HTTPStatus.ACCEPTED, _applied(location))


def accepted_batch(request: Request, jobs: Sequence[LinkedJob]) -> Response:
    """Respond which files of a batch were accepted or refused, or have been converted already."""
    location = f"{address_of(request, JOBS)}?limit={len(jobs)}"
    records = tuple(job_record(request, linked) for linked in jobs)
    return json_response(RecentJobs(success=True, jobs=records), HTTPStatus.ACCEPTED, _applied(location))


def of_job(request: Request, job: Job, notes: Sequence[str]) -> dict[str, str]:
    """Return the headers of a response about one job: its id, its record, and how many warnings there are."""
    job_id = str(job.id)
    address = address_of(request, status_path(job_id))
    return {
        "Geomill-Job-Id": job_id,
        "Geomill-Warnings": str(len(notes) + len(job.details.warnings)),
        "Link": f'<{address}>; rel="describedby"',
    }


def _applied(location: str) -> dict[str, str]:
    return {"Location": location, "Preference-Applied": "respond-async"}


def job_record(request: Request, linked: LinkedJob) -> JobRecord:
    """Render a job as the job endpoints show it (interface 2.3)."""
    job = linked.job
    return JobRecord(
        job_id=str(job.id),
        original_file_name=job.original_file_name,
        status=job.status,
        download_url=_url(request, linked.link),
        download_expires_at=_expiry(linked.link),
        feature_count=_or_absent(job.feature_count),
        geometry_type=_or_absent(job.geometry_type),
        input_size_bytes=job.input_size_bytes,
        output_size_bytes=_or_absent(job.output_size_bytes),
        processing_time_ms=_or_absent(job.processing_time_ms),
        created_at=timestamp(job.created_at),
        completed_at=timestamp(job.completed_at) if job.completed_at is not None else UNSET,
        error_message=_or_absent(job.error_message),
        progress=UNSET if job.status in ENDED else _progress(job),
        warnings=job.details.warnings or UNSET,
        truncation_report=_or_absent(_losses(job.details)),
    )


def _progress(job: Job) -> JobProgress:
    if job.stage is None:
        return JobProgress(stage="waiting")
    return JobProgress(stage=job.stage, share=_or_absent(job.stage_share))


def _losses(details: Details) -> Report | None:
    kept = details.truncation_report
    return msgspec.convert(kept, Report) if kept is not None else None


def _or_absent(value: _T | None) -> _T | UnsetType:
    return UNSET if value is None else value


def _url(request: Request, link: Link | None) -> str | UnsetType:
    if link is None:
        return UNSET
    return address_of(request, link.url) if link.url.startswith("/") else link.url


def _expiry(link: Link | None) -> str | UnsetType:
    return UNSET if link is None else timestamp(link.expires_at)
