"""Places in the waiting room: how many there are for all, and how many an account may have."""

from collections import Counter
from collections.abc import Callable
from functools import partial
from types import TracebackType

from sandbox.pool import Pool, PoolFull, Seat, Slot
from service.errors import Overloaded, TooManyRequests
from service.identifiers import AccountId

RETRY_AFTER_SECONDS = 2


class Place:
    """A seat in the pool that counts for its account, from now until it is left: entered once, or given up."""

    def __init__(self, seat: Seat, leave: Callable[[], None]) -> None:
        self._seat = seat
        self._leave = leave
        self._left = False

    async def __aenter__(self) -> Slot:
        try:
            return await self._seat.__aenter__()
        except BaseException:
            self.give_up()
            raise

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.give_up()

    def give_up(self) -> None:
        """Leave the place to others; doing it twice changes nothing."""
        self._seat.give_up()
        if not self._left:
            self._left = True
            self._leave()


class Places:
    """Hands out the seats of a pool, `most_per_account` at the same time to one account."""

    def __init__(self, pool: Pool, most_per_account: int) -> None:
        self.most_per_account = most_per_account
        self._pool = pool
        self._taken: Counter[AccountId] = Counter()

    def left(self, account_id: AccountId) -> int:
        """How many more the account may take now."""
        return max(0, self.most_per_account - self._taken[account_id])

    def take(self, account_id: AccountId, files: int) -> list[Place]:
        """Take places for the files of one request, all or none.

        A request of more files than an account may have under way is taken when it has no others, or it never would be.

        Raises:
            TooManyRequests: the account has its share already.
            Overloaded: the waiting room is full.
        """
        under_way = self._taken[account_id]
        if under_way and under_way + files > self.most_per_account:
            message = (
                f"This account has {under_way} files under way, and may have {self.most_per_account}. "
                "Send the request again when some have ended."
            )
            raise TooManyRequests(message, RETRY_AFTER_SECONDS)
        places: list[Place] = []
        try:
            for _ in range(files):
                places.append(self._take_one(account_id))  # noqa: PERF401 -- those taken must be known below
        except PoolFull:
            for place in places:
                place.give_up()
            message = "The service has more conversions waiting than it can take. Send the request again later."
            raise Overloaded(message, RETRY_AFTER_SECONDS) from None
        return places

    def _take_one(self, account_id: AccountId) -> Place:
        place = Place(self._pool.take_seat(str(account_id)), partial(self._leave, account_id))
        self._taken[account_id] += 1
        return place

    def _leave(self, account_id: AccountId) -> None:
        self._taken[account_id] -= 1
        if not self._taken[account_id]:
            del self._taken[account_id]
