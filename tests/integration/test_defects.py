"""A defect gets a response that reveals nothing of it (interface 7.1)."""

from pathlib import Path

import pytest
import structlog

from service.formats.request import ConversionRequest
from service.ids import JobId, uuid7
from service.jobs.lifecycle import Status
from service.jobs.spec import JobSpec, PartSpec, SourceSpec
from service.telemetry.log import configure_log
from tests.support.jobs import application
from tests.support.world import MAY, World, world


async def test_a_defect_before_the_body_was_read_is_a_problem_with_the_request_s_id(
    database_url: str, tmp_path: Path
) -> None:
    """500 with a code and the request id; only the log says what went wrong."""
    async with world(database_url, tmp_path) as here:
        async with here.services.database.connection() as connection:
            # Of what the service reads, only authentication needs this: maintenance has no defect to log.
            await connection.execute("ALTER TABLE api_key RENAME key_hash TO lost")
        with structlog.testing.capture_logs() as logged:
            response = await here.client.post(
                "/api/geo/convert/file", content=b"x" * 100_000, headers={"X-Request-Id": "mine"}
            )
    assert response.status_code == 500
    assert response.headers["content-type"] == "application/problem+json"
    problem = response.json()
    assert (problem["code"], problem["requestId"], problem["success"]) == ("internal_error", "mine", False)
    assert "mine" in problem["detail"]
    assert "key_hash" not in response.text
    assert [entry["event"] for entry in logged if entry["log_level"] == "error"] == ["request.failed"]


async def test_a_job_that_cannot_start_ends_and_leaves_nothing(database_url: str, tmp_path: Path) -> None:
    """For example, one of another version with a target format that this version lacks: it fails and leaves no file."""
    async with world(database_url, tmp_path) as here:
        services, account_id = here.services, here.account.account_id
        spec, directory = await _admitted(here), services.work_area.new_directory()
        (directory / "upload").write_bytes(b"{}")
        [ticket] = services.runner.enqueue(account_id)
        ended = await services.runner.submit(spec, directory, ticket).outcome()
        assert ended.status is Status.FAILED
        assert (await here.job(str(ended.id)))["status"] == "Failed"
        assert not directory.exists()
        assert not services.pool.queue.places_taken
        assert (await services.ledger.balance(account_id)).used_conversions == 0


async def _admitted(here: World) -> JobSpec:
    """A job with a reservation and a nonexistent target format."""
    job_id = JobId(uuid7(MAY))
    admission = await here.services.ledger.admit(
        application(here.account.account_id, job_id=job_id, server_id=here.services.leases.server_id)
    )
    return JobSpec(
        job=await here.services.jobs.find(job_id, here.account.account_id),
        account_id=here.account.account_id,
        upload="upload",
        source=SourceSpec(
            format="geojson",
            parts=(PartSpec({".geojson": "upload"}, "a"),),
            stem="a",
            prefix="",
            options=(),
            warnings=(),
            warnings_without={},
        ),
        target="of another version",
        request=ConversionRequest(),
        retention_hours=admission.retention_hours,
        object_key=admission.object_key,
    )


def test_a_traceback_in_the_log_has_no_variables(capsys: pytest.CaptureFixture[str]) -> None:
    """They may contain keys."""
    before = structlog.get_config()
    configure_log("console", "info")
    secret = "gm_" + "x" * 38
    try:
        raise ValueError("broken")  # noqa: TRY301 -- the defect that is caught
    except ValueError:
        structlog.get_logger().exception("request.failed")
    finally:
        structlog.configure(**before)
    printed = capsys.readouterr().err
    assert "broken" in printed
    assert secret not in printed
