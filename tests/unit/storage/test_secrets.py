"""Where the secrets of local links come from."""

import stat
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from service.settings import SettingsError
from service.storage.secrets import parse_secrets, stored_secrets


def test_several_secrets_are_read_in_their_order() -> None:
    """Separated by commas, spaces or lines; the first one signs."""
    assert parse_secrets(f"{'n' * 32}, {'o' * 40}\n") == (b"n" * 32, b"o" * 40)


@pytest.mark.parametrize("text", ["", " , ", "short", f"{'n' * 32},short"])
def test_what_is_no_secret_stops_the_start(text: str) -> None:
    """A guessable secret is refused, and the message names the setting."""
    with pytest.raises(SettingsError, match="GEOMILL_LINK_SECRETS"):
        parse_secrets(text)


def test_the_first_start_makes_a_private_secret_and_the_next_keeps_it(tmp_path: Path) -> None:
    """Only the owner can read it, nothing else remains, and links survive a restart."""
    path = tmp_path / "data" / "link-secret"
    first = stored_secrets(path)
    assert stored_secrets(path) == first
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert list(path.parent.iterdir()) == [path]


def test_processes_that_start_together_agree_on_one_secret(tmp_path: Path) -> None:
    """The first process decides, and none sees a partial file."""
    path = tmp_path / "link-secret"
    with ThreadPoolExecutor(16) as threads:
        found = set(threads.map(lambda _: stored_secrets(path), range(64)))
    assert len(found) == 1


def test_two_stores_have_two_secrets(tmp_path: Path) -> None:
    """No secret is built in."""
    assert stored_secrets(tmp_path / "a") != stored_secrets(tmp_path / "b")
