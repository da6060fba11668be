"""What gateways know of the living workers: their converters, and the formats that all of them can read and write."""

import math
import time
from collections.abc import Callable

from service.formats.offer import Offer, common
from service.jobs.leases import Leases

REMEMBERED_SECONDS = 60.0
"""How long a gateway offers what the last workers could: the next ones may be starting."""
MOST_EACH = 3
"""How many jobs of one account may be in the queue or with workers for each of their converters."""


class KnownWorkers:
    """Keeps an offer up to date: a format is in it while all workers have it, so that each of them can take any job."""

    def __init__(self, leases: Leases, offer: Offer, now: Callable[[], float] = time.monotonic) -> None:
        self._leases = leases
        self._offer = offer
        self._now = now
        self._seen_at = -math.inf
        self.most_each = MOST_EACH
        """How many jobs of one account this process may have in the queue: its share of those of all gateways."""

    def require(self) -> None:
        """Raise `Overloaded` if no worker is known."""
        self._offer.require()

    async def look(self) -> None:
        """Look which workers are alive.

        Raises:
            DatabaseUnavailable: the offer stays as it is.
        """
        if offers := await self._leases.offers():
            self._seen_at = self._now()
            self._offer.replace(common(offers))
            converters, gateways = await self._leases.size()
            self.most_each = math.ceil(MOST_EACH * max(converters, 1) / max(gateways, 1))
        elif self._now() - self._seen_at > REMEMBERED_SECONDS:
            self._offer.replace(())
