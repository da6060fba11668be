"""A queue that is alive and accepts nothing, as its stream or its disk is full."""

import pytest

from tests.fleet.site import Site
from tests.support.data import lakes
from tests.support.patience import wait_until

pytestmark = pytest.mark.xdist_group("fleet")
_FILE = {"file": ("a.geojson", lakes())}
_OPEN = "SELECT FROM job WHERE account_id = $1 AND completed_at IS NULL"


def test_a_waiting_client_is_told_to_send_its_file_later(fleet: Site) -> None:
    """With status 503, at no charge; a repeat with its key converts the file once there is room."""
    with fleet.client() as client:
        key = {"Idempotency-Key": "a"}
        with fleet.full_queue():
            refused = client.post("/api/geo/convert/file", files=_FILE, data={"outputFormat": "csv"}, headers=key)
            assert (refused.status_code, refused.headers["Retry-After"]) == (503, "5")
            assert fleet.rows(_OPEN, client.account.account_id) == []
            assert fleet.readiness()["checks"]["queue"] == "accepts no jobs: maximum bytes exceeded"
        wait_until(lambda: fleet.readiness()["checks"]["queue"] == "ok")
        answer = client.post("/api/geo/convert/file", files=_FILE, data={"outputFormat": "csv"}, headers=key).json()
        assert answer["success"], answer
        assert client.usage()[0] == 1
    wait_until(fleet.is_clean)
