"""What is told of a workbook beside its cells, of which only so much is unpacked."""

import sys
import zipfile
from pathlib import Path
from types import FrameType

import pytest

from sandbox.command import Limits
from service.blocking import INLINE_BYTES
from service.formats.archive import PIECE
from service.formats.bounds import Bounds, TooMuch
from service.formats.detect import detect
from service.formats.properties import LINKS, MOST_COUNTED_BYTES
from service.intake.form import Upload
from service.usecases.detect_format import LITTLE, detect_format
from tests.support.space import ample_space

LINK = b'<Relationship Type="http://x.example/relationships/hyperlink"/>'
PART = "xl/worksheets/_rels/sheet{}.xml.rels"
ONE = (LINKS.format(count=1),)


def workbook(path: Path, *parts: bytes, method: int = zipfile.ZIP_DEFLATED) -> Path:
    with zipfile.ZipFile(path, "w", method) as book:
        for number, part in enumerate(parts):
            book.writestr(PART.format(number), part)
    return path


def test_a_bounded_number_of_bytes_is_looked_at(tmp_path: Path) -> None:
    """However many parts of a workbook unpack to megabytes of nothing."""
    path = workbook(tmp_path / "a.xlsx", LINK, *[b" " * (MOST_COUNTED_BYTES // 2)] * 2, LINK)
    assert detect(path, "a.xlsx", tmp_path / "unpacked").warnings == ONE


def test_what_unpacks_in_large_steps_is_not_looked_at(tmp_path: Path) -> None:
    """The driver could not read it either."""
    path = workbook(tmp_path / "a.xlsx", LINK, method=zipfile.ZIP_BZIP2)
    assert detect(path, "a.xlsx", tmp_path / "unpacked", Bounds()).warnings == ()


async def test_more_than_little_is_not_looked_at_in_the_event_loop(tmp_path: Path) -> None:
    """A thread does so instead, with the same result."""
    path = workbook(tmp_path / "a.xlsx", LINK + b" " * INLINE_BYTES)
    with pytest.raises(TooMuch):
        detect(path, "a.xlsx", tmp_path / "unpacked", LITTLE)
    upload = Upload(untrusted_name="a.xlsx", path=path, size_bytes=path.stat().st_size)
    assert (await detect_format(upload, Limits(), ample_space())).warnings == ONE


@pytest.mark.parametrize("padding", range(0, len(LINK), 5))
def test_what_lies_across_two_pieces_is_counted_once(tmp_path: Path, padding: int) -> None:
    """Wherever a piece ends."""
    number = 2 * PIECE // len(LINK)
    path = workbook(tmp_path / "a.xlsx", b" " * padding + LINK * number)
    assert detect(path, "a.xlsx", tmp_path / "unpacked").warnings == (LINKS.format(count=number),)


def test_others_are_served_between_the_pieces(tmp_path: Path) -> None:
    """No other thread runs while an expression does, which takes seconds for 16 MiB that unpack from 16 kB."""
    path = workbook(tmp_path / "a.xlsx", b"<" * MOST_COUNTED_BYTES)
    searches: list[int] = []

    def note(frame: FrameType, event: str, called: object) -> None:
        if event == "c_call" and getattr(called, "__name__", "") in {"findall", "finditer", "search"}:
            searches.append(max((len(each) for each in frame.f_locals.values() if isinstance(each, bytes)), default=0))

    sys.setprofile(note)
    try:
        detect(path, "a.xlsx", tmp_path / "unpacked")
    finally:
        sys.setprofile(None)
    assert len(searches) > MOST_COUNTED_BYTES // PIECE
    assert max(searches) < 2 * PIECE
