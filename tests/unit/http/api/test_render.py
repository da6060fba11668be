"""Responses about jobs, rendered from their records (interface 2)."""

from datetime import UTC, datetime, timedelta
from http import HTTPStatus
from typing import Any
from uuid import UUID

import msgspec
import pytest
from starlette.requests import Request

from service.http.api import render
from service.ids import JobId
from service.jobs.lifecycle import Status
from service.jobs.records import Details, Job
from service.metering.balance import Balance
from service.storage.port import Link
from service.usecases.jobs import LinkedJob

NOW = datetime(2026, 5, 4, 10, 30, tzinfo=UTC)
ID = UUID("019df0a2-7c1e-7b52-9d3c-3b1f5a2e8d10")
STATUS_PATH = f"/api/geo/convert/jobs/{ID}/status"
COMPLETED = Job(
    id=JobId(ID),
    status=Status.COMPLETED,
    original_file_name="lakes.geojson",
    input_format="geojson",
    output_format="gpkg",
    input_size_bytes=566,
    created_at=NOW,
    completed_at=NOW + timedelta(milliseconds=41),
    feature_count=3,
    geometry_type="Point",
    processing_time_ms=41,
    output_size_bytes=98304,
    details=Details(warnings=("A column was left out.",), output_epsg=4326),
)
PENDING = msgspec.structs.replace(
    COMPLETED, status=Status.PENDING, completed_at=None, feature_count=None, geometry_type=None, details=Details()
)
LINK = Link("/files/key/lakes.gpkg?signature=s", NOW + timedelta(hours=4))


def request(public_url: str = "https://geomill.example/geo") -> Request:
    """A request to a service with this URL."""
    return Request({"type": "http", "headers": [], "state": {"public_url": public_url}})


def rendered(record: msgspec.Struct) -> dict[str, Any]:
    """The members of a response."""
    members: dict[str, Any] = msgspec.json.decode(msgspec.json.encode(record))
    return members


def test_a_converted_file_has_its_link_and_all_counts() -> None:
    """Warnings about the request come before those about the conversion."""
    members = rendered(render.conversion_result(request(), LinkedJob(COMPLETED, LINK), ["An unknown field."], None))
    assert members["success"] is True
    assert members["downloadUrl"] == "https://geomill.example/geo/files/key/lakes.gpkg?signature=s"
    assert members["downloadExpiresAt"] == "2026-05-04T14:30:00.000Z"
    assert members["warnings"] == ["An unknown field.", "A column was left out."]
    assert (members["featureCount"], members["outputSizeBytes"], members["outputEpsg"]) == (3, 98304, 4326)
    assert "error" not in members


def test_a_link_to_another_host_stays_as_it_is() -> None:
    """That of a bucket."""
    link = Link("https://bucket.example/key?signature=s", NOW)
    members = rendered(render.job_record(request(), LinkedJob(COMPLETED, link)))
    assert members["downloadUrl"] == link.url


def test_a_failed_file_says_why_and_which_limit_refused_it() -> None:
    """It has no link, and no counts."""
    details = Details(limit="wallet", needs_upgrade=True)
    failed = msgspec.structs.replace(PENDING, status=Status.FAILED, error_message="No credit is left.", details=details)
    members = rendered(render.conversion_result(request(), LinkedJob(failed, None), (), None))
    assert (members["success"], members["error"]) == (False, "No credit is left.")
    assert (members["limit"], members["needsUpgrade"]) == ("wallet", True)
    assert not {"downloadUrl", "downloadExpiresAt", "featureCount", "geometryType"} & members.keys()


@pytest.mark.parametrize(
    ("stage", "share", "progress"),
    [
        (None, None, {"stage": "waiting"}),
        ("converting", None, {"stage": "converting"}),
        ("converting", 0.25, {"stage": "converting", "share": 0.25}),
    ],
)
def test_an_open_job_shows_its_progress(stage: Any, share: float | None, progress: dict[str, object]) -> None:
    """As far as it is known."""
    job = msgspec.structs.replace(PENDING, stage=stage, stage_share=share)
    assert rendered(render.job_record(request(), LinkedJob(job, None)))["progress"] == progress


def test_an_ended_job_has_no_progress() -> None:
    """Whatever stage was seen last."""
    job = msgspec.structs.replace(COMPLETED, stage="storing", stage_share=0.5)
    assert "progress" not in rendered(render.job_record(request(), LinkedJob(job, None)))


def test_an_accepted_upload_is_answered_with_the_address_of_its_job() -> None:
    """And with what the client preferred."""
    response = render.accepted(request(), PENDING)
    assert response.status_code == HTTPStatus.ACCEPTED
    assert response.headers["location"] == f"https://geomill.example/geo{STATUS_PATH}"
    assert response.headers["preference-applied"] == "respond-async"


def test_the_headers_about_a_job_count_the_warnings_about_request_and_conversion() -> None:
    """And name its record."""
    assert render.of_job(request(), COMPLETED, ["An unknown field."]) == {
        "Geomill-Job-Id": str(ID),
        "Geomill-Warnings": "2",
        "Link": f'<https://geomill.example/geo{STATUS_PATH}>; rel="describedby"',
    }


def test_a_batch_succeeds_if_one_of_its_files_does() -> None:
    """And has what is left after it."""
    failed = msgspec.structs.replace(PENDING, status=Status.FAILED, error_message="It is damaged.")
    balance = Balance(
        period=NOW.date(),
        used_conversions=1,
        used_bytes=566,
        remaining_conversions=9,
        remaining_bytes=1000,
        wallet_cents=None,
    )
    jobs = [LinkedJob(failed, None), LinkedJob(COMPLETED, LINK)]
    members = rendered(render.batch_result(request(), jobs, balance, ()))
    assert (members["success"], [entry["success"] for entry in members["results"]]) == (True, [False, True])
    assert members["results"][0]["error"] == "It is damaged."
    assert (members["remainingConversions"], members["newWalletBalanceCents"]) == (9, None)
    assert rendered(render.batch_result(request(), jobs[:1], balance, ()))["success"] is False
