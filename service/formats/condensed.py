"""Shortens the text of KML, GML and GPX for checks of it: of features that differ in plain texts alone, one stays.

Programs write features one like another, of which some lack values that others have. A regular expression made of a few
of them passes the others in a fifth of the time that the checks would take.
"""

import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from graphlib import CycleError, TopologicalSorter
from itertools import chain, islice, pairwise
from pathlib import Path
from typing import NamedTuple

from service.formats.format import NAMED_REFERENCE, Alike
from service.formats.left_out import chunks
from service.formats.opened import created, removed

LONGEST_FEATURE, LONGEST_TAGS = 64 << 10, 2 << 10
MOST_SAMPLES, MOST_TRIED, MOST_USED, MOST_ELEMENTS, MOST_MISSING = 64, 16, 4, 4, 100
"""How many features of a piece are examined, and how many expressions are made for a file, and used at once; how many
elements may be features, and how many in a row may be missing."""
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
NIL = b' xsi:nil="true"/>'
"""How an element ends that says to have no value."""
_REST = rb"(?:>[^<>]*[^\s<>][^<>]*+</[\w:.-]++>|" + NIL + rb")"
"""What is behind the beginning of an element that has a text alone, or no value."""
NAME = re.compile(rb"(?:[\w-]++:)?+([\w.-]++)")
"""The name of an element, in a group without its prefix."""
VARIABLE = re.compile(rb"\s(?P<name>[\w:.-]++)=\"(?P<value>[^\"<>&]*+)(?=\")|>(?P<text>[^<>]*[^\s<>][^<>]*+)")
"""The value of an attribute, or a text that is not blank."""


Elements = Mapping[bytes, bytes]
"""Elements, by how they begin."""


class Prototype(NamedTuple):
    """A feature, or what those consist of that are like it."""

    solid: tuple[bytes, ...]
    """What all of them have, in parts: before, between and behind the others."""
    missing: tuple[Elements, ...] = ()
    """What some of them have."""

    def spans(self) -> Iterator[tuple[bytes, bytes]]:
        """Each part, and how it begins if it may be missing."""
        for solid, missing in zip(self.solid, (*self.missing, {}), strict=True):
            yield solid, b""
            for tag, element in missing.items():
                yield element, tag

    def holding(self, elements: Elements) -> bytes:
        """A feature that has these of the elements that may be missing."""
        return b"".join(elements.get(tag, b"") if tag else part for part, tag in self.spans())

    def shape(self) -> list[bytes]:
        """The tags that all of them have."""
        return [VARIABLE.sub(b"", part) for part in self.solid]


class _Likeness(NamedTuple):
    """What matches consecutive features that are alike, and one of them, and the tags that none had until now."""

    several: re.Pattern[bytes]
    one: re.Pattern[bytes]
    unseen: set[bytes]

    def stand_in(self, run: re.Match[bytes]) -> bytes:
        """The features of a run that are the first to have an element, with or without a value; else its first one."""
        kept = []
        if any(tag in run[0] for tag in self.unseen):
            for feature in self.one.finditer(run[0]):
                if found := {tag for tag in self.unseen if tag in feature[0]}:
                    kept.append(feature[0])
                    self.unseen.difference_update(found)
        first = self.one.match(run[0])
        return b"".join(kept) or (first[0] if first else b"")


