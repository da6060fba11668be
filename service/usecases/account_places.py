"""Places of which each account has some in one process: whoever reads slowly, takes none of those of other accounts."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from weakref import WeakValueDictionary

from anyio import CapacityLimiter, fail_after

from service.errors import GeomillError
from service.ids import AccountId


class AccountPlaces:
    """The places of each account, which exist as long as one of them is taken; a further request waits for one."""

    def __init__(self, per_account: int, wait_seconds: float) -> None:
        self._per_account = per_account
        self._wait_seconds = wait_seconds
        self._places: WeakValueDictionary[AccountId, CapacityLimiter] = WeakValueDictionary()

    def are_taken(self, account_id: AccountId) -> bool:
        """Return whether an account has none left."""
        return not self._of(account_id).available_tokens

    @asynccontextmanager
    async def taking_one(self, account_id: AccountId, refusal: GeomillError) -> AsyncIterator[None]:
        """Have one of the account's places until the end of the block; raises `refusal` if none becomes free."""
        places, place = self._of(account_id), object()
        try:
            with fail_after(self._wait_seconds):
                await places.acquire_on_behalf_of(place)
        except TimeoutError:
            raise refusal from None
        try:
            yield
        finally:
            places.release_on_behalf_of(place)

    def _of(self, account_id: AccountId) -> CapacityLimiter:
        return self._places.setdefault(account_id, CapacityLimiter(self._per_account))
