"""A pytest plugin that runs the longest tests first, so that all workers finish at about the same time.

What needs whole servers takes seconds, what needs none milliseconds. A stable order also gives each worker of xdist
the same tests, without which it refuses to run.
"""

import pytest

LONGEST_FIRST = (
    "schedules",
    "fleet",
    "e2e",
    "adversary",
    "api",
    "sandbox",
    "hostile",
    "integration",
    "integration/formats",
    "unit",
)
"""Directories of tests; one that is not among them comes before them."""


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Sort by directory; within one, the order is kept."""
    places = {directory: place for place, directory in enumerate(LONGEST_FIRST)}

    def place(item: pytest.Item) -> int:
        _, directory, *inside = item.nodeid.split("/", 3)  # to take paths apart takes far longer
        return places.get(f"{directory}/{inside[0]}" if inside else "", places.get(directory, -1))

    items.sort(key=place)
