"""The name under which a client saves a result: cleaned once, then safe in a URL, a header and a file system."""

import unicodedata
from pathlib import PurePosixPath
from urllib.parse import quote

FALLBACK = "result"
MAX_NAME_BYTES = 180

_REPLACED = str.maketrans(dict.fromkeys('/\\:*?"<>|', "_"))


def download_name(untrusted_name: str, extension: str) -> str:
    """Return the base name of the uploaded file with the extension of the result: `roads.v2.geojson` → `roads.v2.zip`.

    Directories in the name are dropped, whichever system wrote them; `extension` may begin with its dot or not.
    """
    base = PurePosixPath(untrusted_name.replace("\\", "/")).stem
    suffix = "." + extension.lstrip(".")
    return _clean(base, MAX_NAME_BYTES - len(suffix.encode())) + suffix


def clean_name(name: str) -> str:
    """Return `name` without what a header, a path or a file system would trip over; never empty, never dots alone."""
    return _clean(name, MAX_NAME_BYTES)


def content_disposition(name: str) -> str:
    """Return the header that makes a client save a download as `name` (RFC 6266).

    Names beyond ASCII come twice: for clients of today in UTF-8 (RFC 8187), for the others with underscores.
    """
    cleaned = clean_name(name)
    plain = "".join(char if char.isascii() and char != "%" else "_" for char in cleaned)
    header = f'attachment; filename="{plain}"'
    return header if plain == cleaned else f"{header}; filename*=UTF-8''{quote(cleaned, safe='')}"


def _clean(name: str, max_bytes: int) -> str:
    plain = name.isascii() and name.isprintable()
    visible = name if plain else "".join(char for char in name if char.isspace() or _is_visible(char))
    # Only now, when nothing stands any more between two blanks, or between a letter and its accent.
    words = " ".join(unicodedata.normalize("NFC", visible).split())
    cut = words.translate(_REPLACED).encode()[:max_bytes].decode(errors="ignore")
    return cut.strip(" .") or FALLBACK


def _is_visible(char: str) -> bool:
    # Category C: controls, the marks that reverse the direction of text, lone surrogates, unassigned code points.
    return not unicodedata.category(char).startswith("C")
