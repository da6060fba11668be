"""How long a client may take over its upload."""

from service.intake.form import IntakeLimits


class Pace:
    """Turns three limits (silence, total time, mean rate) into one moving deadline; pure, the clock is an argument.

    The mean rate counts from `idle_seconds` after the start, so that a slow beginning is forgiven. Time that this
    service itself took is given back by `resume`.
    """

    def __init__(self, limits: IntakeLimits, now: float) -> None:
        self._limits = limits
        self._start = now
        self._heard_at = now
        self._received = 0

    def heard(self, now: float, received: int) -> None:
        """Note that `received` bytes have come in all by `now` (seconds of any one clock)."""
        self._heard_at = now
        self._received = received

    def resume(self, now: float) -> None:
        """Do not count the time since the client was last heard: it had to wait for this service."""
        self._start += now - self._heard_at
        self._heard_at = now

    @property
    def deadline(self) -> float:
        """When the next bytes must be here."""
        return min(self._deadlines())

    @property
    def complaint(self) -> str:
        """What a client that misses the deadline is told."""
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
