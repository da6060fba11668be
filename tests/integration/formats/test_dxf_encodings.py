"""DXF in the encodings that programs write, of which the driver knows few."""

from pathlib import Path

import msgspec
import pytest

from tests.integration.formats import readers
from tests.integration.formats.pipeline import Pipeline

DRAWN = "0\nSECTION\n2\nENTITIES\n0\nTEXT\n8\n{layer}\n10\n1\n20\n2\n40\n1\n1\n{text}\n0\nENDSEC\n0\nEOF\n"
HEADER = "0\nSECTION\n2\nHEADER\n{}0\nENDSEC\n"
VERSION, CODE_PAGE = "9\n$ACADVER\n1\n{}\n", "9\n$DWGCODEPAGE\n3\n{}\n"
NO_CODE_PAGE = "names no code page"


def write(path: Path, encoding: str, text: str, *variables: str) -> Path:
    """A drawing of one text, on a layer of the same name, whose header has these variables."""
    header = HEADER.format("".join(variables)) if variables else ""
    path.write_bytes((header + DRAWN.format(layer=text, text=text)).encode(encoding))
    return path


def drawing(version: str, code_page: str = "ANSI_1252") -> tuple[str, str]:
    """The variables of a usual header."""
    return VERSION.format(version), CODE_PAGE.format(code_page)


async def converted(pipeline: Pipeline, path: Path) -> tuple[list[str | None], tuple[str, ...]]:
    """The text and the layer that arrive, and what the client is told of the reading."""
    done = await pipeline.to("GeoJson", path, source_epsg=4326)
    (drawn,) = readers.geojson(done.path)
    columns = msgspec.convert(drawn["properties"], dict[str, str | None])
    return [columns["Text"], columns["Layer"]], done.source.warnings


CASES = {
    "UTF-8 since 2007": ("utf-8", "Grüße € 日本", drawing("AC1021")),
    "UTF-8 of today": ("utf-8", "Łódź", drawing("AC1032", "ANSI_1250")),
    "a code page": ("cp1252", "Grüße €", drawing("AC1015")),
    "a code page of Central Europe": ("cp1250", "Łódź", drawing("AC1009", "ansi_1250")),
    "a code page of Japan": ("cp932", "東京", drawing("AC1018", "ANSI_932")),
    "a code page of DOS": ("cp850", "Grüße", drawing("AC1009", "DOS850")),
    "UTF-8 without a code page": ("utf-8", "Łódź", (VERSION.format("AC1009"),)),
    "UTF-8 without a header": ("utf-8", "Łódź", ()),
    "ASCII": ("ascii", "abc", drawing("AC1009", "unknown")),
}


@pytest.mark.parametrize("case", CASES)
async def test_texts_and_layers_of_drawings_arrive_in_every_encoding(
    pipeline: Pipeline, tmp_path: Path, case: str
) -> None:
    """DXF is read in UTF-8 from 2007 on, and in its code page before."""
    encoding, text, variables = CASES[case]
    path = write(tmp_path / "a.dxf", encoding, text, *variables)
    assert await converted(pipeline, path) == ([text, text], ())


ESCAPED = {
    r"\U+4e2d\U+6587 \U+00E4": "中文 ä",
    r"a\U+D83D\U+DE00b": "a\U0001f600b",
    r"\U+D83D \U+DE00 \U+000A": r"\U+D83D \U+DE00 \U+000A",
    r"\\U+4E2D \U+4E2": r"\\U+4E2D \U+4E2",
}
"""Texts, and what they say."""


@pytest.mark.parametrize("variables", [(), drawing("AC1009"), drawing("AC1027")])
@pytest.mark.parametrize("text", ESCAPED)
async def test_characters_that_a_drawing_writes_by_their_codes_arrive(
    pipeline: Pipeline, tmp_path: Path, text: str, variables: tuple[str, ...]
) -> None:
    """As programs write those that a code page does not have; halves of a character and line ends stay codes."""
    path = write(tmp_path / "a.dxf", "ascii", text, *variables)
    assert await converted(pipeline, path) == ([ESCAPED[text]] * 2, ())


async def test_characters_by_their_codes_arrive_wherever_they_are_in_a_file(pipeline: Pipeline, tmp_path: Path) -> None:
    path = write(tmp_path / "a.dxf", "cp1252", r"ü\U+4E2D", *drawing("AC1015"))
    start, text = path.read_bytes().split(b"0\nSECTION\n2\nENTITIES\n")
    for blanks in range(65_400, 65_560, 7):
        remark = b"999\n" + b"-" * (blanks - len(start)) + b"\n"
        path.write_bytes(start + remark + b"0\nSECTION\n2\nENTITIES\n" + text)
        assert await converted(pipeline, path) == (["ü中"] * 2, ())


@pytest.mark.parametrize("variables", [(), drawing("AC1021"), drawing("AC1009", "ANSI_1")])
async def test_text_in_no_declared_encoding_is_taken_for_windows_1252(
    pipeline: Pipeline, tmp_path: Path, variables: tuple[str, ...]
) -> None:
    """Text that is not UTF-8, in a drawing that names no other encoding, is taken for Windows-1252 with a warning."""
    path = write(tmp_path / "a.dxf", "cp1252", "Grüße €", *variables)
    texts, (told,) = await converted(pipeline, path)
    assert texts == ["Grüße €"] * 2
    assert NO_CODE_PAGE in told


async def test_characters_that_a_code_page_lacks_are_counted(pipeline: Pipeline, tmp_path: Path) -> None:
    """Bytes that stand for no character in the code page that a drawing names are reported."""
    path = write(tmp_path / "a.dxf", "latin-1", "a\x81", *drawing("AC1009"))
    texts, told = await converted(pipeline, path)
    assert (texts, told) == (
        ["a\ufffd"] * 2,
        ("2 characters that the code page of the file does not have became U+FFFD.",),
    )
