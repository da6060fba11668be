"""Finds data of KML with the name of other data in its feature, of which the driver reads one.

For the driver, as here, ASCII letters are the same as their capitals.
"""

import re
from collections import Counter
from collections.abc import Sequence

from service.formats.names import shown

CHUNK = 1 << 20
FEATURE_END = b"</extendeddata"
DATA = re.compile(rb"(?><((?:simple)?data)\s[^<>]*?\bname\s*=\s*(?:\"([^\"<>]*)\"|'([^'<>]*)'))[^<>]*+(?<!/)>")
"""Data that may have a value, in lower case."""
REPEATED = "Features with several data of the same name, ignoring case ({}), such as {!r}: only the last value is read."
MIXED = "Features with Data and SimpleData of the same name, ignoring case ({}), such as {!r}: Data is not read."


class RepeatedData:
    """Finds names that features of a KML have twice, in its text."""

    def __init__(self) -> None:
        self._counts: Counter[str] = Counter()
        self._examples: dict[str, bytes] = {}
        self._rest = b""

    def add(self, text: bytes) -> None:
        """Look at the next piece of the text."""
        *features, self._rest = (self._rest + text.lower()).split(FEATURE_END)
        self._look_at(features)
        if len(self._rest) > CHUNK:  # a feature as long as none is
            self._end()

    def _end(self) -> None:
        """Look at what follows the data of the last feature."""
        self._look_at([self._rest])
        self._rest = b""

    def _look_at(self, features: Sequence[bytes]) -> None:
        """Look at features, of which most have data of the same names as others: at each list of names once."""
        for data, times in Counter(tuple(DATA.findall(feature)) for feature in features).items():
            distinct = set(data)
            if len(distinct) < len(data):
                self._count(REPEATED, b"".join(Counter(data).most_common(1)[0][0][1:]), times)
            if len({found[0] for found in distinct}) > 1:
                name, count = Counter(b"".join(quoted) for _, *quoted in distinct).most_common(1)[0]
                if count > 1:
                    self._count(MIXED, name, times)

    def _count(self, sentence: str, name: bytes, times: int) -> None:
        self._counts[sentence] += times
        self._examples.setdefault(sentence, name)

    def told(self) -> list[str]:
        """What to tell of the text, which has ended."""
        self._end()
        return [
            sentence.format(f"{count:,}", shown(self._examples[sentence].decode("utf-8", "replace")))
            for sentence, count in sorted(self._counts.items(), reverse=True)
        ]
