"""The ids of requests and spans differ."""

import os
import random
import subprocess
import sys

from service.ids import tracking_id

FORKED = """
import os
from service.ids import tracking_id
if os.fork() == 0:
    os.write(1, tracking_id().encode() + b"\\n")
    os._exit(0)
os.wait()
os.write(1, tracking_id().encode() + b"\\n")
"""


def test_ids_differ_although_an_application_seeds_the_generator_of_python() -> None:
    """An application that embeds the service may do so at the start of each of its processes."""
    before = random.getstate()
    try:
        random.seed(1)
        first = tracking_id()
        random.seed(1)
        assert tracking_id() != first
    finally:
        random.setstate(before)


def test_ids_of_forked_processes_differ() -> None:
    """As those of an application that forks once it has imported the service."""
    done = subprocess.run([sys.executable, "-c", FORKED], check=True, capture_output=True, env=os.environ.copy())
    child, parent = done.stdout.split()
    assert child != parent
