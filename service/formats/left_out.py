"""Finds content that a driver drops silently, by words in the text of the file."""

import os
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

from service.errors import Rejection
from service.formats.cutting import cut
from service.formats.format import Format, LeftOut, Reading, reading_of
from service.formats.opened import created, unbuffered

CHUNK = 1 << 20
PIECE = 256 << 10
"""How much an expression looks through at once: no other thread runs meanwhile, and a crafted text takes it ten times
as long as others."""
LONGEST_MATCH = 16 << 10


def has_features(row: Format, path: Path) -> bool:
    """Whether the file at `path` may hold features: by the words of which every one with features has one. Blocking."""
    reading = reading_of(row)
    words = [word for word in (reading.feature_word, reading.outline_word) if word]
    return not words or _has_word(path, words)


def hold_features(row: Format, paths: Sequence[Path]) -> bool:
    """Whether files of `row` are not refused however much is left out of them: one may hold features. Blocking."""
    return any(_has_word(path, [reading_of(row).feature_word]) for path in paths)


def has_match(path: Path, pattern: re.Pattern[bytes], within: bytes = b"") -> bool:
    """Whether `pattern` matches something short in the file at `path`. Blocking.

    `within` is what every match contains, which is found sooner.
    """
    return any(within in text and pattern.search(text) for text in pieces(path))


def warn_of_left_out(row: Format, counts: Mapping[bytes, int], paths: Sequence[Path]) -> Mapping[str, str]:
    """Warnings about what is left out of the files at `paths`, each with its condition.

    `counts` are those of all files. Blocking.

    Raises:
        Rejection: the files contain nothing else, or what would be read wrongly.
    """
    reading = reading_of(row)
    found = {entry: count for entry in reading.left_out if (count := _total(entry, counts))}
    for entry, count in found.items():
        if entry.is_refused:
            raise Rejection(_in_words(entry.sentence, count))
    content = " ".join(
        _in_words(entry.alone or entry.sentence, count) for entry, count in found.items() if entry.is_content
    )
    if content and not hold_features(row, paths):
        raise Rejection(f"The {row.title} holds no features that could be converted. {content}")
    return {_in_words(entry.sentence, count): entry.condition for entry, count in found.items()}


def _total(entry: LeftOut, counts: Mapping[bytes, int]) -> int:
    pattern = entry.pattern if not entry.beside or counts[entry.beside] else b""
    return sum(counts[word] for word in (*entry.words, *entry.entities, pattern) if word)


def _in_words(sentence: str, count: int) -> str:
    return sentence.format(count=f"{count:,}")


class _EntrySearch(NamedTuple):
    """A pattern, what is in and around all its matches, and whether it only matters that there is one."""

    pattern: re.Pattern[bytes]
    within: bytes
    sign: re.Pattern[bytes] | None
    inside: frozenset[bytes]
    is_once: bool

    def may_match(self, text: bytes, entities: frozenset[bytes]) -> bool:
        """Whether `text`, which has parts of `entities`, contains what all matches do."""
        if self.inside and self.inside.isdisjoint(entities):
            return False
        return self.within in text and (self.sign is None or self.sign.search(text) is not None)


class _Searches(NamedTuple):
    """What finds the words and patterns of entries, and the entities that they name."""

    words: Sequence[re.Pattern[bytes]]
    patterns: Sequence[_EntrySearch]
    entities: frozenset[bytes]
    entity: re.Pattern[bytes] | None


