"""The bait works: outside the service, attacks of the corpus succeed."""

import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.hostile.bait import Bait, laid_out
from tests.hostile.corpus import CORPUS
from tests.support.patience import PATIENCE_SECONDS

STEALING = (
    "VRT as .csv",
    "VRT with SQL as .gml",
    "SQLite with VirtualText",
    "SQLite with VirtualOGR of a file",
    "GeoPackage with VirtualText",
)
CALLING = ("GeoJSON whose system is a link", "GML whose schema is an address", "WFS as .gml", "VRT by HTTP as .gpx")


@pytest.fixture
def own_bait() -> Iterator[Bait]:
    """Bait that may be touched."""
    with laid_out() as bait:
        yield bait


def _convert_unprotected(name: str, bait: Bait, directory: Path) -> bytes:
    """What plain ogr2ogr makes of a case."""
    case = CORPUS[name]
    given = directory / f"given{Path(case.name).suffix}"
    given.write_bytes(case.build(bait))
    program = shutil.which("ogr2ogr") or pytest.skip("ogr2ogr is not on the PATH")
    command = (program, "-f", "CSV", "out", given.name)
    done = subprocess.run(command, cwd=directory, capture_output=True, check=False, timeout=PATIENCE_SECONDS)
    if done.returncode < 0:  # GDAL 3.13 over a GeoPackage with VirtualText
        pytest.skip("this ogr2ogr crashes over it, and so gives nothing away")
    return b"".join(path.read_bytes() for path in (directory / "out").glob("*"))


@pytest.mark.parametrize("name", STEALING)
def test_without_the_service_the_secret_is_stolen(own_bait: Bait, tmp_path: Path, name: str) -> None:
    """The canary file is one that a converter reads."""
    assert own_bait.is_in(_convert_unprotected(name, own_bait, tmp_path))


@pytest.mark.parametrize("name", CALLING)
def test_without_the_service_the_listener_is_called(own_bait: Bait, tmp_path: Path, name: str) -> None:
    """The canary listener is one that a converter reaches."""
    _convert_unprotected(name, own_bait, tmp_path)
    assert own_bait.touched()
