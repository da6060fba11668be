"""How much memory a server keeps after its work."""

import ctypes
import os
from pathlib import Path

import pytest

from bench.load.documents import document
from service.accounts.administration import Terms
from tests.support.processes import heaps_of_threads
from tests.support.server import EXECUTED, create_account, running_server

TEAM = Terms(plan="team", plan_owner="organization")


@pytest.mark.skipif(os.geteuid() != 0, reason="only root sees the areas of memory that a process has")
@pytest.mark.skipif(not hasattr(ctypes.CDLL(None), "malloc_trim"), reason="another C library than glibc")
def test_the_threads_of_a_server_share_one_heap(database_url: str, tmp_path: Path) -> None:
    """The threads that start it, and those that receive and pack large files."""
    with running_server(tmp_path, database_url, program=EXECUTED) as server:
        with create_account(server, TEAM) as client:
            client.convert("places.geojson", document(2_000_000))
        assert heaps_of_threads(server.process.pid) == 0
