"""What waits for the workers of a fleet, as its autoscaler sees it."""

from datetime import timedelta
from pathlib import Path
from uuid import uuid4

from service.ids import ServerId
from service.jobs.handovers import Backlog, HandOvers
from service.jobs.leases import Leases
from tests.integration.test_poison import LEASE, admitted, claim, claim_as
from tests.support.world import World, world

AS_LARGE = "UPDATE job SET input_size_bytes = 9 << 20 WHERE id = $1"
AS_CONVERTED = """
UPDATE job SET status = 'Completed', completed_at = service_time(), expires_at = service_time() + interval '1 day',
               processing_time_ms = $2
 WHERE id = $1
"""


async def execute(here: World, statement: str, *arguments: object) -> None:
    """Change what the database says."""
    async with here.services.database.connection() as connection:
        await connection.execute(statement, *arguments)


async def test_only_what_no_living_worker_has_begun_waits(database_url: str, tmp_path: Path) -> None:
    """A claimed job does not; one whose worker has died does, since its admission."""
    async with world(database_url, tmp_path) as here:
        handovers = HandOvers(here.services.database, here.services.leases.server_id, LEASE)
        assert await handovers.backlog() == Backlog(0, 0.0, 0.0)
        await here.move_to(here.clock.now)
        first, _second = await admitted(here), await admitted(here)
        await here.advance(timedelta(seconds=5))
        worker = Leases(here.services.database, ServerId(uuid4()), LEASE)
        await worker.beat()
        await claim_as(worker, here, first)
        assert await handovers.backlog() == Backlog(1, 5.0, 1.0)
        await here.advance(LEASE + timedelta(seconds=1))
        await claim(here, first, begins=True)
        assert await handovers.backlog() == Backlog(2, LEASE.total_seconds() + 6.0, 2.0)


async def test_jobs_wait_for_as_long_as_their_like_have_taken(database_url: str, tmp_path: Path) -> None:
    """Those of a format and size for the mean of them, others for the mean of all."""
    async with world(database_url, tmp_path) as here:
        handovers = HandOvers(here.services.database, here.services.leases.server_id, LEASE)
        for milliseconds in (100, 300):
            await execute(here, AS_CONVERTED, await admitted(here), milliseconds)
        large = await admitted(here)
        await execute(here, AS_LARGE, large)
        await execute(here, AS_CONVERTED, large, 8000)
        await admitted(here)
        assert (await handovers.backlog()).converter_seconds == 0.2
        waiting = await admitted(here)
        await execute(here, AS_LARGE, waiting)
        assert (await handovers.backlog()).converter_seconds == 8.2
        await execute(here, "UPDATE job SET input_format = 'kml' WHERE id = $1", waiting)
        assert (await handovers.backlog()).converter_seconds == 0.2 + 2.8


async def test_the_queue_of_a_process_without_workers_counts_until_a_converter_begins(
    database_url: str, tmp_path: Path
) -> None:
    """A job that such a process converts itself waits for no worker."""
    async with world(database_url, tmp_path) as here:
        handovers = HandOvers(here.services.database, here.services.leases.server_id, LEASE)
        job_id = await admitted(here)
        assert (await handovers.backlog()).jobs == 1
        await execute(here, "UPDATE job SET status = 'Processing' WHERE id = $1", job_id)
        assert (await handovers.backlog()).jobs == 0
