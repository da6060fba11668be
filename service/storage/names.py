"""The file name of a download, cleaned once so that it is safe in URLs, headers and file systems."""

import unicodedata
from urllib.parse import quote

FALLBACK = "result"
MAX_NAME_BYTES = 180

_REPLACED = str.maketrans(dict.fromkeys('/\\:*?"<>|', "_"))


def download_name(untrusted_name: str, extension: str) -> str:
    """Return the base name of the uploaded file with the extension of the result: `roads.v2.geojson` → `roads.v2.zip`.

    Directories in the name are dropped, in the syntax of any system; `extension` may start with a dot or not.
    """
    base = untrusted_name.replace("\\", "/").rstrip("/").rpartition("/")[2]  # a PurePath costs more than all the rest
    stem = base.rpartition(".")[0] or base
    suffix = "." + extension.lstrip(".")
    return _clean(stem, MAX_NAME_BYTES - len(suffix.encode())) + suffix


def clean_name(name: str) -> str:
    """Return `name` without characters that are unsafe in headers, paths or file systems; never empty or only dots."""
    return _clean(name, MAX_NAME_BYTES)


def content_disposition(name: str) -> str:
    """Return the header that makes a client save a download as `name` (RFC 6266).

    Non-ASCII names appear twice: in UTF-8 (RFC 8187) for current clients, and with underscores for others.
    """
    cleaned = clean_name(name)
    plain = "".join(char if char.isascii() and char != "%" else "_" for char in cleaned)
    header = f'attachment; filename="{plain}"'
    return header if plain == cleaned else f"{header}; filename*=UTF-8''{quote(cleaned, safe='')}"


def _clean(name: str, max_bytes: int) -> str:
    plain = name.isascii() and name.isprintable()
    visible = name if plain else "".join(char for char in name if char.isspace() or _is_visible(char))
    # Only after removals that may bring two blanks, or a letter and its accent, together.
    words = " ".join(unicodedata.normalize("NFC", visible).split())
    cut = words.translate(_REPLACED).encode()[:max_bytes].decode(errors="ignore")
    return cut.strip(" .") or FALLBACK


def _is_visible(char: str) -> bool:
    # Category C: controls, directional marks, lone surrogates, unassigned code points.
    return not unicodedata.category(char).startswith("C")
