"""Whatever starts the converters, they are held to the same."""

from functools import partial
from pathlib import Path

import httpx
import pytest

import service.app
from sandbox.config import Config, LauncherName
from service.usecases.run_job import DEFECT
from tests.hostile.bait import laid_out
from tests.hostile.case import filled
from tests.hostile.corpus import CORPUS
from tests.support.world import world

SLOWER = {
    "warm process": (LauncherName.WARM, LauncherName.EXEC),
    "plain exec": (LauncherName.EXEC,),
}
"""What the rest of the corpus does not meet where the fastest launcher is there."""
SAMPLE = (
    "VRT as .gml",
    "GeoJSON whose system is a link",
    "GeoJSON whose system is a grid",
    "SQLite with VirtualText",
    "GeoPackage with a layer called as an absolute path",
    "GML whose schema is an address",
    "billion laughs in .kml",
    "KML of folders in folders",
    "GeoParquet with a footer of nothing",
    "shapefile with two billion points",
)


@pytest.mark.parametrize("launcher", SLOWER)
async def test_no_launcher_lets_a_file_get_further(
    monkeypatch: pytest.MonkeyPatch, database_url: str, tmp_path: Path, launcher: str
) -> None:
    """Each attack of a sample is answered, and takes, calls and writes nothing."""
    monkeypatch.setattr(service.app, "Config", partial(Config, launchers=SLOWER[launcher]))
    with laid_out() as bait:
        async with world(database_url, tmp_path, plan="team") as here:
            for name in SAMPLE:
                case = CORPUS[name]
                files = {"file": (filled(case.name, bait), case.build(bait))}
                response = await here.client.post("/api/geo/convert/file", files=files, data=case.fields)
                assert response.status_code == httpx.codes.OK, name
                answer = response.json()
                assert answer.get("error") != DEFECT, name
                if answer["success"]:
                    assert not bait.is_in((await here.client.get(answer["downloadUrl"])).content), name
            await here.convert()
        assert bait.touched() == []
