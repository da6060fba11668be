"""Shortens the text of KML, GML and GPX for checks of it: of features that differ in plain texts alone, one stays.

Programs write features one like another. A regular expression made of one of them passes the others in a fifth of the
time that the checks would take.
"""

import re
from collections import Counter
from collections.abc import Callable, Sequence
from itertools import islice
from pathlib import Path

from service.formats.format import NAMED_REFERENCE, Alike
from service.formats.left_out import chunks
from service.formats.opened import created, removed

LONGEST_FEATURE, LONGEST_TAGS = 64 << 10, 2 << 10
MOST_SAMPLES, MOST_TRIED, MOST_USED, MOST_ELEMENTS = 8, 16, 4, 4
"""How many features of a piece are examined, and how many expressions are made for a file, and used at once; and how
many elements may be features."""
LEAST = 64 << 10
"""Shorter texts take less time than an expression."""
LEAST_SHORTER, FIRST_BYTES = 2, 4 << 20
"""How many times as long as what is left of it a file must be, so that this is worth a file of its own, and after how
much this is decided: of each piece, one expression is made."""
FEATURE = (
    rb"<(?P<element>%(elements)b)(?=[\s/>])[^<>]*+"
    rb"(?:(?<=/)>|>[^<]*+(?:<(?!/?(?:%(elements)b)[\s/>])[^<]*+)*+</(?P=element)>)"
)
PLAIN = re.compile(
    rb"(?:</?[\w:.-]++(?:\s++[\w:.-]++=\"[^\"<>&]*+\")*+\s*+/?>(?:[^<>&]++|" + NAMED_REFERENCE + rb")*+)++"
)
"""A feature without comments, references by number, and the like."""
NAME = re.compile(rb"(?:[\w-]++:)?+([\w.-]++)")
"""The name of an element, in a group without its prefix."""
VARIABLE = re.compile(rb"\s(?P<name>[\w:.-]++)=\"(?P<value>[^\"<>&]*+)(?=\")|>(?P<text>[^<>]*[^\s<>][^<>]*+)")
"""The value of an attribute, or a text that is not blank."""


class Condenser:
    """Shortens the pieces of files, of which each ends anywhere.

    `may_repeat` says whether what the checks find in features like a given one is the same for each of them.
    """

    def __init__(self, alike: Alike, may_repeat: Callable[[bytes], bool]) -> None:
        self._alike = alike
        self._may_repeat = may_repeat
        self._elements: dict[bytes, None] = {}
        self._used: dict[bytes, re.Pattern[bytes]] = {}
        self._tried: set[bytes] = set()

    def condense(self, piece: bytes, passed: Counter[bytes]) -> bytes:
        """The piece, with one feature in place of several consecutive ones that are like it.

        Adds to `passed`, for such a feature, how many were left out.
        """
        if len(piece) < LEAST:
            return piece
        text = piece
        for feature in list(self._used):
            text = self._without(feature, text, passed)
        if len(text) > len(piece) >> 2 and len(self._used) < MOST_USED and len(self._tried) < MOST_TRIED:
            text = self._with_another(text, passed)
        return text

    def _without(self, feature: bytes, text: bytes, passed: Counter[bytes]) -> bytes:
        shorter = self._used[feature].sub(lambda _: feature, text)
        end = feature[feature.rindex(b"<") :]
        mark = end if end.startswith(b"</") else re.sub(rb"(?s)\A(<[\w:.-]++.).*", rb"\1", feature)
        left_out = text.count(mark) - shorter.count(mark)
        if not left_out:
            del self._used[feature]
        passed[feature] += left_out
        return shorter

    def _with_another(self, text: bytes, passed: Counter[bytes]) -> bytes:
        """`text` without those that are like its first plain feature for which there was no expression yet."""
        found = re.search(self._alike.elements, text)
        if found is not None and len(self._elements) < MOST_ELEMENTS:
            self._elements[found[found.lastindex or 0]] = None
        if not self._elements:
            return text
        features = re.compile(FEATURE % {b"elements": b"|".join(map(re.escape, self._elements))})
        for match in islice(features.finditer(text), MOST_SAMPLES):
            feature = match[0]
            if feature not in self._tried and len(feature) <= LONGEST_FEATURE and PLAIN.fullmatch(feature):
                self._tried.add(feature)
                expression = self._expression(feature)
                if expression is not None and self._may_repeat(feature):
                    self._used[feature] = expression
                    return self._without(feature, text, passed)
        return text

    def _expression(self, feature: bytes) -> re.Pattern[bytes] | None:
        """What matches consecutive features that differ from this one in what may differ; None if the rest is long."""
        parts, end, rest = [], 0, len(feature)
        for found in VARIABLE.finditer(feature):
            start, stop = found.span("value" if found["name"] else "text")
            kinds = self._kinds_of(feature, found)
            kind = next((each for each in kinds if _ends(each, feature, start) == stop), None)
            if kind is not None:
                parts += [re.escape(feature[end:start]), kind]
                rest -= stop - start
                end = stop
        if rest > LONGEST_TAGS:
            return None
        return re.compile(rb"(?:%b%b\s*+)++" % (b"".join(parts), re.escape(feature[end:])))

    def _kinds_of(self, feature: bytes, found: re.Match[bytes]) -> Sequence[bytes]:
        """What matches the texts that are alike, for each kind of texts that may be in a place."""
        if found["name"]:
            return self._alike.attributes.get(found["name"], ())
        element = NAME.match(feature, feature.rindex(b"<", 0, found.start()) + 1)
        return self._alike.texts.get(element[1] if element else b"", (self._alike.text,))


def _ends(kind: bytes, feature: bytes, start: int) -> int:
    """Where the text ends that begins at `start` if it is of a kind; 0 if it is not."""
    found = re.compile(kind).match(feature, start)
    return found.end() if found else 0


def shortened(condenser: Condenser, path: Path, target: Path) -> tuple[Path | None, Counter[bytes]]:
    """What `condenser` leaves of the file at `path`, and what it passed. Blocking.

    It is `target`, a new file whose directory is created if needed; None if it would not be much shorter.
    """
    read = 0
    passed: Counter[bytes] = Counter()
    with created(target) as file:
        for piece in chunks(path):
            read += len(piece)
            file.write(condenser.condense(piece, passed))
            if LEAST_SHORTER * (file.tell() - FIRST_BYTES) > read:
                break
        is_shorter = LEAST_SHORTER * file.tell() < read
    if is_shorter:
        return target, passed
    removed(target)
    return None, passed
