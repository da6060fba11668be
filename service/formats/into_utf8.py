"""Rewrites texts in other encodings as UTF-8, in little memory."""

import codecs
from collections.abc import Callable, Iterator
from pathlib import Path

from service.errors import Rejection
from service.formats.opened import created, opened

CHUNK = 64 << 10
"""A little at a time: while one is decoded, no other thread of the service runs."""
MOST_BYTES = 128 << 20
"""What is brought into UTF-8 at most: no upload is larger, but what an archive unpacks to may be."""
UTF8 = "utf-8"


def require_few(all_bytes: int) -> None:
    """Refuse documents that are too large to be rewritten, of `all_bytes` together.

    Raises:
        Rejection: they are.
    """
    if all_bytes > MOST_BYTES:
        raise Rejection(
            f"The file has {-(-all_bytes >> 20):,} MiB of text that is not UTF-8, or not declared as UTF-8; at most "
            f"{MOST_BYTES >> 20} MiB are converted from another encoding. Save it as UTF-8 and send it again."
        )


def require_utf8(path: Path, title: str) -> None:
    """Refuse a file of a format `title` in another encoding. Blocking.

    Raises:
        Rejection: it is not UTF-8.
    """
    line = first_other_line(path)
    if line:
        raise Rejection(
            f"The file is not UTF-8 text, which {title} must be: see line {line:,}. Save it as UTF-8 and send it again."
        )


def first_other_line(path: Path, encoding: str = UTF8) -> int:
    """The first line, from 1, that is not in `encoding`, of which ASCII is a part; 0 if there is none. Blocking."""
    decoder = codecs.getincrementaldecoder(encoding)()
    read = held = 0
    try:
        for piece in pieces(path):
            held = len(decoder.getstate()[0])  # of a character that the last piece began
            if held or not piece.isascii():
                decoder.decode(piece, final=not piece)
            read += len(piece)
    except UnicodeDecodeError as error:
        return _line_at(path, read - held + error.start)
    return 0


def _line_at(path: Path, offset: int) -> int:
    """The line of the file, from 1, in which the byte at `offset` is."""
    lines = 1
    for piece in pieces(path):
        lines += piece[: max(0, offset)].count(b"\n")
        offset -= len(piece)
    return lines


def write_utf8(
    path: Path,
    target: Path,
    encoding: str,
    errors: str,
    declare: Callable[[bytes], bytes] = bytes,
    *,
    change: Callable[[str], str] = str,
) -> int:
    """Write the file into the new file `target`, as UTF-8; return how many characters were replaced. Blocking.

    `errors` is what codecs do with other bytes; `declare` changes the start of the file to what declares UTF-8, and
    `change` whole lines, unless one is longer than `CHUNK`.
    """
    decoder = codecs.getincrementaldecoder(encoding)(errors)
    replaced = 0
    rest = ""
    with created(target) as file:
        for number, piece in enumerate(pieces(path)):
            text = decoder.decode(piece if number else declare(piece), final=not piece)
            replaced += text.count("\ufffd")
            text = rest + text
            end = (text.rfind("\n") + 1 if piece else 0) or len(text)
            rest = text[end:]
            file.write(change(text[:end]).encode())
    return replaced


def pieces(path: Path) -> Iterator[bytes]:
    """The content of a file, and an empty piece at its end."""
    with opened(path) as file:
        while piece := file.read(CHUNK):
            yield piece
    yield b""
