"""Names of accounts and organizations, which terminals and logs show."""

import argparse

import pytest

from service.cli.account import name


@pytest.mark.parametrize(
    "text", ["Anna", "株式会社\u3000山田", "क्\u200dष", "🏴\U000e0067\U000e007f", "O'Neil & <Co> 100%"]
)
def test_names_of_any_language_are_taken(text: str) -> None:
    """With the marks that join letters and pictures."""
    assert name(text) == text


@pytest.mark.parametrize(
    "text", ["", " ", "a\nb", "a\r", "\x1b[2J", "a\x85b", "a\u2028b", "a\u202etxt.exe", "\u2066a", "a\udcff"]
)
def test_names_that_could_forge_what_a_terminal_or_a_log_shows_are_refused(text: str) -> None:
    """So are bytes that are not UTF-8, which no database stores."""
    with pytest.raises(argparse.ArgumentTypeError, match="UTF-8"):
        name(text)
