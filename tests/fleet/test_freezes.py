"""A worker that is frozen at any step for longer than its lease: another one ends its job, and that end stands."""

from collections.abc import Iterator

import pytest

from tests.fleet.freezes import Freezer, open_freezer
from tests.fleet.freezing import STEPS, WHEN
from tests.fleet.site import Site

pytestmark = pytest.mark.xdist_group("fleet")


@pytest.fixture(scope="module")
def freezer(shared_fleet: Site) -> Iterator[Freezer]:
    """A third worker, which stops itself."""
    shared_fleet.revive()
    with open_freezer(shared_fleet) as opened:
        yield opened


@pytest.mark.usefixtures("fleet")
@pytest.mark.parametrize("when", WHEN)
@pytest.mark.parametrize("step", STEPS)
def test_the_end_of_another_worker_stands(freezer: Freezer, step: str, when: str) -> None:
    freezer.freeze(step, when)
