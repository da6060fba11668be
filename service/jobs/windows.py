"""How many jobs of one account this process has in the queue at a time, so that its backlog delays no other account."""

from collections import Counter, deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from service.ids import AccountId


class Turn:
    """Where one job stands: it waits until its turn `has_come`, and has a place in the queue from then on."""

    def __init__(self, tell: Callable[[], None]) -> None:
        self.has_come = False
        self.tell = tell

    def come(self) -> None:
        """Give the job its place."""
        self.has_come = True
        self.tell()


class Windows:
    """Places in the queue by account; jobs that find none wait for their turns, in the order of arrival."""

    def __init__(self, most: Callable[[], int]) -> None:
        """Give each account up to `most` places, which may change at any time."""
        self._most = most
        self._taken: Counter[AccountId] = Counter()
        self._waiting: dict[AccountId, deque[Turn]] = {}

    @contextmanager
    def turn(self, account_id: AccountId, tell: Callable[[], None]) -> Iterator[Turn]:
        """Wait for a place of the account or hold it, until the end of the block; `tell` is called when it is there."""
        waiting = self._waiting.setdefault(account_id, deque())
        waiting.append(turn := Turn(tell))
        self._give(account_id)
        try:
            yield turn
        finally:
            if turn.has_come:
                self._taken[account_id] -= 1
            else:
                waiting.remove(turn)
            self._give(account_id)

    def give_all(self) -> None:
        """Give places to those that wait, after the number of places has grown."""
        for account_id in list(self._waiting):
            self._give(account_id)

    def tell_all(self) -> None:
        """Have all that wait look whether they still need a place."""
        for waiting in self._waiting.values():
            for turn in waiting:
                turn.tell()

    def _give(self, account_id: AccountId) -> None:
        """Give free places to those that wait longest, and forget an account without any."""
        waiting = self._waiting[account_id]
        while waiting and self._taken[account_id] < self._most():
            self._taken[account_id] += 1
            waiting.popleft().come()
        if not waiting and not self._taken[account_id]:
            del self._waiting[account_id], self._taken[account_id]
