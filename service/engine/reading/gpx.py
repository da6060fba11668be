"""Reads GPX, whose driver looks for extensions only if it meets some early."""

import re
import shutil
from functools import partial
from pathlib import Path

from service.engine.reading.files import read_single
from service.engine.reading.work_file import WorkFile
from service.engine.workspace import Workplace, staged_names
from service.formats.left_out import has_match
from service.formats.opened import opened
from service.formats.source import Source
from service.formats.xml_root import HEAD_BYTES, ROOT

EXTENSIONS = re.compile(rb"<extensions[\s>]")
REST_OF_TAG = re.compile(rb"(?:[^<>\"']|\"[^<\"]*+\"|'[^<']*+')*+(?<!/)>")
"""What follows the name of an element that is not empty."""
HINT = b"<hint><extensions/></hint>"
"""What no layer holds, but shows the driver that there are extensions. It must meet some among the first 200 elements;
from GDAL 3.10 on, in the first MiB, and outside of the points of tracks and routes."""
HINTED_FILE = "hinted.gpx"


async def read_gpx(place: Workplace, source: Source) -> WorkFile:
    """Read the file, with its extensions wherever they are."""
    if await place.look(partial(_add_hint, source.path, place.path / HINTED_FILE)):
        await place.rename(HINTED_FILE, staged_names(source)[0])
    return await read_single(place, source)


def _add_hint(path: Path, copy: Path) -> bool:
    """Copy the file at `path` with the hint, if it has extensions. Blocking."""
    with opened(path) as file:
        head = file.read(HEAD_BYTES)
        root = ROOT.match(head)
        tag = root and REST_OF_TAG.match(head, root.end("name"))
        if not tag or not has_match(path, EXTENSIONS):
            return False
        with copy.open("xb") as hinted:
            hinted.write(head[: tag.end()] + HINT + head[tag.end() :])
            shutil.copyfileobj(file, hinted)
    return True