class TextTally:
    """Adds to `counts` how often each word, entity and pattern of what `reading` leaves out occurs in a text."""

    def __init__(self, reading: Reading, counts: Counter[bytes]) -> None:
        self._counts = counts
        self._searches = _searches(reading.left_out, reading.entity)
        self._tail = b""
        self._passed = 0
        """How many bytes of the text come before the tail."""
        self._searched: dict[_EntrySearch, int] = {}
        """Where in the text the last match of each ended that was counted: the next one begins behind it."""
        self._entity = b""
        """The last one that has begun, which may go on in the next part."""

    def add(self, text: bytes) -> None:
        """Count in the next part of the text, and in what goes on from the part before."""
        for start in range(0, len(text), PIECE):
            self._add(text[start : start + PIECE])

    def _add(self, text: bytes) -> None:
        old, text = len(self._tail), self._tail + text
        for words in self._searches.words:
            self._counts.update(words.findall(text))
            self._counts.subtract(words.findall(text, 0, old))
        entities = self._count_entities(text, old)
        for search in self._searches.patterns:
            pattern = search.pattern
            if (search.is_once and self._counts[pattern.pattern]) or not search.may_match(text, entities):
                continue
            start = max(0, self._searched.get(search, 0) - self._passed)
            matches, every = pattern.finditer(text, start), not pattern.groups
            if ends := [end for match in matches if (every or match.lastindex) and (end := match.end()) > old]:
                self._counts[pattern.pattern] += len(ends)
                self._searched[search] = self._passed + ends[-1]
        self._tail = text[-LONGEST_MATCH:]
        self._passed += len(text) - len(self._tail)

    def _count_entities(self, text: bytes, old: int) -> frozenset[bytes]:
        """Return the names of the entities of which `text` has a part; its first `old` bytes have been counted."""
        entity = self._searches.entity
        if entity is None:
            return frozenset()
        names = entity.findall(text)
        found = frozenset({*names, self._entity})
        if told := found & self._searches.entities:
            before = entity.findall(text, 0, old)
            for name in told:
                self._counts[name] += names.count(name) - before.count(name)
        self._entity = names[-1] if names else self._entity
        return found


@lru_cache
def _searches(entries: tuple[LeftOut, ...], entity: bytes) -> _Searches:
    """What finds the words, entities and patterns of `entries`.

    Words that begin with the same byte are found together: to look for each by itself takes several times as long.
    """
    words = [word for entry in entries for word in entry.words]
    together = {word[:1]: [re.escape(other[1:]) for other in words if other[:1] == word[:1]] for word in words}
    searches = {
        entry.beside: _EntrySearch(re.compile(entry.beside), b"", None, frozenset(), is_once=True)
        for entry in entries
        if entry.beside
    }
    searches |= {
        entry.pattern: _EntrySearch(
            re.compile(entry.pattern),
            entry.within,
            re.compile(entry.sign) if entry.sign else None,
            entry.inside,
            is_once=False,
        )
        for entry in entries
        if entry.pattern
    }
    return _Searches(
        [re.compile(re.escape(first) + b"(?:%b)" % b"|".join(ends)) for first, ends in together.items()],
        list(searches.values()),
        frozenset(name for entry in entries for name in entry.entities),
        re.compile(entity) if entity else None,
    )


def _has_word(path: Path, words: Sequence[bytes]) -> bool:
    return any(word in text for text in pieces(path) for word in words)


def pieces(path: Path) -> Iterator[bytes]:
    """The content of the file at `path`, each piece after the end of the one before. Blocking."""
    tail = b""
    for chunk in chunks(path, PIECE):
        text = tail + chunk
        yield text
        tail = text[-LONGEST_MATCH:]


def pieces_to(path: Path, end: bytes, longest: int) -> Iterator[bytes]:
    """The content of the file at `path`, each piece but the last up to an `end`, unless none is within `longest` bytes.

    Blocking.
    """

    def end_in(text: bytes) -> int:
        last = text.rfind(end)
        behind = last + len(end) if last >= 0 else 0
        return behind if len(text) - behind <= longest else len(text)

    return cut(chunks(path, PIECE), end_in)


def written(target: Path, texts: Iterable[bytes]) -> Path:
    """Return the new file `target`, which holds `texts`; its directory is created if needed. Blocking."""
    with created(target) as file:
        file.writelines(texts)
    return target


def chunks(path: Path, size: int = CHUNK) -> Iterator[bytes]:
    """The content of the file at `path`, in pieces of `size` bytes."""
    with unbuffered(path) as file:
        size = min(size, os.fstat(file.fileno()).st_size + 1)  # allocating a mebibyte takes longer than a small file
        while chunk := file.read(size):
            yield chunk
