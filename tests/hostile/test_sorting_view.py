"""A small file whose reading takes room without end, in files that SQLite deletes as soon as it has opened them."""

import re

import httpx
import pytest

from tests.hostile.bait import Bait
from tests.hostile.databases import geopackage
from tests.support.server import Client, Server

SORTING = """
    CREATE VIEW t AS WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n LIMIT 150000)
        SELECT x AS fid, x AS a FROM n ORDER BY hex(zeroblob(1000)) || x DESC;
"""
"""Two megabytes of rows, sorted by three hundred megabytes of keys."""
ENDED = re.compile(r'^geomill_converter_runs_total\{ending="output_size"\} (?P<runs>\S+)$', re.MULTILINE)


def ended_for_their_size(server: Server) -> float:
    """How many runs have held more than they may."""
    found = ENDED.search(httpx.get(f"{server.url}/metrics").text)
    return float(found["runs"]) if found else 0.0


@pytest.mark.usefixtures("unharmed")
def test_the_temporary_files_of_a_sort_count(hardened: Server, attacker: Client, bait: Bait) -> None:
    """The run that has them in memory is ended for what it holds, long before they have filled it."""
    before = ended_for_their_size(hardened)
    files = {"file": ("sorting.gpkg", geopackage(SORTING)(bait))}
    attacker.post("/api/geo/convert/file", files=files, data={"outputFormat": "Csv"})
    assert ended_for_their_size(hardened) > before
