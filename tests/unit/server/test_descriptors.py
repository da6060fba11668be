"""How many connections the host's limit of descriptors allows."""

import subprocess
import sys

import pytest

from service.server import listener
from service.server.listener import LEAST_SHARE, RESERVED_DESCRIPTORS, descriptors_for

WANTED = 4096
PROGRAM = f"""
import resource, sys
from {listener.__name__} import room_for_connections
most = int(sys.argv[1])
resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
print(room_for_connections({WANTED}))
"""


@pytest.mark.parametrize(
    ("most", "connections"),
    [
        (256, 256 // LEAST_SHARE),
        (1024, (1024 - RESERVED_DESCRIPTORS) // 2),
        (descriptors_for(WANTED), WANTED),
    ],
)
def test_a_host_with_few_descriptors_still_serves_several_clients(most: int, connections: int) -> None:
    """With a single connection, a client could not even fetch its result while it keeps the one that it has.

    Each connection may keep a file open, too: clients that read nothing of what they download took all descriptors.
    """
    done = subprocess.run([sys.executable, "-c", PROGRAM, str(most)], capture_output=True, text=True, check=True)
    assert int(done.stdout) == connections
