"""The formats page matches the code, and the code does what the page says."""

from pathlib import Path

import pytest

from sandbox.command import MIB, Limits
from service.formats.documentation import KINDS, document, judge
from service.formats.registry import OUTPUT_NAMES, find_output
from tests.integration.formats.test_matrix import REFUSED

PAGE = Path(__file__).parents[3] / "docs" / "formats.md"
SAMPLES_OF_KINDS = {"points": "points", "areas": "polygons", "mixed": "mixed", "table": "table", "no features": "empty"}


def test_the_page_is_up_to_date() -> None:
    """`python -m service.formats.documentation > docs/formats.md` generates it."""
    limits = Limits()
    assert PAGE.read_text(encoding="utf-8") == document(limits.memory_bytes // MIB, limits.wall_seconds)


@pytest.mark.parametrize("output", [name for name in OUTPUT_NAMES if name != "GeoJson"])
@pytest.mark.parametrize(("kind", "sample"), SAMPLES_OF_KINDS.items())
def test_the_page_refuses_what_the_service_refuses(kind: str, sample: str, output: str) -> None:
    """The conversions' tests use the same table of refusals."""
    assert (judge(find_output(output), KINDS[kind]) == "no") is ((sample, output) in REFUSED)
