"""Brings XML in encodings that drivers do not know into UTF-8, before anything reads it.

The parser that most drivers use knows UTF-8, UTF-16, ISO 8859-1 and ASCII; others refuse what it reads. UTF-16 is
brought into UTF-8 as well, for what looks at the text. All other encodings here have ASCII in its usual place, so that
the declaration of a file can be read before its encoding is known.
"""

import codecs
import re
from collections.abc import Mapping
from pathlib import Path

from service.errors import Rejection
from service.formats.into_utf8 import UTF8, first_other_line, require_few, write_utf8
from service.formats.names import shown
from service.formats.opened import opened

HEAD_BYTES = 1024
DECLARATION = re.compile(rb"(?:\xef\xbb\xbf)?\s*+<\?xml\s[^<>]{0,200}?encoding\s*=\s*[\"'](?P<name>[\w.:-]{1,40})[\"']")
LEADING = re.compile(rb"\A(?:\xef\xbb\xbf)?\s++(?=<\?xml\s)")
"""White space before the declaration, which parsers refuse."""
ENCODING_OF_TEXT = re.compile(r"\A(<\?xml\s[^<>]{0,200}?)\s{1,99}encoding\s*=\s*[\"'][\w.:-]{1,40}[\"']", re.ASCII)
MARKS_OF_UTF16 = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
READ_BY_DRIVERS = frozenset({"iso-8859-1"})
NOT_TRUE = re.compile(r"utf-?(?:8|16|32)(?:le|be)?|(?:iso-10646-)?ucs-?[24]|(?:us-)?ascii", re.ASCII)
"""Encodings of which one cannot be that of a file whose declaration is ASCII, and others are contained in UTF-8."""
CODECS: Mapping[str, str] = {
    **{
        f"{kind}{number}": f"cp{number}"
        for number in (*range(1250, 1259), 874)
        for kind in ("windows-", "windows", "cp")
    },
    **{
        f"{kind}{part}": f"iso8859-{part}"
        for part in (*range(1, 12), *range(13, 17))
        for kind in ("iso-8859-", "iso8859-", "iso_8859-", "iso8859_")
    },
    **dict.fromkeys(("latin1", "latin-1", "l1", "cp819", "ibm819"), "iso8859-1"),
    **{f"{kind}{page}": f"cp{page}" for page in (437, 850, 852, 855, 857, 858, 866) for kind in ("cp", "ibm")},
    **dict.fromkeys(("shift_jis", "shift-jis", "windows-31j"), "cp932"),
    **dict.fromkeys(("gb2312", "gbk", "gb18030"), "gb18030"),
    **dict.fromkeys(("euc-kr", "ks_c_5601-1987"), "cp949"),
    "koi8-r": "koi8-r",
    "koi8-u": "koi8-u",
    "macintosh": "mac-roman",
    "x-mac-roman": "mac-roman",
    "big5-hkscs": "big5hkscs",
    "euc-jp": "euc-jp",
    "big5": "cp950",
    "tis-620": "cp874",
}
"""Python's names for encodings that files declare, in lower case."""
ASSUMED = "assumed-windows-1252"
"""How to treat what is not UTF-8, as a name for Python's codecs."""
RUN = re.compile(rb"[^<]{16}[^<]*+|[\s\S]{1,16}")
"""What is taken for one text: it ends at a tag, but a crafted file of the shortest ones must not take long."""


def in_utf8(path: Path, target: Path, all_bytes: int) -> tuple[Path, str]:
    """The file to read in place of the XML at `path`, and a warning or "". Blocking.

    It is `path` if drivers can read it, otherwise `target`, a new file whose directory is created if needed.
    `all_bytes` is the size of the upload's documents together.

    Raises:
        Rejection: the file declares an encoding that is not known, or the documents are too large to be rewritten.
    """
    if wide := _wide_encoding(path):
        require_few(all_bytes)
        lost = write_utf8(path, target, wide, "replace", change=_without_encoding)
        return target, _lost(lost, "UTF-16")
    head = _head(path)
    declared, is_late = _declared_in(head), LEADING.match(head) is not None
    name = declared.lower()
    if NOT_TRUE.fullmatch(name):
        return _mended(path, target, all_bytes, is_right=name == UTF8 and not is_late)
    if name in READ_BY_DRIVERS and not is_late:
        return path, ""
    if name not in CODECS:
        raise Rejection(
            f"The file declares the encoding {shown(declared)!r}, which cannot be read. Save it as UTF-8 and send it "
            "again."
        )
    require_few(all_bytes)
    lost = write_utf8(path, target, CODECS[name], "replace", _declared)
    return target, _lost(lost, f"{shown(declared)}, the declared encoding,")


def unknown_encoding(path: Path) -> str:
    """The encoding that the XML at `path` declares if it is not known, or "". Blocking."""
    declared = "" if _wide_encoding(path) else _declared_in(_head(path))
    name = declared.lower()
    return declared if name and name not in {*READ_BY_DRIVERS, *CODECS} and not NOT_TRUE.fullmatch(name) else ""


def _head(path: Path) -> bytes:
    with opened(path) as file:
        return file.read(HEAD_BYTES)


def _declared_in(head: bytes) -> str:
    """The encoding that XML which begins with `head`, and is not UTF-16, declares."""
    found = DECLARATION.match(head)
    return found["name"].decode("ascii", "replace") if found else UTF8


def _wide_encoding(path: Path) -> str:
    """The encoding of the XML at `path` if that is UTF-16, with or without a byte order mark, or ""."""
    with opened(path) as file:
        start = file.read(2)
    if start in MARKS_OF_UTF16:
        return "utf-16"
    return {b"<\0": "utf-16-le", b"\0<": "utf-16-be"}.get(start, "")


def _without_encoding(text: str) -> str:
    """Lines of a file, of which the first may declare UTF-16: without another declaration, XML is in UTF-8."""
    return ENCODING_OF_TEXT.sub(r"\1", text, count=1) if text.startswith("<?xml") else text


def _lost(characters: int, encoding: str) -> str:
    return f"{characters:,} characters that {encoding} does not have became U+FFFD." if characters else ""


def _mended(path: Path, target: Path, all_bytes: int, *, is_right: bool) -> tuple[Path, str]:
    """The same for a file that can only be UTF-8; `is_right` if it begins with a declaration of that, or with none."""
    line = first_other_line(path)
    if is_right and not line:
        return path, ""
    require_few(all_bytes)
    write_utf8(path, target, UTF8, ASSUMED, _declared)
    return target, _assumed(line) if line else ""


def _assumed(line: int) -> str:
    return (
        f"Text that is not UTF-8, first in line {line:,}, was read as Windows-1252, because the file declares no "
        'other encoding. If letters are wrong, declare theirs in its first line, such as <?xml version="1.0" '
        'encoding="windows-1251"?>, or save it as UTF-8.'
    )


def _declared(start: bytes) -> bytes:
    """The start of a file that declares UTF-8, without what is before its declaration."""
    start = LEADING.sub(b"", start, count=1)
    found = DECLARATION.match(start)
    return start if found is None else start[: found.start("name")] + UTF8.encode() + start[found.end("name") :]


def _as_windows(error: UnicodeError) -> tuple[str, int]:
    """Take the text in which UTF-8 ends for Windows-1252."""
    if not isinstance(error, UnicodeDecodeError):
        raise error
    run = RUN.match(error.object, error.start)
    end = len(error.object) if run is None else run.end()
    return error.object[error.start : end].decode("cp1252", "replace"), end


codecs.register_error(ASSUMED, _as_windows)
