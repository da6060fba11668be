"""What a run of the tests leaves behind that ends before its tests do."""

import subprocess
import sys
from pathlib import Path

import psutil

from tests.support.patience import PATIENCE_SECONDS

ROOT = Path(__file__).parents[2]
TESTS = """
import sys
import threading
from pathlib import Path

from tests.fleet.nats import NatsServer
from tests.integration.storage.servers import S3Server

directory = Path(sys.argv[1])
print(S3Server(directory / "s3").pid, NatsServer(directory / "nats").pid, flush=True)
threading.Event().wait()
"""


def test_servers_end_with_tests_that_are_killed(tmp_path: Path) -> None:
    """Workers of xdist are, if a run is interrupted and they take long."""
    for name in ("s3", "nats"):
        (tmp_path / name).mkdir()
    command = [sys.executable, "-c", TESTS, str(tmp_path)]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True) as tests:
        assert tests.stdout is not None
        servers = [psutil.Process(int(pid)) for pid in tests.stdout.readline().split()]
        assert len(servers) == 2
        tests.kill()
    _, alive = psutil.wait_procs(servers, timeout=PATIENCE_SECONDS)
    assert alive == []
