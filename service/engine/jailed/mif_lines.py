"""Gives all parts of objects of a .mif the lines on which its driver expects them. Runs in the sandbox."""

from pathlib import Path

from service.formats.mif_lines import RUN_ON

PIECE = 256 << 10


def on_lines_of_their_own(text: bytes) -> bytes:
    """Whole lines of a .mif, with a break wherever what begins a line of its own follows something."""
    for _ in range(2):  # a text, its box and its font may be on one line
        text = RUN_ON.sub(rb"\g<0>\n", text)
    return text


def main(file: str, copy: str) -> None:
    """Write the .mif `file` to `copy` with all parts of its objects on lines of their own."""
    with Path(file).open("rb") as read, Path(copy).open("xb") as written:
        while lines := read.readlines(PIECE):
            written.write(on_lines_of_their_own(b"".join(lines)))
