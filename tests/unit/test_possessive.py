"""Possessive repeats of groups match on every Python, also on that of Debian 12."""

import re

import pytest

import service  # noqa: F401 -- which mends them


@pytest.mark.parametrize(
    ("pattern", "text"),
    [
        (r"<a>[^<]*+(?:<(?!/?a\b)[^<]*+)*+</a>", "<a>x<b>y</b></a>"),
        (r"(?:[^<]++|<(?!/b))*+</b", "xx<c>yy</b"),
        (r"<k>(?:\s|<!--(?:[^-]|-(?!->))*+-->)*+<m", "<k> <!-- a-b -->\n<m"),
    ],
)
def test_possessive_repeats_of_groups_match(pattern: str, text: str) -> None:
    """Otherwise the looks for what a driver leaves out would find nothing, and tell nothing."""
    assert re.search(pattern, text)


def test_possessive_repeats_give_nothing_back() -> None:
    """Nor do they in the mended form."""
    assert not re.search(r"^(?:ab?)*+b", "abab")
