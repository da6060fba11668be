"""The files that a browser loads, ours and those of others, each read and compressed once."""

import hashlib
from functools import cache
from pathlib import Path

import msgspec
from isal import igzip

from service.http.page import vendored

OURS = Path(__file__).parent / "files"
PAGE = "index.html"
LEVEL = 3
SMALL_BYTES = 512
_TYPES = {
    ".html": "text/html; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".json": "application/json",
    ".svg": "image/svg+xml",
}
_LINKS = b'<nav aria-label="Pages"'
"""What begins the page's links to others, of which there is one: to the documentation."""
_NAMES = frozenset(path.name for path in OURS.iterdir())


class Asset(msgspec.Struct, frozen=True):
    """A file: unchanged, compressed if that helps, and the identifier of this version."""

    content: bytes
    packed: bytes | None
    media_type: str
    etag: str


def find_asset(name: str) -> Asset | None:
    """Return the file; None if it does not exist or was not installed."""
    if name in _NAMES:
        return _read(OURS / name)
    path = vendored.DIRECTORY / name
    return _read(path) if name in vendored.FILES and path.is_file() else None


@cache
def page_without_docs() -> Asset:
    """Return the page as it is on a port that does not have the documentation."""
    page = _read(OURS / PAGE)
    return _asset(page.content.replace(_LINKS, _LINKS + b" hidden"), page.media_type)


@cache
def _read(path: Path) -> Asset:
    return _asset(path.read_bytes(), _TYPES.get(path.suffix, "text/plain"))


def _asset(content: bytes, media_type: str) -> Asset:
    packed = igzip.compress(content, LEVEL) if len(content) > SMALL_BYTES else None
    return Asset(content, packed, media_type, f'"{hashlib.sha256(content).hexdigest()[:32]}"')
