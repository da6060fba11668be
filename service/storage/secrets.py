"""The secrets that sign local download links: set by the operator, or generated once and kept in a private file."""

import os
import secrets
from pathlib import Path

from service.settings import SettingsError

MIN_CHARACTERS = 32


def parse_secrets(text: str) -> tuple[bytes, ...]:
    """Split `text` at commas and white space into secrets; the first one signs, all are accepted.

    Raises:
        SettingsError: there is no secret, or one is too short.
    """
    found = tuple(text.replace(",", " ").split())
    if not found or min(map(len, found)) < MIN_CHARACTERS:
        raise SettingsError(
            f"GEOMILL_LINK_SECRETS needs at least one secret, each of {MIN_CHARACTERS} characters or more; "
            "separate several with commas and put the one that signs first."
        )
    return tuple(secret.encode() for secret in found)


def stored_secrets(path: Path) -> tuple[bytes, ...]:
    """Return the secrets in the file at `path`, which is created (mode 0600) if it does not exist.

    Safe if several processes start at the same time: the file appears atomically, and the first process wins.
    """
    if not path.exists():
        _create(path)
    return parse_secrets(path.read_text(encoding="ascii"))


def _create(path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    draft = path.with_name(f".{path.name}.{secrets.token_hex(8)}")
    try:
        with os.fdopen(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w", encoding="ascii") as file:
            file.write(secrets.token_urlsafe(32) + "\n")
            file.flush()
            os.fsync(file.fileno())
        os.link(draft, path)
    except FileExistsError:
        return
    finally:
        draft.unlink(missing_ok=True)
