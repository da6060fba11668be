"""Writes the texts in cells of an ODS workbook as its driver reads them. Runs in the sandbox, for `opendocument`.

The driver joins what is before and behind the elements that stand for spaces, tabs and line ends, takes the texts of
comments, readings and drawings for those of cells, and reads no headings. It leaves out cells that others cover, and
takes several of them in one element for a single one. Uses only the standard library.
"""

import re
from collections import Counter

from service.engine.jailed.results import times_of

BESIDE_TEXT = re.compile(
    rb"<(?P<name>office:annotation|text:note|text:ruby-text)(?=[\s>/])(?:[^<>]*+(?<=/)>"
    rb"|[^<>]*+>(?:[^<]++|<(?!/(?P=name)\s*+>))*+(?:</(?P=name)\s*+>|(?P<cut>\Z)))"
)
"""A comment on a cell, a note on its text, or how that is read."""
DRAWING = re.compile(rb"<(?:(?P<ends>/)?+draw:[^<>]*+(?<!/)>|(?P<cell>/?table:table-cell)\b)")
"""Where a drawing begins or ends, or a cell, in which it does."""
HEADING = re.compile(rb"(?<=<)(/?)text:h(?=[\s/>])")
CHARACTERS = re.compile(
    rb"<text:(?P<name>s|tab|line-break)(?=[\s/>])(?:[^<>]*?\btext:c\s*=\s*[\"'](?P<count>\d{1,4})[\"'])?+[^<>]*+"
    rb"(?:(?<=/)>|>\s*+</text:(?P=name)\s*+>)"
)
"""An element that stands for characters, of spaces up to some thousands."""
MEANT = {b"s": b" ", b"tab": b"\t", b"line-break": b"\n"}
COVERED = re.compile(rb"<table:covered-table-cell\s[^<>]*?\boffice:value-type\b")
COVERED_RUN = re.compile(
    rb"<table:covered-table-cell(?=[^<>]*?\stable:number-columns-repeated\b)[^<>]*+"
    rb"(?:(?<=/)>|>(?:[^<]++|<(?!/?table:(?:covered-)?+table-cell\b))*+</table:covered-table-cell\s*+>)"
)
"""Several cells that others cover, which the driver takes for one, so that the cells behind them move."""
STRING = re.compile(
    rb"(?P<start><table:table-cell(?=(?>[^<>]*?\soffice:string-value\s*+=\s*+)"
    rb"(?:\"(?P<value>[^\"<>]*+)\"|'(?P<quoted>[^'<>]*+)'))"
    rb"(?![^<>]*?\stable:formula\s*+=)(?:[^<>/]++|/(?!>))*+)"
    rb"(?:/>|>(?:[^<]++|<(?!/?table:table-cell\b))*+</table:table-cell\s*+>)"
)
"""A cell whose tag says its text, unless a formula results in it, which cells show.
The driver reads only what a cell shows, and that may be nothing."""
UNTYPED = re.compile(
    rb"<table:table-cell(?=[\s>])(?![^<>]*?\s(?:office:value-type|table:formula)\s*+=)[^<>]*+(?<!/)"
    rb"(?=>\s*+<text:p\b[^<>]*+(?<!/)>(?!</text:p))"
)
"""The start of a cell that shows a text and does not say that it is one, of which the driver reads nothing."""
MERGED = re.compile(rb"<table:table-cell\b(?=[^<>]*?-spanned\s*+=\s*+[\"'](?!1[\"']))")
LINK = re.compile(rb"<text:a[\s>]")
PADDED = re.compile(rb"<table:table-cell(?>[^<>]*?\soffice:value\s*+=)[^<>]*+><text:p>0\d")
"""A cell that shows zeros before its number."""
SIGN = rb"(?:[A-DF-Za-df-z$]|\xc2[\xa2-\xa5\xb0]|\xe2\x82[\xa0-\xbf])"
"""A letter other than that of an exponent, or one of ¢, £, ¤, ¥, ° and the other signs of currencies."""
WORDED = re.compile(
    rb"<table:table-cell\b(?=[^<>]*?\soffice:value\s*+=)(?:(?=[^<>]*?[\"']currency[\"'])[^<>]*+>"
    rb"|[^<>]*+>\s*+<text:p\b[^<>]*+>(?:&[#\w]{1,8}+;|(?!" + SIGN + rb")[^<&])*+" + SIGN + rb")"
)
"""A cell that shows letters or signs beside its number."""
PERCENT = re.compile(rb"<table:table-cell\b(?=[^<>]*?[\"']percentage[\"'])[^<>]*+>")
COMMENTS, READINGS, DRAWINGS = "comments", "phonetic", "drawings"
HIDDEN, ERRORS, LINKS, ZEROS, LIVE = "covered", "errors", "links", "padded", "live"
LIVE_TEXT = re.compile(rb"<table:table-cell\b[^<>]*+>\s*+<text:p\b[^<>]*+>(?:<text:span\b[^<>]*+>)*+(?=of:=)(?<!/>)")
"""The start of a cell with a text that the driver would take for a formula."""
ERROR = re.compile(rb"\bcalcext:value-type\s*+=\s*+[\"']error[\"']")
COUNTED = {
    HIDDEN: (b"covered", COVERED),
    ERRORS: (b"error", ERROR),
    "merged": (b"-spanned", MERGED),
    LINKS: (b"<text:a", LINK),
}
"""What is counted by kind, each with what a part of a workbook must hold, which is found in less time."""
SHOWN = {ZEROS: (b"<text:p>0", PADDED), "worded": (b"office:value", WORDED), "percent": (b"percentage", PERCENT)}
"""What cells show, in the same way; they may stand for several."""
MARKS = (
    *("<text:s/", "<text:s ", "<text:tab", "<text:line-break", "<text:a "),
    *("<text:h", "<text:note", "<text:ruby-text", "<draw:"),
    *("<office:annotation", '-spanned="', ">of:=", '="error"', '="percentage"', '="currency"'),
)
"""The texts that show that there may be something of this in a workbook, beside covered values."""


