"""Cuts content that is read in pieces where nothing that matters is cut. For programs in the sandbox, too."""

from collections.abc import Callable, Iterable, Iterator


def cut(pieces: Iterable[bytes], end_in: Callable[[bytes], int]) -> Iterator[bytes]:
    """The content of `pieces`, in ones that end where `end_in` says; what is behind that is put before the next one."""
    rest = b""
    for piece in pieces:
        text = rest + piece
        end = end_in(text)
        yield text[:end]
        rest = text[end:]
    yield rest
