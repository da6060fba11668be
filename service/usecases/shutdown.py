"""The end of a process: which jobs it still runs, in which order, and until when."""

import anyio

from service.usecases.services import Services


def begin_shutdown(services: Services, seconds: float) -> None:
    """Announce that this process will stop within `seconds`, whichever of its jobs are still open then."""
    for runner in services.runners:
        runner.begin_shutdown(seconds)


async def end_jobs(services: Services, seconds: float) -> None:
    """Wait `seconds` or the announced time for the jobs of this process, then end the rest.

    The jobs of its own clients come first. Until they have ended, the process continues to take jobs from the queue,
    because some of theirs may wait there. After that it returns what no converter has begun.
    """
    end_at = anyio.current_time() + seconds
    worker = services.fleet.worker if services.fleet is not None else None
    if worker is None or worker.runner is not None:
        await services.runner.drain(seconds)
    if worker is not None:
        await worker.leave()
        await services.runners[-1].drain(max(0.0, end_at - anyio.current_time()))
