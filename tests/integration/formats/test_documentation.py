"""The formats page matches the code, and the code does what the page says."""

import re
from pathlib import Path

import pytest

from sandbox.command import MIB, Limits
from service.formats.cannot_hold import cannot_hold
from service.formats.documentation import KINDS, judge, renewed, tables
from service.formats.facts import MAX_LAYERS
from service.formats.format import writing_of
from service.formats.plan import MAX_DATASETS
from service.formats.registry import OUTPUT_NAMES, find_output
from service.formats.values import VALUE_LOSSES
from tests.integration.formats.test_matrix import REFUSED

PAGE = Path(__file__).parents[3] / "docs" / "formats.md"
SAMPLES_OF_KINDS = {"points": "points", "areas": "polygons", "mixed": "mixed", "table": "table", "no features": "empty"}


def test_the_tables_are_up_to_date() -> None:
    """`./just docs` makes them anew."""
    page = PAGE.read_text(encoding="utf-8")
    assert tables() in page
    assert renewed(page, tables()) == page


@pytest.mark.parametrize("output", OUTPUT_NAMES)
def test_the_page_lists_every_limit_of_an_output(output: str) -> None:
    """In the output's own section, or in the one that it shares with others of the same limits."""
    section = re.search(rf"^### To (?:\w+ or )*{output}\b.*?(?=^##)", PAGE.read_text("utf-8"), re.MULTILINE | re.DOTALL)
    assert section is not None
    listed = [line.partition("**: ")[2].split(" · ") for line in section[0].splitlines() if line.startswith("- **")]
    writing = writing_of(find_output(output))
    assert listed == list(cannot_hold(writing).values())
    lost = {VALUE_LOSSES[kind].what for kind in writing.value_losses} if writing.attributes is None else set()
    assert lost <= {words for part in listed for words in part}


def test_the_page_states_the_limits() -> None:
    """Those of the settings by default, and those of the formats."""
    page, limits = PAGE.read_text(encoding="utf-8"), Limits()
    memory, seconds = limits.memory_bytes // MIB, int(limits.wall_seconds)
    assert f"A converter may use {memory} MiB and {seconds} seconds by default." in page
    assert f"Each run may take {seconds} seconds, and all of them together ten minutes." in page
    assert f"\n| GML of many types | 100 MB of {MAX_LAYERS:,} types:" in page
    assert f"\n| many layers, written | {MAX_DATASETS}:" in page


@pytest.mark.parametrize("output", [name for name in OUTPUT_NAMES if name != "GeoJson"])
@pytest.mark.parametrize(("kind", "sample"), SAMPLES_OF_KINDS.items())
def test_the_page_refuses_what_the_service_refuses(kind: str, sample: str, output: str) -> None:
    """The conversions' tests use the same table of refusals."""
    assert (judge(find_output(output), KINDS[kind]) == "no") is ((sample, output) in REFUSED)
