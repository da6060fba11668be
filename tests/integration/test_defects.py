"""A defect of ours is answered, and tells nothing of itself (interface 7.1)."""

from pathlib import Path

import pytest
import structlog

from service.telemetry.log import configure_log
from tests.support.world import world


async def test_a_defect_before_the_body_was_read_is_a_problem_with_the_request_s_id(
    database_url: str, tmp_path: Path
) -> None:
    """500 with a code and the id, and no word of what went wrong, which the log has."""
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


def test_a_traceback_in_the_log_has_no_variables(capsys: pytest.CaptureFixture[str]) -> None:
    """They hold keys."""
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
