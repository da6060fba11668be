"""Requests generated from the OpenAPI description alone get only responses that it describes."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from service.accounts.administration import Terms
from service.http.routes import ENDPOINTS, PRIVATE
from tests.support.server import Server, create_account

TESTS = Path(__file__).with_name("strangers.py")


@pytest.mark.timeout(1800)
def test_strangers_meet_nothing_but_what_is_described(server: Server) -> None:
    """A pytest of their own passes for each operation: to read the description takes seconds, for each worker."""
    operations = sum(endpoint.path not in PRIVATE for endpoint in ENDPOINTS)
    with create_account(server, Terms(plan="team", plan_owner="organization")) as client:
        given = {"STRANGERS_URL": server.url, "STRANGERS_KEY": client.key.api_key}
        done = subprocess.run(
            [sys.executable, "-m", "pytest", "--numprocesses=0", "--timeout=0", "-p", "no:cacheprovider", TESTS],
            env={**os.environ, **given},
            cwd=TESTS.parents[2],
            capture_output=True,
            text=True,
            check=False,
        )
    assert done.returncode == 0, done.stdout
    assert _passed(done.stdout) == operations + 1, done.stdout


def _passed(output: str) -> int:
    [count] = re.findall(r"(\d+) passed", output) or ["0"]
    return int(count)
