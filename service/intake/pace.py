"""Time limits of an upload."""

from service.intake.form import IntakeLimits


class Pace:
    """Combines three limits (pause, total time, average rate) into one moving deadline; pure, the clock is an argument.

    The average rate is measured from `idle_seconds` after the start, to tolerate a slow start. `resume` excludes the
    time that the service itself took.
    """

    def __init__(self, limits: IntakeLimits, now: float) -> None:
        self._limits = limits
        self._start = now
        self._heard_at = now
        self._received = 0

    def heard(self, now: float, received: int) -> None:
        """Record that `received` bytes have arrived in total by `now` (seconds of any clock)."""
        self._heard_at = now
        self._received = received

    def resume(self, now: float) -> None:
        """Exclude the time since the last data: the client was waiting for this service."""
        self._start += now - self._heard_at
        self._heard_at = now

    @property
    def deadline(self) -> float:
        """When the next bytes must arrive."""
        return min(self._deadlines())

    @property
    def complaint(self) -> str:
        """The message for a client that misses the deadline."""
        deadlines = self._deadlines()
        return (
            f"Nothing of the upload arrived for {self._limits.idle_seconds:g} seconds. Send it again.",
            f"The upload took longer than {self._limits.total_seconds:g} seconds.",
            f"The upload is slower than {self._limits.min_bytes_per_second} bytes per second.",
        )[deadlines.index(min(deadlines))]

    def _deadlines(self) -> tuple[float, float, float]:
        limits = self._limits
        return (
            self._heard_at + limits.idle_seconds,
            self._start + limits.total_seconds,
            self._start + limits.idle_seconds + self._received / limits.min_bytes_per_second,
        )
