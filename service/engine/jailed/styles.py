"""Makes the driver understand a workbook's formats of cells. Runs in the sandbox: `python -m …styles XLSX PLAIN`.

Only its format distinguishes a date from a number. The driver looks for some letters in a format, wherever they are. It
knows no hour, day or month of one letter, and takes a number for a date if the text beside it has them. Uses only the
standard library.
"""

import lzma
import re
import shutil
import struct
import sys
import zipfile
import zlib
from pathlib import Path
from xml.sax.saxutils import unescape

MEMBER = "xl/styles.xml"
BOOK_MEMBER = "xl/workbook.xml"
MOST_BYTES = 16 << 20
CODE = re.compile(rb"""(\bformatCode\s*=\s*(?P<quote>["']))(.*?)((?P=quote))""", re.DOTALL)
SINCE_1904 = re.compile(rb"""\bdate1904\s*=\s*["'](?:1|true)["']""")
BUILT_IN_DATE = re.compile(rb"""\bnumFmtId\s*=\s*["'](?:14|15|16|17|22)["']""")
LITERAL = re.compile(r'"[^"]*"|\\.|_.|\*.|\[[^\[\]]*\]', re.DOTALL)
"""Parts of a format that are no placeholders: texts, blanks, colours, conditions."""
ELAPSED = re.compile(r"\[(?:h+|m+|s+)\]")
FRACTION = re.compile(r"s\.0+")
DIGIT = re.compile("[0#?]")
TIME = re.compile("[hs]")
DAY = re.compile("[dy]")
DAY_OR_MONTH = re.compile("[dym]")
"""Beside hours or seconds, `m` stands for minutes."""
QUOTES = {"&quot;": '"', "&apos;": "'"}
UNREADABLE = (
    zipfile.BadZipFile,
    zlib.error,
    lzma.LZMAError,
    struct.error,
    KeyError,
    EOFError,
    OSError,
    MemoryError,
    OverflowError,
    NotImplementedError,
    RuntimeError,
    ValueError,
)
"""What `zipfile` raises: a member that is damaged, missing or cut off, packed in an unknown way, or encrypted."""


def main(workbook: str, plain: str, early: str) -> None:
    """Write a copy of `workbook` to `plain` whose formats the driver understands, unless it understands all of them.

    Also create the file `early` if the driver, which counts days from 1900, reads dates as earlier ones.
    """
    try:
        with zipfile.ZipFile(workbook) as book:
            content, description = _read(book, MEMBER), _read(book, BOOK_MEMBER)
    except UNREADABLE:
        return  # the driver reports what is wrong
    understood = CODE.sub(lambda found: found[1] + _understood(found[3]) + found[4], content)
    if len(content) < MOST_BYTES and understood != content:
        _copy_with(understood, workbook, plain)
    if SINCE_1904.search(description) and (BUILT_IN_DATE.search(content) or b"YYYY-MM-DD" in understood):
        Path(early).touch()


def _read(book: zipfile.ZipFile, member: str) -> bytes:
    with book.open(member) as file:
        return file.read(MOST_BYTES)


def _understood(code: bytes) -> bytes:
    """The format `code`, or a plain one of the same kind if the driver could mistake it."""
    text = unescape(code.decode("utf-8", "replace"), QUOTES).lower()
    placeholders = FRACTION.sub("s", LITERAL.sub("", text).partition(";")[0])
    if "general" in placeholders:
        return code
    is_number = ELAPSED.search(text) or DIGIT.search(placeholders)
    is_time = not is_number and bool(TIME.search(placeholders))
    is_date = not is_number and bool((DAY if is_time else DAY_OR_MONTH).search(placeholders))
    if is_date:
        return b"YYYY-MM-DD HH:MM:SS.000" if is_time else b"YYYY-MM-DD"
    if is_time and "h" in placeholders:
        return b"HH:MM:SS"
    return b"0" if re.search("[dhy]", text) else code


def _copy_with(styles: bytes, workbook: str, plain: str) -> None:
    """Copy `workbook`, and put `styles` after its members; the former ones are not listed any more."""
    shutil.copyfile(workbook, plain)
    with zipfile.ZipFile(plain, "a", zipfile.ZIP_DEFLATED) as book:
        book.filelist = [member for member in book.filelist if member.filename != MEMBER]
        del book.NameToInfo[MEMBER]
        book.writestr(MEMBER, styles)


if __name__ == "__main__":
    main(*sys.argv[1:4])
