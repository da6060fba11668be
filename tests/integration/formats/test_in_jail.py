"""The engine inside the real sandbox: what needs more of the host than a plain conversion."""

from pathlib import Path

import pytest

from sandbox.config import Config, Mode, Ogr2ogr, PythonServer
from sandbox.pool import open_pool
from service.engine.capabilities import Capabilities
from service.engine.convert import JAILED_PROGRAMS
from service.engine.environment import python_environment
from tests.integration.formats.pipeline import Pipeline, write_geojson
from tests.integration.formats.readers import read_content
from tests.integration.formats.samples import SAMPLES


@pytest.mark.parametrize("output", ["Shapefile", "GeoParquet", "SpatiaLite", "Xlsx", "Gml"])
async def test_formats_that_need_programs_of_ours(host: Capabilities, tmp_path: Path, output: str) -> None:
    """They run where nothing of the host is to be seen but libraries, data and Python."""
    root = tmp_path / "work"
    root.mkdir()
    config = Config(
        work_root=root,
        mode=Mode.BEST_EFFORT,
        converters=1,
        readable=host.readable,
        ogr2ogr=Ogr2ogr(program=Path(host.ogr2ogr)),
        python=PythonServer(modules=JAILED_PROGRAMS, packages=host.packages, environment=python_environment(host)),
    )
    async with open_pool(config) as pool, pool.lease("test") as worker:
        pipeline = Pipeline(host, root, worker.run)
        done = await pipeline.to(output, write_geojson(tmp_path / "mixed.geojson", SAMPLES["points"]))
        found = read_content(done.plan.target.token, done.path)
    assert found.features == len(SAMPLES["points"])