def plain_texts(part: bytes, found: Counter[str]) -> bytes:
    """Cells whose texts the driver reads as they are; adds to `found` what is left out, and errors, which are texts.

    What is left out includes what a cell shows beside its number: zeros, letters, signs. An apostrophe keeps texts from
    being calculated.
    """
    for kind, (mark, pattern) in COUNTED.items():
        found[kind] += len(pattern.findall(part)) if mark in part else 0
    for kind, (mark, pattern) in SHOWN.items():
        found[kind] += sum(times_of(cell[0]) for cell in pattern.finditer(part)) if mark in part else 0
    for beside in BESIDE_TEXT.finditer(part):
        found[READINGS if b"ruby" in beside["name"] else COMMENTS] += beside["cut"] is None
    text = BESIDE_TEXT.sub(lambda beside: b"" if beside["cut"] is None else beside[0], part)
    text = _without_drawings(text, found) if b"<draw:" in text else text
    text = HEADING.sub(rb"\1text:p", text) if b"text:h" in text else text
    text = UNTYPED.sub(rb'\g<0> office:value-type="string"', text)
    text = STRING.sub(_said, text) if b"office:string-value" in text else text
    text = COVERED_RUN.sub(
        lambda run: b'<table:table-cell table:number-columns-repeated="%d"/>' % times_of(run[0]), text
    )
    text = CHARACTERS.sub(lambda element: MEANT[element["name"]] * int(element["count"] or 1), text)
    if b"of:=" not in text:
        return text
    found[LIVE] += sum(map(times_of, LIVE_TEXT.findall(text)))
    return LIVE_TEXT.sub(rb"\g<0>'", text)


def _without_drawings(text: bytes, found: Counter[str]) -> bytes:
    """Cells without what is drawn on them, which may hold texts, and other drawings."""
    pieces: list[bytes] = []
    end = begin = depth = 0
    for tag in DRAWING.finditer(text):
        if tag["cell"] is not None:
            depth = 0
        elif tag["ends"] is None:
            begin = begin if depth else tag.start()
            depth += 1
        elif depth:
            depth -= 1
            if not depth:
                pieces.append(text[end:begin])
                end = tag.end()
    found[DRAWINGS] += len(pieces)
    return b"".join((*pieces, text[end:]))


def _said(cell: re.Match[bytes]) -> bytes:
    return b"%b><text:p>%b</text:p></table:table-cell>" % (cell["start"], cell["value"] or cell["quoted"] or b"")
