"""Finds data of KML with the name of other data in its feature, of which the driver reads the last.

For the driver, as here, ASCII letters are the same as their capitals.
"""

import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from service.formats.names import shown

CHUNK = 1 << 20
FEATURE_END = b"</extendeddata"
DATA = re.compile(rb"(?><((?:simple)?data)\s[^<>]*?\bname\s*=\s*(?:\"([^\"<>]*)\"|'([^'<>]*)'))[^<>]*+(?<!/)>")
"""Data that may have a value, in lower case; data without a Schema does not replace that with one."""


def repeated_data(path: Path) -> str:
    """A warning about names that features in the KML at `path` have twice, or "". Blocking."""
    count, example = 0, b""
    for feature in _features(path):
        names = DATA.findall(feature)
        if len(set(names)) < len(names):
            count += 1
            example = example or b"".join(Counter(names).most_common(1)[0][0][1:])
    if not count:
        return ""
    return (
        f"Features with several data of one name, apart from capital letters ({count:,}), such as "
        f"{shown(example.decode('utf-8', 'replace'))!r}: only the last value is read."
    )


def _features(path: Path) -> Iterator[bytes]:
    """The content of the file at `path` in lower case, divided after the data of each feature."""
    rest = b""
    with path.open("rb") as file:
        while chunk := file.read(CHUNK):
            *features, rest = (rest + chunk.lower()).split(FEATURE_END)
            yield from features
            if len(rest) > CHUNK:  # a feature as long as none is
                yield rest
                rest = b""
    yield rest
