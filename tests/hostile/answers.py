"""What a response to a hostile file must not reveal."""

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from service.usecases.pipeline import DEFECT
from tests.hostile.bait import Bait

INSIDES = re.compile(
    r"/usr/|/proc/|/root|/vsi|Traceback|ERROR \d|Warning \d|ogr2ogr|OGR|GDAL|PROJ:|sqlite3|SELECT |\bin0\b|\bt0\b"
    r"|\bout/|work\.gpkg|detour|__geomill|-> ['`\"]|std::|Errno|0x[0-9a-f]{6}",
)


def told(answer: Mapping[str, Any]) -> str:
    """All text that the service itself wrote."""
    return "\n".join([str(answer.get("error", "")), *answer["warnings"]])


def require_discreet(answer: Mapping[str, Any], data_dir: Path, bait: Bait, sent: str) -> None:
    """Fail if the response's own text has the secret, a path or a converter's message; `sent` came from the client."""
    words = told(answer).replace(sent, "")
    assert bait.secret not in words
    assert str(data_dir) not in words
    assert str(bait.directory) not in words or bait.marker in words  # a name that the client has given
    assert (found := INSIDES.search(words)) is None, f"{found}: {words}"
    assert DEFECT not in words
