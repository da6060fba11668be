"""Shortens the text of KML for looks at what its driver loses: of features that differ in plain texts alone, one stays.

Programs write features one like another. A regular expression made of one of them passes the others in a fifth of the
time that the looks would take.
"""

import re
from collections import Counter
from collections.abc import Callable, Sequence
from itertools import islice

from service.formats.kml_positions import POSITIONS

END = b"</Placemark>"
LONGEST_FEATURE, LONGEST_TAGS = 64 << 10, 2 << 10
MOST_SAMPLES, MOST_TRIED, MOST_USED = 8, 16, 4
"""How many features of a piece are examined, and how many expressions are made for a file, and used at once."""
FEATURE = re.compile(rb"<Placemark[\s>][^<]*+(?:<(?!/?Placemark\b)[^<]*+)*+</Placemark>")
PLAIN = re.compile(rb"(?:</?[\w:]++(?:\s++[\w:]++=\"[^\"<>&]*+\")*+\s*+/?>[^<>&]*+)++")
"""A feature without comments, references and the like."""
ID_VALUE = rb"[^\"<>&]*+"
ID = rb"(?<=^<Placemark id=\")" + ID_VALUE
TEXT = rb">(?!(?:%b)<)[^\s<>&][^<>]*+(?<![\s;])"
"""A text that is no special word, and neither begins nor ends with a blank or a reference to one."""


BEFORE_POSITIONS = b"<coordinates"


class Condenser:
    """Shortens the pieces of one file, of which each ends anywhere.

    `words` are those of which each is a whole text, as `>absolute<`. `may_repeat` says whether what the looks tell of
    features like a given one is the same for each of them.
    """

    def __init__(self, words: Sequence[bytes], may_repeat: Callable[[bytes], bool]) -> None:
        self._text = TEXT % b"|".join(re.escape(word.strip(b"<>")) for word in words)
        self._variable = re.compile(rb"(?P<id>" + ID + rb")|" + self._text)
        self._may_repeat = may_repeat
        self._used: dict[bytes, re.Pattern[bytes]] = {}
        self._tried: set[bytes] = set()
        self.passed: Counter[bytes] = Counter()
        """How many features were left out because they are like this one, which was not."""

    def condense(self, piece: bytes) -> bytes:
        """The piece, with one feature in place of several consecutive ones that are like it."""
        text = piece
        for feature in list(self._used):
            text = self._without(feature, text)
        if len(text) > len(piece) >> 2 and len(self._used) < MOST_USED and len(self._tried) < MOST_TRIED:
            text = self._with_another(text)
        return text

    def _without(self, feature: bytes, text: bytes) -> bytes:
        shorter = self._used[feature].sub(lambda _: feature, text)
        passed = text.count(END) - shorter.count(END)
        if not passed:
            del self._used[feature]
        self.passed[feature] += passed
        return shorter

    def _with_another(self, text: bytes) -> bytes:
        """`text` without those that are like its first plain feature for which there was no expression yet."""
        for found in islice(FEATURE.finditer(text), MOST_SAMPLES):
            feature = found[0]
            if feature not in self._tried and self._is_plain(feature):
                self._tried.add(feature)
                expression = self._expression(feature)
                if expression.fullmatch(feature):
                    self._used[feature] = expression
                    return self._without(feature, text)
        return text

    def _is_plain(self, feature: bytes) -> bool:
        is_short = len(feature) <= LONGEST_FEATURE and len(self._variable.sub(b"", feature)) <= LONGEST_TAGS
        return is_short and PLAIN.fullmatch(feature) is not None and self._may_repeat(feature)

    def _expression(self, feature: bytes) -> re.Pattern[bytes]:
        """What matches consecutive features that differ from this one in its id and plain texts alone."""
        parts, end = [], 0
        for found in self._variable.finditer(feature):
            before = feature[end : found.start()]
            parts += [re.escape(before), self._like(before) if found["id"] is None else ID_VALUE]
            end = found.end()
        return re.compile(rb"(?:%b%b\s*+)++" % (b"".join(parts), re.escape(feature[end:])))

    def _like(self, before: bytes) -> bytes:
        """What matches the texts that may be in the place behind `before`; the looks examine coordinates."""
        return b">" + POSITIONS if before.endswith(BEFORE_POSITIONS) else self._text
