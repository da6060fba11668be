"""How many jobs of one account this process has in the queue at a time, so that its backlog delays no other account."""

from collections import Counter, deque
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

import anyio

from service.ids import AccountId


class Windows:
    """Places in the queue by account; who finds none waits for its turn, in the order of arrival."""

    def __init__(self, most: Callable[[], int]) -> None:
        """Give each account up to `most` places, which may change at any time."""
        self._most = most
        self._taken: Counter[AccountId] = Counter()
        self._waiting: dict[AccountId, deque[anyio.Event]] = {}

    @asynccontextmanager
    async def place(self, account_id: AccountId) -> AsyncIterator[None]:
        """Wait for a place of the account, and hold it until the end of the block."""
        waiting = self._waiting.setdefault(account_id, deque())
        waiting.append(turn := anyio.Event())
        self._give(account_id)
        try:
            await turn.wait()
            yield
        finally:
            if turn.is_set():
                self._taken[account_id] -= 1
            else:
                waiting.remove(turn)
            self._give(account_id)

    def give_all(self) -> None:
        """Give places to those that wait, after the number of places has grown."""
        for account_id in list(self._waiting):
            self._give(account_id)

    def _give(self, account_id: AccountId) -> None:
        """Give free places to those that wait longest, and forget an account without any."""
        waiting = self._waiting[account_id]
        while waiting and self._taken[account_id] < self._most():
            self._taken[account_id] += 1
            waiting.popleft().set()
        if not waiting and not self._taken[account_id]:
            del self._waiting[account_id], self._taken[account_id]
