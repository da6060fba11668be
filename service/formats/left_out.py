"""Finds content that a driver drops silently, by words in the text of the file."""

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from service.errors import Rejection
from service.formats.format import Format, LeftOut, reading_of

CHUNK = 1 << 20
LONGEST_MATCH = 16 << 10
UTF16 = (b"\xff\xfe", b"\xfe\xff")
"""What a text of two bytes a letter begins with."""


def has_features(row: Format, path: Path) -> bool:
    """Whether the file at `path` may hold features: by the words of which every one with features has one. Blocking."""
    reading = reading_of(row)
    words = [word for word in (reading.feature_word, reading.outline_word) if word]
    if not words:
        return True
    with path.open("rb") as file:
        is_wide = file.read(2) in UTF16
    return is_wide or _has_word(path, words)


def has_match(path: Path, pattern: re.Pattern[bytes]) -> bool:
    """Whether `pattern` matches something short in the file at `path`. Blocking."""
    return any(pattern.search(text) for text, _ in _pieces(path))


def warn_of_left_out(row: Format, paths: Sequence[Path]) -> Mapping[str, str]:
    """Warnings about what is left out of the files at `paths`, each with the column that makes it obsolete, or "".

    Blocking; takes about a second for 100 MB of KML.

    Raises:
        Rejection: the files contain nothing else.
    """
    reading = reading_of(row)
    if not reading.left_out:
        return {}
    counts: Counter[bytes] = Counter()
    for path in paths:
        counts.update(_count(path, reading.left_out))
    found = {entry: count for entry in reading.left_out if (count := _total(entry, counts))}
    content = " ".join(_sentence(entry, count) for entry, count in found.items() if entry.is_content)
    if content and not any(_has_word(path, [reading.feature_word]) for path in paths):
        raise Rejection(f"The {row.title} holds no features that could be converted. {content}")
    return {_sentence(entry, count): entry.column for entry, count in found.items()}


def _total(entry: LeftOut, counts: Mapping[bytes, int]) -> int:
    pattern = entry.pattern if not entry.beside or counts[entry.beside] else b""
    return sum(counts[word] for word in (*entry.words, pattern) if word)


def _sentence(entry: LeftOut, count: int) -> str:
    return entry.sentence.format(count=f"{count:,}")


def _count(path: Path, entries: Sequence[LeftOut]) -> Counter[bytes]:
    """How often each word and pattern of `entries` occurs; not in UTF-16, which does not contain them as such."""
    counts: Counter[bytes] = Counter()
    words = _searches([word for entry in entries for word in entry.words])
    wanted = {pattern for entry in entries for pattern in (entry.pattern, entry.beside) if pattern}
    patterns = {pattern: re.compile(pattern) for pattern in wanted}
    for text, old in _pieces(path):
        for search in words:
            counts.update(search.findall(text))
            counts.subtract(search.findall(text, 0, old))
        for pattern, search in patterns.items():
            matches = (match for match in search.finditer(text) if match.lastindex or not search.groups)
            counts[pattern] += sum(match.end() > old for match in matches)
    return counts


def _searches(words: Sequence[bytes]) -> list[re.Pattern[bytes]]:
    """Regular expressions that find `words`: those that begin with the same byte together.

    To look for each by itself takes several times as long.
    """
    together = {word[:1]: [re.escape(other[1:]) for other in words if other[:1] == word[:1]] for word in words}
    return [re.compile(re.escape(first) + b"(?:%b)" % b"|".join(ends)) for first, ends in together.items()]


def _has_word(path: Path, words: Sequence[bytes]) -> bool:
    return any(word in text for text, _ in _pieces(path) for word in words)


def _pieces(path: Path) -> Iterator[tuple[bytes, int]]:
    """The content of the file at `path`, and how much of each piece is the end of the one before."""
    tail = b""
    with path.open("rb") as file:
        while chunk := file.read(CHUNK):
            text = tail + chunk
            yield text, len(tail)
            tail = text[-LONGEST_MATCH:]