class Condenser:
    """Shortens the pieces of files, of which each ends anywhere.

    `may_repeat` says whether what the checks find in features like given ones is the same for each of them.
    """

    def __init__(self, alike: Alike, may_repeat: Callable[[Sequence[bytes]], bool]) -> None:
        self._alike = alike
        self._may_repeat = may_repeat
        self._row = re.compile(rb"(?:%b%b\s*+)++" % (alike.missing, _REST))
        self._element = re.compile(rb"(%b)%b" % (alike.missing, _REST))
        self._elements: dict[bytes, None] = {}
        self._used: dict[bytes, _Likeness] = {}
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
        likeness = self._used[feature]
        shorter = likeness.several.sub(likeness.stand_in, text)
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
        expression = re.compile(FEATURE % {b"elements": b"|".join(map(re.escape, self._elements))})
        features = (match[0] for match in islice(expression.finditer(text), MOST_SAMPLES))
        plain = [each for each in features if len(each) <= LONGEST_FEATURE and PLAIN.fullmatch(each)]
        for at, feature in enumerate(plain):
            if feature in self._tried:
                continue
            self._tried.add(feature)
            for prototype in self._prototypes(plain[at:]):
                likeness = self._likeness(prototype, has_nils=any(NIL in each for each in plain))
                if likeness is not None:
                    whole = b"".join(part for part, _ in prototype.spans())
                    self._used[whole] = likeness
                    return self._without(whole, text, passed)
        return text

    def _prototypes(self, features: Sequence[bytes]) -> Iterator[Prototype]:
        """What the first of `features` is one of together with those after it; and itself."""
        first, *others = map(self._parted, features)
        alike = [first, *(other for other in others if other.shape() == first.shape())]
        rows = [_together(rows) for rows in zip(*(prototype.missing for prototype in alike), strict=True)]
        if rows and all(rows):
            yield Prototype(first.solid, tuple(rows))
        yield Prototype((features[0],))

    def _parted(self, feature: bytes) -> Prototype:
        """The feature with its elements that others like it may lack, unless it has too many, or one twice."""
        solid, missing, end = [], [], 0
        for row in self._row.finditer(feature):
            found = [*self._element.finditer(row[0])]
            missing.append({element[1]: element[0] for element in found})
            if len(missing[-1]) < len(found) or len(found) > MOST_MISSING:
                return Prototype((feature,))
            solid.append(feature[end : row.start()])
            end = row.end()
        return Prototype((*solid, feature[end:]), tuple(missing))

    def _likeness(self, prototype: Prototype, *, has_nils: bool) -> _Likeness | None:
        """What matches features like this; None if the checks may find something else in them, or tags are long."""
        texts = {tag: part for part, tag in prototype.spans() if tag}
        nils = {tag: tag + NIL for tag in texts} if has_nils else {}
        expression, rest = [], 0
        for part, tag in prototype.spans():
            pattern, length = self._expression(part)
            either = b"|".join((pattern, *([re.escape(nils[tag])] if tag in nils else [])))
            expression.append(rb"(?:(?:%b)\s*+)?+" % either if tag else pattern)
            rest += length
        kinds: list[Elements] = [{}, *({tag: text} for tag, text in texts.items()), texts, nils] if texts else [{}]
        if rest > LONGEST_TAGS or not self._may_repeat([*map(prototype.holding, kinds)]):
            return None
        one = b"".join(expression)
        unseen = {*nils.values(), *(tag + b">" for tag in texts)}
        return _Likeness(re.compile(rb"(?:%b\s*+)++" % one), re.compile(one), unseen)

    def _expression(self, part: bytes) -> tuple[bytes, int]:
        """What matches a part of features that differ from this one in what may differ, and how long the rest is."""
        parts, end, rest = [], 0, len(part)
        for found in VARIABLE.finditer(part):
            start, stop = found.span("value" if found["name"] else "text")
            kinds = self._kinds_of(part, found)
            kind = next((each for each in kinds if _ends(each, part, start) == stop), None)
            if kind is not None:
                parts += [re.escape(part[end:start]), kind]
                rest -= stop - start
                end = stop
        return b"".join([*parts, re.escape(part[end:])]), rest

    def _kinds_of(self, feature: bytes, found: re.Match[bytes]) -> Sequence[bytes]:
        """What matches the texts that are alike, for each kind of texts that may be in a place."""
        if found["name"]:
            return self._alike.attributes.get(found["name"], ())
        element = NAME.match(feature, feature.rindex(b"<", 0, found.start()) + 1)
        return self._alike.texts.get(element[1] if element else b"", (self._alike.text,))


def _together(rows: Sequence[Elements]) -> Elements:
    """The elements of all rows, with texts if any has one, in an order that is that of each; none if there is none."""
    order = TopologicalSorter[bytes]({tag: () for row in rows for tag in row})
    for before, tag in chain.from_iterable(map(pairwise, rows)):
        order.add(tag, before)
    texts = {tag: element for row in reversed(rows) for tag, element in row.items() if not element.endswith(NIL)}
    try:
        tags = [*order.static_order()]
    except CycleError:
        return {}
    return {tag: texts.get(tag, tag + NIL) for tag in tags} if len(tags) <= MOST_MISSING else {}


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
