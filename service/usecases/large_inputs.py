"""Decides how many large inputs a worker takes: enough to use its converters, without delaying small ones."""

import math
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from sandbox.queue import QueueTicket, State
from service.jobs.deliveries import Delivery

QUIET_SECONDS = 2.0
"""How long no small input must have come before large ones may have the last converter."""


class LargeInputs:
    """The deliveries that a worker has, as far as they decide whether it may take a large one.

    While no small inputs come, large ones may have all converters: a small one that comes then takes turns with them
    (`sandbox.queue`), and needs only a place, of which large ones always leave one. While small inputs come, large ones
    leave a converter to them, if there are several. One that is only being stored needs no converter.
    """

    def __init__(self, converters: int, places: int, now: Callable[[], float] = time.monotonic) -> None:
        """`now` counts seconds."""
        self._converters = converters
        self._most = places - 1
        self._now = now
        self._large: dict[Delivery, QueueTicket | None] = {}
        self._small = 0
        self._small_at = -math.inf

    def __bool__(self) -> bool:
        return bool(self._large)

    def may_take(self) -> bool:
        """Whether the worker may take one more."""
        unconverted = sum(ticket is None or ticket.state is not State.RELEASED for ticket in self._large.values())
        is_quiet = not self._small and self._now() - self._small_at >= QUIET_SECONDS
        most = self._converters if is_quiet else max(1, self._converters - 1)
        return unconverted < most and len(self._large) < self._most

    @contextmanager
    def counted(self, delivery: Delivery) -> Iterator[None]:
        """Count a delivery, of whatever size, until the end of the block."""
        if delivery.is_large:
            self._large[delivery] = None
        else:
            self._count_small(1)
        try:
            yield
        finally:
            if delivery.is_large:
                del self._large[delivery]
            else:
                self._count_small(-1)

    def note_ticket(self, delivery: Delivery, ticket: QueueTicket) -> None:
        """Note the ticket with which a delivery waits for a converter, has one and gives it up."""
        if delivery.is_large:
            self._large[delivery] = ticket

    def _count_small(self, change: int) -> None:
        self._small += change
        self._small_at = self._now()
