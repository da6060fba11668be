"""What gateways know of the living workers: their converters, and the formats that all of them can read and write."""

import math
import time
from collections.abc import Callable, Sequence

from service.formats.offer import Availability, Offer, common
from service.jobs.leases import Leases

REMEMBERED_SECONDS = 60.0
"""How long a gateway offers what the last workers could: the next ones may be starting."""
MOST_EACH = 3
"""How many jobs of one account may be in the queue or with workers for each of their converters."""


class KnownWorkers:
    """Keeps an offer up to date: a format is in it while all workers have it, so that each of them can take any job.

    Without workers, the offer is what this process has of its `own`: nothing if it only hands jobs over.
    """

    def __init__(
        self,
        leases: Leases,
        offer: Offer,
        now: Callable[[], float] = time.monotonic,
        *,
        own: Sequence[Availability] = (),
    ) -> None:
        self._leases = leases
        self._offer = offer
        self._own = own
        self._now = now
        self._seen_at = -math.inf
        self.most_each = MOST_EACH
        """How many jobs of one account this process may have in the queue: its share of those of all gateways."""
        self.paused = 0
        """How many of the workers take no jobs until what they work with does."""

    def require(self) -> None:
        """Raise `Overloaded` if no worker is known."""
        self._offer.require()

    async def look(self) -> None:
        """Look which workers are alive.

        Raises:
            DatabaseUnavailable: the offer stays as it is.
        """
        offers, size = await self._leases.offers(), await self._leases.size()
        self.paused = size.paused
        if len(offers) > size.paused:
            self._seen_at = self._now()
            self._offer.replace(common(offers))
            self.most_each = math.ceil(MOST_EACH * max(size.converters, 1) / max(size.gateways, 1))
        elif self._now() - self._seen_at > REMEMBERED_SECONDS:
            self._offer.replace(self._own)
