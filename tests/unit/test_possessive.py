"""Possessive repeats of groups match on every Python, also on that of Debian 12."""

import re
from collections.abc import Iterator
from typing import Any

import pytest

import service  # noqa: F401 -- which mends them where that is needed
from service.possessive import mend_possessive_repeats


@pytest.fixture(params=["as it is", "mended"])
def _parser(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Patterns are compiled as this Python does with the package, or as older ones do."""
    parser: Any = vars(re)["_parser"]
    monkeypatch.setattr(parser, "parse", parser.parse)  # so that it is restored
    if request.param == "mended":
        mend_possessive_repeats()
    re.purge()
    yield
    re.purge()


@pytest.mark.usefixtures("_parser")
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


@pytest.mark.usefixtures("_parser")
def test_possessive_repeats_give_nothing_back() -> None:
    """Nor do they in the mended form."""
    assert not re.search(r"^(?:ab?)*+b", "abab")
