"""Chooses the lane from which a worker takes its next job: in turn, those that may contain one."""

from service.jobs.handover import LANES, SIZES


class Lanes:
    """The lanes as one worker knows them. Pure: callers report all changes."""

    def __init__(self) -> None:
        self._names = [f"{size}.{number}" for number in range(LANES) for size in SIZES]
        self._stirred = set(self._names)
        self._last = -1

    def next(self, *, may_be_large: bool) -> str | None:
        """Return the lane after the last one that may contain a job; None if there is none.

        It counts as empty from now on, until it is stirred.
        """
        count = len(self._names)
        for place in ((self._last + step) % count for step in range(1, count + 1)):
            name = self._names[place]
            if name in self._stirred and (may_be_large or not is_large(name)):
                self._last = place
                self._stirred.remove(name)
                return name
        return None

    def stir(self, name: str) -> None:
        """Note that a lane may contain a job."""
        if name in self._names:
            self._stirred.add(name)


def is_large(lane: str) -> bool:
    """Whether this lane is for large inputs."""
    return lane.startswith(SIZES[1])
