"""Datums between which PROJ knows no transformation are told, because it takes them for the same."""

from pathlib import Path

import pytest

from tests.integration.formats.pipeline import Pipeline
from tests.support.converters import Converters

UNRELATED = "No transformation between the datums of EPSG:{} and EPSG:{} is known"
TWD67, TWD97 = 3828, 3826
"""Two systems of Taiwan with the same projection, whose datums are 830 m apart."""


@pytest.mark.parametrize(
    ("one", "other", "related"),
    [
        (TWD67, 4326, False),
        (4326, TWD67, False),
        (TWD67, 3821, True),
        (TWD97, 4326, True),
        (4267, 4326, True),
        (31467, 25832, True),
        (4555, 4326, False),
        (6318, 4326, True),
        (3857, 4326, True),
        (999_999, 4326, True),
    ],
)
def test_it_is_known_which_datums_are_related(converters: Converters, one: int, other: int, *, related: bool) -> None:
    """Modern ones, whose places nearly are the same, count as related, and so do systems that are not known."""
    assert converters.engine.catalogue.relates(one, other) is related


@pytest.mark.parametrize(
    ("source", "target", "told"),
    [(TWD67, 4326, True), (TWD67, 3821, False), (TWD97, 4326, False), (TWD97, TWD67, True)],
)
async def test_datums_that_are_taken_for_the_same_are_told(
    pipeline: Pipeline, tmp_path: Path, source: int, target: int, *, told: bool
) -> None:
    """With both systems and what can be done."""
    path = tmp_path / "in.csv"
    path.write_text("x,y,name\n250000,2650000,a\n")
    done = await pipeline.to("GeoPackage", path, source_epsg=source, target_epsg=target)
    warnings = [text for text in done.output.warnings if text.startswith(UNRELATED.format(source, target))]
    assert len(warnings) == told
