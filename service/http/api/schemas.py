"""The JSON records of responses: camelCase, UNSET is absent, None is null (interface 2, 2.6).

Members that several responses share are defined first, once, with their meaning; the description of the interface is
generated from them.
"""

from datetime import UTC, datetime
from typing import Annotated

import msgspec
from msgspec import UNSET, Meta, UnsetType
from starlette.responses import Response

from service.dataloss.rules import Report
from service.errors import LayerCount, Limit
from service.jobs.lifecycle import Stage, Status
from service.metering.plans import Plan

JobId = Annotated[str, Meta(description="Identifies the job, to query its status.")]
FileName = Annotated[str, Meta(description="Name of the file as sent.")]
Moment = Annotated[str, Meta(description="RFC 3339, UTC, with milliseconds.", examples=["2026-05-04T10:30:00.125Z"])]
InputFormat = Annotated[str | UnsetType, Meta(description="Token of the detected format; absent if none was detected.")]
OutputFormat = Annotated[str | UnsetType, Meta(description="Token of the format produced or requested.")]
DownloadUrl = Annotated[
    str | UnsetType, Meta(description="Link to the result; needs no key; present while it is valid.")
]
Expiry = Annotated[str | UnsetType, Meta(description="When the link expires: RFC 3339, UTC; present with the link.")]
FeatureCount = Annotated[int | UnsetType, Meta(description="Features that were converted.")]
GeometryType = Annotated[str | UnsetType, Meta(description="The geometry type most of the converted features have.")]
ProcessingTime = Annotated[int | UnsetType, Meta(description="Duration of the conversion in milliseconds.")]
OutputSize = Annotated[int | UnsetType, Meta(description="Size of the result in bytes.")]
RemainingConversions = Annotated[
    int | None, Meta(description="Conversions left this month; null if not requested, or with prepaid credit.")
]
RemainingBytes = Annotated[
    int | None, Meta(description="Input bytes left this month; null if not requested, or with prepaid credit.")
]
WalletBalance = Annotated[int | None, Meta(description="US cents of prepaid credit left; null with a plan.")]
LossReport = Annotated[
    Report | None, Meta(description="What the conversion to Shapefile lost; null for other targets.")
]
NeedsUpgrade = Annotated[bool, Meta(description="Whether a larger plan would lift the limit that refused the file.")]
LimitHit = Annotated[Limit | None, Meta(description="The limit that refused the file; null if none did.")]
PaymentPastDue = Annotated[bool, Meta(description="Whether the file was refused because a payment is past due.")]
MultiLayer = Annotated[bool, Meta(description="Whether the input has several layers and the target stores one.")]
TargetFormat = Annotated[str | UnsetType, Meta(description="The requested format; present with multiLayer.")]
Layers = Annotated[tuple[LayerCount, ...] | UnsetType, Meta(description="The layers found; present with multiLayer.")]
OutputEpsg = Annotated[int | None, Meta(description="EPSG code of the result; null if it has no geometry.")]
Warnings = Annotated[
    tuple[str, ...],
    Meta(description="What the target left out, renamed or overruled, and form fields that were ignored."),
]


