"""Admissions and settlements of a small file, as the ledger takes them."""

from uuid import uuid4

from service.clock import utc_now
from service.ids import AccountId, JobId, ServerId, uuid7
from service.metering.ledger import AdmissionRequest, Settlement
from service.storage.port import new_key


def application(
    account_id: AccountId,
    size_bytes: int = 2,
    job_id: JobId | None = None,
    server_id: ServerId | None = None,
    key: str | None = None,
) -> AdmissionRequest:
    """The admission request for a file; what is not given is new, such as the `key` of its output."""
    return AdmissionRequest(
        job_id=job_id or JobId(uuid7(utc_now())),
        account_id=account_id,
        server_id=server_id or ServerId(uuid4()),
        file_name="a.geojson",
        input_format="geojson",
        output_format="csv",
        size_bytes=size_bytes,
        object_name=key or new_key(),
    )


def settlement(job_id: JobId, attempt: int = 1, size_bytes: int = 1) -> Settlement:
    """The settlement of a success."""
    return Settlement(
        job_id=job_id,
        attempt=attempt,
        retention_hours=4,
        processing_time_ms=1,
        feature_count=1,
        geometry_type="Point",
        output_size_bytes=size_bytes,
        download_name="a.csv",
        media_type="text/csv",
        details={},
    )
