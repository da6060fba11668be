"""Looks at the text of uploads for what their drivers would lose without a warning, in one reading of each."""

from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path

from service.formats.format import Format, LeftOut, Reader, reading_of
from service.formats.kml_condensed import Condenser
from service.formats.kml_repeated import RepeatedData
from service.formats.kml_schemas import UndeclaredData
from service.formats.left_out import TextTally, chunks, warn_of_left_out


def look_at(row: Format, paths: Sequence[Path]) -> tuple[list[str], Mapping[str, str]]:
    """Warnings about data that is lost in the files at `paths`, and `warn_of_left_out` of them. Blocking.

    Raises:
        Rejection: the files contain nothing else than what is left out.
    """
    reading = reading_of(row)
    counts: Counter[bytes] = Counter()
    if reading.reader is Reader.KML:
        repeated = [told for path in paths for told in _look_at_kml(reading.left_out, path, counts)]
        return repeated, warn_of_left_out(row, counts, paths)
    for path in paths if reading.left_out else ():
        tally = TextTally(reading.left_out, counts)
        for text in chunks(path):
            tally.add(text)
    return [], warn_of_left_out(row, counts, paths)


def _look_at_kml(entries: tuple[LeftOut, ...], path: Path, counts: Counter[bytes]) -> list[str]:
    repeated, undeclared, tally = RepeatedData(), UndeclaredData(), TextTally(entries, counts)
    condenser = Condenser([word for entry in entries for word in entry.words if word[:1] == b">"], _has_no_repeated)
    for piece in chunks(path):
        text = condenser.condense(piece)
        repeated.add(text)
        undeclared.add(text)
        tally.add(text)
    repeated.end()
    for feature, times in condenser.passed.items():
        again: Counter[bytes] = Counter()
        TextTally(entries, again).add(feature)
        counts.update({found: count * times for found, count in again.items()})
    return [*repeated.warnings, *undeclared.warnings]


def _has_no_repeated(feature: bytes) -> bool:
    repeated = RepeatedData()
    repeated.add(2 * feature)  # also if its data is not told from that of the next one
    repeated.end()
    return not repeated.warnings
