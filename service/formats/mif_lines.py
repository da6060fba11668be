"""Finds objects of a .mif whose parts share lines, although its driver expects each on a line of its own."""

import re
from pathlib import Path

from service.errors import Rejection
from service.formats.left_out import pieces_to

LONGEST_LINE = 16 << 10
RUN_ON = re.compile(
    rb"^[ \t]*+(?:"
    rb"(?:(?:point|line|rect|roundrect|ellipse|arc)[ \t]++)?+(?:[-+.\d]\S*+[ \t]++){2,6}+"
    rb"(?=(?:pen|brush|symbol|smooth|center|font|spacing|justify|angle|label)\b)"
    rb'|(?:text[ \t]++)?+"(?:[^"\r\n]|"")*+"[ \t]++(?=[-+.\d])'
    rb"|region[ \t]++\d++[ \t]++(?=\d++[ \t]*+\r?$))",
    re.IGNORECASE | re.MULTILINE,
)
"""What a style, the box of a text, or the number of positions of a ring follows on the same line."""
UNREAD = re.compile(
    rb"^[ \t]*+(?:(?:region|pline|multipoint)[ \t]++\d++[ \t]++[-+.\d]++[ \t]++[-+.\d]"
    rb"|region(?:[ \t]*+\r?$|[ \t]++\d++[ \t]*+\r?\n[ \t]*+\d++[ \t]++[-+.\d]))",
    re.IGNORECASE | re.MULTILINE,
)
"""An object of which a line holds numbers and positions, or the numbers are on another line than they should be."""
SHARED_LINE = (
    "Line {line:,} of the .mif cannot be read: the numbers and positions of an object are not on the lines where MIF "
    "has them. Write Region and the number of its rings on one line, the number of positions of each ring on the next, "
    "and each position on a line of its own; Pline and Multipoint with their number on one line. Then send it again."
)


def has_shared_lines(mif: Path) -> bool:
    """Whether parts of objects in `mif` share lines in a way that can be mended. Blocking.

    Raises:
        Rejection: they do so in another way, with which geometries would be wrong or missing.
    """
    is_shared, line = False, 1
    for text in pieces_to(mif, b"\n", LONGEST_LINE):
        if unread := UNREAD.search(text):
            raise Rejection(SHARED_LINE.format(line=line + text.count(b"\n", 0, unread.start())))
        is_shared = is_shared or RUN_ON.search(text) is not None
        line += text.count(b"\n")
    return is_shared
