"""What other programs write into tables: kept, or told with the values that become others."""

from pathlib import Path

import pytest

from tests.integration.formats.editing import replace_in
from tests.integration.formats.pipeline import Pipeline, write_geojson
from tests.integration.formats.samples import point
from tests.support.converters import Converters


@pytest.mark.parametrize("has_sessions", [True, False])
@pytest.mark.parametrize("kind", ["Ods", "Xlsx"])
async def test_whole_numbers_of_workbooks_beyond_64_bits_are_told(
    converters: Converters, tmp_path: Path, kind: str, *, has_sessions: bool
) -> None:
    """Some programs write all digits of such numbers; drivers read the largest number of 64 bits."""
    pipeline = Pipeline(converters, has_sessions=has_sessions)
    written = await pipeline.to(kind, write_geojson(tmp_path / "a.geojson", [point(1, 2, n=n) for n in (12, 123454)]))
    path = tmp_path / f"a{written.path.suffix}"
    replace_in(written.path, path, rb"123454", b"12345678901234567000")
    done = await pipeline.to("GeoPackage", path, source_epsg=4326)
    (told,) = done.output.warnings
    assert "1 value of 'n' became 9,223,372,036,854,775,807" in told
    assert told.endswith(" The first is feature 2.")
    replace_in(written.path, path, rb"123454", b"1234567890123456789")
    assert (await pipeline.to("GeoPackage", path, source_epsg=4326)).output.warnings == ()