class Outcome(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """The outcome of one file: the members of its response, alone or in a batch (interface 2.1, 2.2)."""

    success: Annotated[bool, Meta(description="Whether the file was converted.")]
    job_id: JobId
    status: Status
    download_url: DownloadUrl = UNSET
    download_expires_at: Expiry = UNSET
    feature_count: FeatureCount = UNSET
    processing_time_ms: ProcessingTime = UNSET
    output_size_bytes: OutputSize = UNSET
    truncation_report: LossReport = None
    needs_upgrade: NeedsUpgrade = False
    limit: LimitHit = None
    payment_past_due: PaymentPastDue = False
    multi_layer: MultiLayer = False
    target_format: TargetFormat = UNSET
    layers: Layers = UNSET
    output_epsg: OutputEpsg = None
    warnings: Warnings = ()


class ConversionResult(Outcome, frozen=True, kw_only=True, rename="camel"):
    """The response of a single-file conversion (interface 2.1)."""

    input_format: InputFormat = UNSET
    output_format: OutputFormat = UNSET
    geometry_type: GeometryType = UNSET
    remaining_conversions: RemainingConversions = None
    remaining_bytes: RemainingBytes = None
    new_wallet_balance_cents: WalletBalance = None
    error: Annotated[str | UnsetType, Meta(description="Why the file was not converted, and what to do.")] = UNSET


class BatchEntry(Outcome, frozen=True, kw_only=True, rename="camel"):
    """The outcome of one file of a batch (interface 2.2)."""

    file_name: FileName
    error: Annotated[str | None, Meta(description="Why the file was not converted; null if it was.")] = None


class BatchResult(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """The response of a batch (interface 4.2)."""

    success: Annotated[bool, Meta(description="Whether at least one file was converted.")]
    results: Annotated[tuple[BatchEntry, ...], Meta(description="One entry per file, in order.")]
    remaining_conversions: RemainingConversions
    remaining_bytes: RemainingBytes
    new_wallet_balance_cents: WalletBalance


class JobProgress(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """What happens to a job that has not ended (interface 2.3)."""

    stage: Annotated[
        Stage, Meta(description="Waiting for a converter, or what is being done; up to half a second old.")
    ]
    share: Annotated[
        Annotated[float, Meta(ge=0, le=1)] | UnsetType,
        Meta(description="Which share of the stage is done, in steps of 0.05; absent if that is unknown."),
    ] = UNSET


class JobRecord(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """One job (interface 2.3)."""

    job_id: JobId
    original_file_name: FileName
    status: Status
    download_url: DownloadUrl = UNSET
    download_expires_at: Expiry = UNSET
    feature_count: FeatureCount = UNSET
    geometry_type: GeometryType = UNSET
    input_size_bytes: Annotated[int, Meta(description="Size of the upload in bytes.")]
    output_size_bytes: OutputSize = UNSET
    processing_time_ms: ProcessingTime = UNSET
    created_at: Moment
    completed_at: Moment | UnsetType = UNSET
    error_message: Annotated[str | UnsetType, Meta(description="Why the job failed; present if it did.")] = UNSET
    progress: Annotated[JobProgress | UnsetType, Meta(description="Present until the job has ended.")] = UNSET
    warnings: Annotated[
        tuple[str, ...] | UnsetType,
        Meta(description="What the target left out or changed; absent if there is nothing."),
    ] = UNSET
    truncation_report: Annotated[
        Report | UnsetType, Meta(description="What the conversion to Shapefile lost; absent for other targets.")
    ] = UNSET


class RecentJobs(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """Jobs, newest first; those of a batch in the order of its files (interface 4.7)."""

    success: bool
    jobs: tuple[JobRecord, ...]


class PlanList(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """The response of the plan list (interface 4.5)."""

    currency: str
    max_file_size_bytes: Annotated[int, Meta(description="Largest file that may be sent, on every plan.")]
    plans: tuple[Plan, ...]


class Analysis(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """The response of the pre-flight analysis (interface 4.4)."""

    success: Annotated[bool, Meta(description="Whether the file was accepted and analyzed.")]
    report: Annotated[Report | UnsetType, Meta(description="What would be lost; present on success.")] = UNSET
    warnings: Annotated[
        tuple[str, ...] | UnsetType, Meta(description="Losses that the report has no member for; present on success.")
    ] = UNSET
    error: Annotated[str | UnsetType, Meta(description="Why the file was not analyzed, and what to do.")] = UNSET


def timestamp(moment: datetime) -> str:
    """Return `moment` as RFC 3339 in UTC, with milliseconds and Z (interface 2.6)."""
    return moment.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def json_response(answer: msgspec.Struct, status: int = 200, headers: dict[str, str] | None = None) -> Response:
    """Return `answer` as JSON bytes."""
    return Response(msgspec.json.encode(answer), status, headers, media_type="application/json")
