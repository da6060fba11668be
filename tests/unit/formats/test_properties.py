"""What is told of a workbook beside its cells, of which only so much is unpacked."""

import zipfile
from pathlib import Path

import pytest

from sandbox.command import Limits
from service.blocking import INLINE_BYTES
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
