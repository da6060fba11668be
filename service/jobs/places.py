"""Places in the waiting room: how many there are for all, and how many an account may have."""

from collections import Counter
from collections.abc import Callable
from functools import partial

from sandbox.pool import Pool, PoolFull, Seat, Slot
from service.errors import Overloaded, TooManyRequests
from service.identifiers import AccountId

RETRY_AFTER_SECONDS = 2


class Place:
    """A seat in the pool that counts for its account, from now until it is given up.

    Its converter may be held for `most_seconds`.
    """

    def __init__(self, seat: Seat, most_seconds: float, leave: Callable[[], None]) -> None:
        self.most_seconds = most_seconds
        self._seat = seat
        self._leave = leave
        self._left = False

    async def turn(self) -> Slot:
        """Wait for a converter, once; the place is to be given up all the same."""
        return await self._seat.turn()

    def give_up(self) -> None:
        """Leave the place to others; doing it twice changes nothing."""
        if not self._left:
            self._left = True
            self._seat.give_up()
            self._leave()


class Places:
    """Hands out the seats of a pool, `most_per_account` at the same time to one account.

    Each file may hold its converter for `most_seconds`.
    """

    def __init__(self, pool: Pool, most_per_account: int, most_seconds: float) -> None:
        self.most_per_account = most_per_account
        self._most_seconds = most_seconds
        self._pool = pool
        self._taken: Counter[AccountId] = Counter()

    def left(self, account_id: AccountId) -> int:
        """How many more the account may take now."""
        return max(0, self.most_per_account - self._taken[account_id])

    def require(self, account_id: AccountId) -> None:
        """See that `take` would give the account a place now.

        Raises:
            TooManyRequests: the account has its share already.
            Overloaded: the waiting room is full.
        """
        self._require_share(account_id, 1)
        try:
            self._pool.require_seat(str(account_id))
        except PoolFull:
            raise _overloaded() from None

    def take(self, account_id: AccountId, files: int) -> list[Place]:
        """Take places for the files of one request, all or none.

        A request of more files than an account may have under way is taken when it has no others, or it never would be.

        Raises:
            TooManyRequests: the account has its share already.
            Overloaded: the waiting room is full.
        """
        self._require_share(account_id, files)
        places: list[Place] = []
        try:
            for _ in range(files):
                places.append(self._take_one(account_id))  # noqa: PERF401 -- those taken must be known below
        except PoolFull:
            for place in places:
                place.give_up()
            raise _overloaded() from None
        return places

    def _require_share(self, account_id: AccountId, files: int) -> None:
        under_way = self._taken[account_id]
        if under_way and under_way + files > self.most_per_account:
            message = (
                f"This account has {under_way} files under way, and may have {self.most_per_account}. "
                "Send the request again when some have ended."
            )
            raise TooManyRequests(message, RETRY_AFTER_SECONDS)

    def _take_one(self, account_id: AccountId) -> Place:
        seat = self._pool.take_seat(str(account_id))
        place = Place(seat, self._most_seconds, partial(self._leave, account_id))
        self._taken[account_id] += 1
        return place

    def _leave(self, account_id: AccountId) -> None:
        self._taken[account_id] -= 1
        if not self._taken[account_id]:
            del self._taken[account_id]


def _overloaded() -> Overloaded:
    message = "The service has more conversions waiting than it can take. Send the request again later."
    return Overloaded(message, RETRY_AFTER_SECONDS)
