"""Converters that are started with exec are confined like forked ones."""

from functools import partial
from pathlib import Path

import httpx
import pytest

import service.app.converters
from sandbox.config import Config, LauncherName
from service.usecases.pipeline import DEFECT
from tests.hostile.bait import laid_out
from tests.hostile.case import filled
from tests.hostile.corpus import CORPUS
from tests.support.world import world

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


async def test_plain_exec_lets_no_file_get_further(
    monkeypatch: pytest.MonkeyPatch, database_url: str, tmp_path: Path
) -> None:
    """A sample of the attacks, all of which the fork server meets elsewhere, reads, calls and writes nothing."""
    monkeypatch.setattr(service.app.converters, "Config", partial(Config, launchers=(LauncherName.EXEC,)))
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
