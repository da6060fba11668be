"""Which releases of GDAL a row of the format table means."""

import pytest

from service.formats.releases import covers


@pytest.mark.parametrize(
    ("releases", "version", "expected"),
    [
        ("3.9-", "3.9.0", True),
        ("3.9-", "3.13.3", True),
        ("3.9-", "3.8.5", False),
        ("-3.9", "3.8.5", True),
        ("-3.9", "3.9.0", False),
        ("3.9-3.12", "3.11.4", True),
        ("3.9-3.12", "3.12.0", False),
        ("3.12.2-", "3.12.1", False),
        ("3.12-", "4.0.0dev", True),
        ("3.12-", "unknown", False),
        ("-3.12", "unknown", True),
    ],
)
def test_releases_are_compared_by_their_numbers(releases: str, version: str, *, expected: bool) -> None:
    """From a release on, before one, or both."""
    assert covers(releases, version) == expected
