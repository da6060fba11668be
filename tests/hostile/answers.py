"""What an answer to a hostile file must not tell."""

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
    """Everything that the service says in its own words."""
    return "\n".join([str(answer.get("error", "")), *answer["warnings"]])


def require_discreet(answer: Mapping[str, Any], data_dir: Path, bait: Bait, sent: str) -> None:
    """Fail if the words of `answer` hold the secret, a path or a word of the converter's; `sent` was the client's."""
    words = told(answer).replace(sent, "")
    assert bait.secret not in words
    assert str(data_dir) not in words
    assert str(bait.directory) not in words or bait.marker in words  # a name that the client has given
    assert (found := INSIDES.search(words)) is None, f"{found}: {words}"
    assert DEFECT not in words
