"""Texts of GML beside elements are counted, each once, and nothing that is a text alone."""

from pathlib import Path

import pytest

from service.formats.gml_mixed import LONGEST, TOLD, MixedContent
from service.formats.registry import find_output
from service.formats.text_checks import check_texts

NOTES = {
    "<a:n>text</a:n>": 0,
    "<a:n>\n <a:k>1</a:k>\n <a:l/>\n</a:n>": 0,
    "<a:n>see <a:k>1</a:k></a:n>": 1,
    "<a:n>see<a:k/>there</a:n>": 2,
    "<a:n><a:k>1</a:k > and <a:l>2</a:l>\n.</a:n>": 2,
    "<a:n>see <a:k b='/> x'>1</a:k></a:n>": 1,
    "<a:n><a:k b='x > y'><a:l>1</a:l></a:k></a:n>": 0,
    "<a:n>a /> b > c</a:n>": 0,
    "<a:n>&lt;b&gt;see&lt;/b&gt; there</a:n>": 0,
    "<a:n>a<![CDATA[<b>see</b> there <br/> x]]>b</a:n>": 0,
    "<a:n><![CDATA[see]]> <a:k>1</a:k></a:n>": 1,
    "<a:n><a:k>1</a:k><![CDATA[ ]]></a:n>": 0,
    "<a:n>see<!-- <a:k>1</a:k> there --> it</a:n>": 0,
    "<a:n><!--x--><a:k>1</a:k><!-- <![CDATA[ --></a:n>": 0,
    "<a:n><a:k>1</a:k><!-- - -->there</a:n>": 1,
    "<a:n><a:k>1</a:k><!--x--><!----><!---> <a:k>1</a:k> it --><!--<!-- -->there</a:n>": 1,
    "<a:n><a:k>1</a:k><!----><!-- --><![CDATA[<!--]]><!----><!-- <a:k>1</a:k> it --></a:n>": 1,
    f"<a:n>{'long ' * LONGEST}<a:k>1</a:k></a:n>": 1,
    f"<a:n>{'long ' * LONGEST}</a:n>": 0,
    f"<a:n><a:{'k' * 80}>1</a:{'k' * 80}>there</a:n>": 1,
    f"<a:n><a:{'k' * 80}>1</a:{'k' * 80}></a:n>": 0,
}
START = '<?xml version="1.0"?>\n<!DOCTYPE C>\n<C>\n'


@pytest.mark.parametrize("note", NOTES, ids=range(len(NOTES)))
@pytest.mark.parametrize("size", [1, 7, 1 << 20])
def test_texts_beside_elements_are_counted(note: str, size: int) -> None:
    """Wherever the pieces of the text end; neither markup in CDATA, escaped markup, comments nor attributes count."""
    if size == 1 and len(note) > LONGEST:
        size = 4001
    text = f"{START}{note}\n<a:f>{note}</a:f>\n</C>\n"
    assert _told(text.encode(), size) == ([TOLD.format(2 * NOTES[note])] if NOTES[note] else [])


@pytest.mark.no_cover
@pytest.mark.parametrize(
    "part", ["<", "<a", "<a>", "<a>b", "</a>", "</a>b", "<!--", "<!---->", "<![CDATA[", "a", "<a b='", "</", ">b", "/>"]
)
def test_of_a_crafted_text_little_is_kept(part: str) -> None:
    """What is kept is read again with each piece that follows."""
    reading = MixedContent()
    for _ in range(3):
        reading.add(part.encode() * ((1 << 20) // len(part)))
        assert len(reading._rest) + len(reading._held) <= 2 * LONGEST
    reading.told()


def test_what_is_told_of_texts_beside_elements_is_that_they_were_left_out(tmp_path: Path) -> None:
    """Not that they lost the blanks at their beginning, as a text alone does."""
    path = tmp_path / "a.gml"
    note = "<a:n>see <a:k>1</a:k> there</a:n>"
    path.write_text(f"<C><m:member><a:f>{note}</a:f></m:member></C>", encoding="utf-8")
    assert check_texts(find_output("Gml"), [path]) == ([TOLD.format(2)], {})


def _told(text: bytes, size: int) -> list[str]:
    reading = MixedContent()
    for start in range(0, len(text), size):
        reading.add(text[start : start + size])
    return reading.told()
