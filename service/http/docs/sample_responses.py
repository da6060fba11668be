"""Sample responses for the description of the interface: one record of each kind."""

from collections.abc import Mapping
from typing import Any

import msgspec

from service.dataloss.rules import FieldNameTruncation, Report, Summary
from service.formats.offer import Availability
from service.http.api import schemas
from service.http.endpoints.lists import FormatList, System, SystemList, row_of
from service.http.endpoints.operators import Alive
from service.jobs.lifecycle import Status
from service.metering.plans import BY_ID
from service.usecases.check_readiness import Readiness

_ID = "019df0a2-7c1e-7b52-9d3c-3b1f5a2e8d10"
_LINK = "https://geomill.example/files/5f2c1d…/lakes.gpkg?type=…&expires=1777900000&signature=…"
_REPORT = Report(
    applicable=True,
    has_warnings=True,
    feature_count=3,
    field_name_truncations=(FieldNameTruncation(original="elevation_in_metres", truncated="elevation_"),),
    summary=Summary(fields_truncated=1),
)
_CONVERTED: Mapping[str, Any] = {
    "job_id": _ID,
    "status": Status.COMPLETED,
    "download_url": _LINK,
    "download_expires_at": "2026-05-04T14:30:00.000Z",
    "feature_count": 3,
    "processing_time_ms": 41,
}
_JOB = schemas.JobRecord(
    **_CONVERTED,
    original_file_name="lakes.geojson",
    geometry_type="Point",
    input_size_bytes=566,
    output_size_bytes=98304,
    created_at="2026-05-04T10:30:00.084Z",
    completed_at="2026-05-04T10:30:00.125Z",
)
_RESPONSES = (
    schemas.ConversionResult(
        **_CONVERTED,
        success=True,
        input_format="geojson",
        output_format="gpkg",
        geometry_type="Point",
        output_size_bytes=98304,
        output_epsg=4326,
    ),
    schemas.BatchResult(
        success=True,
        results=(
            schemas.BatchEntry(
                **_CONVERTED,
                success=True,
                file_name="lakes.geojson",
                output_size_bytes=1043,
                output_epsg=4326,
                truncation_report=_REPORT,
            ),
            schemas.BatchEntry(
                success=False,
                job_id="019df0a2-7c1f-7d04-8a6e-91c2d4b7f601",
                status=Status.FAILED,
                file_name="notes.txt",
                error="Files with the extension .txt cannot be converted.",
            ),
        ),
        remaining_conversions=4998,
        remaining_bytes=10737417674,
        new_wallet_balance_cents=None,
    ),
    _JOB,
    schemas.RecentJobs(success=True, jobs=(_JOB,)),
    schemas.PlanList(currency="USD", max_file_size_bytes=104857600, plans=(BY_ID["free"],)),
    schemas.Analysis(success=True, report=_REPORT, warnings=()),
    FormatList(formats=(row_of(Availability(token="gpkg", input=True, output=True)),)),  # noqa: S106 - no secret
    SystemList((System(epsg=32633, name="WGS 84 / UTM zone 33N", area="Between 12°E and 18°E, northern hemisphere."),)),
    Readiness(ready=True, checks={"database": "ok", "storage": "ok", "work": "ok", "sandbox": "ok", "intake": "ok"}),
    Alive(),
)
SAMPLE_RESPONSES: Mapping[type, object] = {type(answer): msgspec.to_builtins(answer) for answer in _RESPONSES}
"""The sample of each record, as JSON members."""
