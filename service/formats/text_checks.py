"""Checks the text of uploads for what their drivers would lose without a warning, in one reading of each."""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Protocol

from service.formats.condensed import Condenser, shortened
from service.formats.dxf_blocks import UndefinedBlocks
from service.formats.format import Format, Reader, reading_of
from service.formats.gml_geometries import FurtherGeometries
from service.formats.gml_mixed import MixedContent
from service.formats.kml_repeated import RepeatedData
from service.formats.kml_schemas import UndeclaredData
from service.formats.left_out import CHUNK, TextTally, chunks, warn_of_left_out


class TextCheck(Protocol):
    """A check of the text of a document for what no words and patterns find."""

    def add(self, text: bytes) -> None:
        """Examine the next piece of the text."""

    def told(self) -> list[str]:
        """What to tell of the text, which has ended."""


TEXT_CHECKS: Mapping[Reader, Sequence[Callable[[], TextCheck]]] = {
    Reader.KML: (RepeatedData, UndeclaredData),
    Reader.GML: (FurtherGeometries, MixedContent),
    Reader.DXF: (UndefinedBlocks,),
}


class TextChecks:
    """The checks of the documents of one upload, each of which it may shorten first."""

    def __init__(self, row: Format, directory: Path | None = None) -> None:
        """`directory` is where to write shorter documents, created if needed; without one, none are written."""
        self._row = row
        self._reading = reading_of(row)
        self._directory = directory
        self._checks = TEXT_CHECKS.get(self._reading.reader, ())
        self._condenser = Condenser(self._reading.alike, self._may_repeat) if self._reading.alike else None
        self._shortened: dict[Path, tuple[Path | None, Counter[bytes]]] = {}

    def shorter(self, path: Path) -> Path | None:
        """A file with all kinds of tags that are in the document at `path`, but not all of them. Blocking.

        None if no such file would be much shorter.
        """
        if self._condenser is None or self._directory is None or path.stat().st_size <= CHUNK:
            return None
        if path not in self._shortened:
            target = self._directory / f"shorter_{len(self._shortened)}{path.suffix}"
            self._shortened[path] = shortened(self._condenser, path, target)
        return self._shortened[path][0]

    def tell(self, paths: Sequence[Path]) -> tuple[list[str], Mapping[str, str]]:
        """Warnings about data that is lost in the documents at `paths`, and `warn_of_left_out` of them. Blocking.

        Raises:
            Rejection: the files contain nothing else than what is left out.
        """
        counts: Counter[bytes] = Counter()
        told = [warning for path in paths if self._reading.left_out for warning in self._examine(path, counts)]
        return told, warn_of_left_out(self._row, counts, paths)

    def _examine(self, path: Path, counts: Counter[bytes]) -> list[str]:
        tally, checks = TextTally(self._reading, counts), [check() for check in self._checks]
        for text in self._texts(path, counts):
            tally.add(text)
            for check in checks:
                check.add(text)
        return [warning for check in checks for warning in check.told()]

    def _texts(self, path: Path, counts: Counter[bytes]) -> Iterator[bytes]:
        """The text of the document at `path` to examine; what is told of the rest is added to `counts` at the end."""
        shorter = self.shorter(path)
        passed = Counter(self._shortened[path][1]) if shorter else Counter[bytes]()
        for piece in chunks(shorter or path):
            yield self._condenser.condense(piece, passed) if self._condenser else piece
        for feature, times in passed.items():
            if times:
                for found, count in self._told_of_another(feature).items():
                    counts[found] += count * times

    def _may_repeat(self, features: Sequence[bytes]) -> bool:
        """Whether nothing is told of these but what is counted, and the same in each.

        What only a whole document has does not matter.
        """
        if any(self._tells(feature) for feature in features):
            return False
        first, *others = features
        told = self._told_of_another(first) if others else None
        return all(self._told_of_another(other) == told for other in others)

    def _tells(self, feature: bytes) -> bool:
        for check in (each() for each in self._checks if each is not UndeclaredData):
            check.add(b"<members>%b</members>" % (2 * feature))  # also if one is not told from the next one
            if check.told():
                return True
        return False

    def _told_of_another(self, feature: bytes) -> Counter[bytes]:
        """What is told of a feature that follows one like it."""
        both: Counter[bytes] = Counter()
        one: Counter[bytes] = Counter()
        TextTally(self._reading, both).add(2 * feature)
        TextTally(self._reading, one).add(feature)
        both.subtract(one)
        return both


def check_texts(row: Format, paths: Sequence[Path]) -> tuple[list[str], Mapping[str, str]]:
    """What `TextChecks` find in the files at `paths`. Blocking."""
    return TextChecks(row).tell(paths)
