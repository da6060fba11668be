"""The formats page matches the code, and the code does what the page says."""

from pathlib import Path

import pytest

from sandbox.command import MIB, Limits
from service.formats.documentation import KINDS, judge, renewed, tables
from service.formats.facts import MAX_LAYERS
from service.formats.plan import MAX_DATASETS
from service.formats.registry import OUTPUT_NAMES, find_output
from tests.integration.formats.test_matrix import REFUSED

PAGE = Path(__file__).parents[3] / "docs" / "formats.md"
SAMPLES_OF_KINDS = {"points": "points", "areas": "polygons", "mixed": "mixed", "table": "table", "no features": "empty"}


def test_the_tables_are_up_to_date() -> None:
    """`./just docs` makes them anew."""
    page = PAGE.read_text(encoding="utf-8")
    assert tables() in page
    assert renewed(page, tables()) == page


def test_the_page_states_the_limits() -> None:
    """Those of the settings by default, and those of the formats."""
    page, limits = PAGE.read_text(encoding="utf-8"), Limits()
    memory, seconds = limits.memory_bytes // MIB, int(limits.wall_seconds)
    assert f"A converter may use {memory} MiB and {seconds} seconds by default." in page
    assert f"each run may take {seconds}, all of them together ten minutes." in page
    assert f"\n| GML of many types | 100 MB of {MAX_LAYERS:,} types:" in page
    assert f"\n| many layers, written | {MAX_DATASETS}:" in page


@pytest.mark.parametrize("output", [name for name in OUTPUT_NAMES if name != "GeoJson"])
@pytest.mark.parametrize(("kind", "sample"), SAMPLES_OF_KINDS.items())
def test_the_page_refuses_what_the_service_refuses(kind: str, sample: str, output: str) -> None:
    """The conversions' tests use the same table of refusals."""
    assert (judge(find_output(output), KINDS[kind]) == "no") is ((sample, output) in REFUSED)
