"""Finds data of KML with the name of other data in its feature, of which the driver reads the last.

For the driver, as here, ASCII letters are the same as their capitals.
"""

import re
from collections import Counter

from service.formats.names import shown

CHUNK = 1 << 20
FEATURE_END = b"</extendeddata"
DATA = re.compile(rb"(?><((?:simple)?data)\s[^<>]*?\bname\s*=\s*(?:\"([^\"<>]*)\"|'([^'<>]*)'))[^<>]*+(?<!/)>")
"""Data that may have a value, in lower case; data without a Schema does not replace that with one."""


class RepeatedData:
    """Finds names that features of a KML have twice, in its text."""

    def __init__(self) -> None:
        self._count, self._example, self._rest = 0, b"", b""

    def add(self, text: bytes) -> None:
        """Look at the next piece of the text."""
        *features, self._rest = (self._rest + text.lower()).split(FEATURE_END)
        for feature in features:
            self._look_at(feature)
        if len(self._rest) > CHUNK:  # a feature as long as none is
            self.end()

    def end(self) -> None:
        """Look at what follows the data of the last feature."""
        self._look_at(self._rest)
        self._rest = b""

    def _look_at(self, feature: bytes) -> None:
        names = DATA.findall(feature)
        if len(set(names)) < len(names):
            self._count += 1
            self._example = self._example or b"".join(Counter(names).most_common(1)[0][0][1:])

    @property
    def warning(self) -> str:
        """What to tell about them, or ""."""
        if not self._count:
            return ""
        return (
            f"Features with several data of one name, apart from capital letters ({self._count:,}), such as "
            f"{shown(self._example.decode('utf-8', 'replace'))!r}: only the last value is read."
        )
