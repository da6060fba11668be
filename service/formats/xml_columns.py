"""Refuses XML with more columns than can be converted, of which its driver would make one after another for minutes."""

import re
from pathlib import Path

from service.errors import Rejection
from service.formats.facts import MAX_COLUMNS
from service.formats.left_out import chunks

LEAST_BYTES = len("<a/>")
"""What the value of a column takes at least."""
KML_ENDS = re.compile(rb"</(?:Schema|ExtendedData|Placemark)>")
KML_NAMES = re.compile(rb"<(?:Simple(?:Field|Data)|Data)\s[^<>]*?\bname\s*=\s*[\"']([^\"'<>]*+)")
GML_ENDS = re.compile(rb"embers?>|\s(?:gml:id|fid)=")
GML_NAMES = re.compile(rb"<([\w:.-]++)")
TOO_MANY = "The file has more columns than can be converted. Leave some out and send it again."
MOST_BYTES, PLACE_BYTES = 16 << 20, 128
"""What the names of one file may take in memory, and each beside its own length: 100,000 are more than anybody has."""


class Room:
    """The memory for names of columns that are kept while a file is looked at."""

    def __init__(self) -> None:
        self._left = MOST_BYTES

    def take(self, *names: bytes) -> None:
        """Note that `names` are kept as well.

        Raises:
            Rejection: they are too many.
        """
        self._left -= sum(map(len, names)) + PLACE_BYTES
        if self._left < 0:
            raise Rejection(TOO_MANY)


def require_few_columns(path: Path, ends: re.Pattern[bytes], names: re.Pattern[bytes]) -> None:
    """Refuse the file at `path` if what is between two of `ends` in its first MiB has too many different `names`.

    Blocking. A file whose features have few columns each, but many together, is left to the converter.

    Raises:
        Rejection: it has.
    """
    for feature in ends.split(next(chunks(path), b"")):
        if len(feature) > LEAST_BYTES * MAX_COLUMNS and len(set(names.findall(feature))) > MAX_COLUMNS:
            raise Rejection(TOO_MANY)
