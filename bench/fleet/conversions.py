"""Conversions as the figures of a fleet need them: prepared requests, and what must be true when all have ended."""

from collections.abc import Mapping

from bench.load.client import Address, LoadRequest, upload
from bench.load.paths import SINGLE
from tests.fleet.site import Site

_SUMS = """
SELECT (SELECT count(*) FROM job WHERE status = 'Completed') AS completed, (SELECT count(*) FROM ledger) AS charged,
       (SELECT count(*) FROM job WHERE status <> 'Completed') AS others
"""


def conversion(
    address: Address, key: str, content: bytes, *, name: str = "a.geojson", fields: Mapping[str, str] | None = None
) -> LoadRequest:
    """Return a request to convert this file, to a Shapefile unless the `fields` of the form tell something else."""
    fields = fields or {"outputFormat": "Shapefile"}
    return upload(address, SINGLE, {"X-API-Key": key}, name=name, content=content, fields=fields, copy=False)


def is_right(site: Site) -> bool:
    """Print the sums, and return whether every job completed and was charged once."""
    [sums] = site.rows(_SUMS)
    print(f"{sums['completed']} completed, {sums['charged']} charged, {sums['others']} others", flush=True)
    return bool(sums["completed"] == sums["charged"] and not sums["others"])


def verdict(value: float, goal: float, *, is_least: bool = True) -> str:
    """Return the goal, and whether `value` is at least, or at most, that."""
    is_reached = value >= goal if is_least else value <= goal
    return f"goal {goal:g}: {'reached' if is_reached else 'MISSED'}"
