"""Finds content that a driver drops silently, by words in the text of the file."""

import re
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
    return is_wide or any(word in text for text, _ in _pieces(path) for word in words)


def warn_of_left_out(row: Format, paths: Sequence[Path]) -> Mapping[str, str]:
    """Warnings about what is left out of the files at `paths`, each with the column that makes it obsolete, or "".

    Blocking; takes half a second for 100 MB.

    Raises:
        Rejection: the files contain nothing else.
    """
    reading = reading_of(row)
    if not reading.left_out:
        return {}
    words = [reading.feature_word, *(word for entry in reading.left_out for word in entry.words)]
    patterns = [entry.pattern for entry in reading.left_out if entry.pattern]
    by_path = (_count(path, words, patterns) for path in paths)
    counts = {word: sum(found) for word, *found in zip((*words, *patterns), *by_path, strict=True)}
    found = {entry: count for entry in reading.left_out if (count := _total(entry, counts))}
    if not counts[reading.feature_word] and any(entry.is_content for entry in found):
        listed = " ".join(_sentence(entry, count) for entry, count in found.items() if entry.is_content)
        raise Rejection(f"The {row.title} holds no features that could be converted. {listed}")
    return {_sentence(entry, count): entry.column for entry, count in found.items()}


def _total(entry: LeftOut, counts: Mapping[bytes, int]) -> int:
    return sum(counts[word] for word in (*entry.words, entry.pattern) if word)


def _sentence(entry: LeftOut, count: int) -> str:
    return entry.sentence.format(count=f"{count:,}")


def _count(path: Path, words: Sequence[bytes], patterns: Sequence[bytes] = ()) -> list[int]:
    """How often each of `words` and `patterns` occurs; not in UTF-16, which does not contain them as such."""
    counts = [0] * (len(words) + len(patterns))
    compiled = [re.compile(pattern) for pattern in patterns]
    for text, old in _pieces(path):
        for at, word in enumerate(words):
            counts[at] += text.count(word, max(0, old - len(word) + 1))
        for at, pattern in enumerate(compiled, len(words)):
            counts[at] += sum(match.end() > old for match in pattern.finditer(text))
    return counts


def _pieces(path: Path) -> Iterator[tuple[bytes, int]]:
    """The content of the file at `path`, and how much of each piece is the end of the one before."""
    tail = b""
    with path.open("rb") as file:
        while chunk := file.read(CHUNK):
            text = tail + chunk
            yield text, len(tail)
            tail = text[-LONGEST_MATCH:]
