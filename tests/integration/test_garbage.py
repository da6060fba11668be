"""What a request needs is freed with it, and not left to the garbage collector, which would stop the event loop."""

import gc
from collections.abc import Iterator
from pathlib import Path

import pytest

from service.jobs.spec import JobSpec
from tests.support.world import world


@pytest.fixture
def uncollected() -> Iterator[list[object]]:
    """What only the garbage collector would free, from the first to the last collection."""
    gc.collect()
    gc.disable()
    gc.set_debug(gc.DEBUG_SAVEALL)
    yield gc.garbage
    gc.set_debug(0)
    gc.enable()
    gc.garbage.clear()


async def test_an_ended_job_needs_no_garbage_collector(
    uncollected: list[object], database_url: str, tmp_path: Path
) -> None:
    """Its record, its plan and the findings of its file are part of no cycle."""
    async with world(database_url, tmp_path) as here:
        await here.convert()
        gc.collect()
        assert not [each for each in uncollected if isinstance(each, JobSpec)]
