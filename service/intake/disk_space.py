"""The space on the disk for uploads, what they unpack to and their results, shared between accounts.

A few megabytes unpack to a gibibyte, which stays on the disk until the job has ended, while hundreds of jobs may wait
for a converter. An account gets at most half of what the others leave of half of the space that would be free without
all of it. That is next to nothing once many accounts have taken as much as they may, so an eighth of the space is kept
for this case: in it, the n-th account gets the n(n + 1)-th part. These parts together never exceed the whole: of the
accounts that have something there, in the order of their last grants, the n-th was one of at least n at that time.
Several processes on one disk leave each other the rest in the same way. Uploads in memory take none of it.
"""

import errno
from collections.abc import Callable, Hashable

import anyio
import msgspec

from service.blocking import run_blocking
from service.ids import AccountId
from service.telemetry import metrics

PATIENCE_SECONDS = 10.0
"""How long an upload waits for those of other accounts, before it has to do with what they leave."""
LOOK_SECONDS = 1.0
"""When a waiting account looks at the disk again, which other programs use, too."""


class Occupied(msgspec.Struct):
    """What is in a directory, and how much more may come; `will_end` once nothing of that waits for space."""

    account_id: AccountId | None
    written_bytes: int = 0
    expected_bytes: int = 0
    will_end: bool = False

    @property
    def size_bytes(self) -> int:
        """Both together."""
        return self.written_bytes + self.expected_bytes


class DiskSpace:
    """What the uploads of this process take of the disk, each by its directory, or by what receives it."""

    def __init__(self, free_bytes: Callable[[], int]) -> None:
        """`free_bytes` looks at the disk, in a thread."""
        self._free_bytes = free_bytes
        self.shares: dict[Hashable, Occupied] = {}
        """What each of them occupies."""
        self._changed = anyio.Event()

    async def reserve(self, holder: Hashable, account_id: AccountId | None, size_bytes: int) -> None:
        """Reserve space for `size_bytes` in all that `holder` is about to receive.

        Raises:
            OSError: there is too little.
        """
        room = self._room(holder, account_id, await run_blocking(self._free_bytes, inline=False))
        if size_bytes > room:
            raise OSError(errno.ENOSPC, "other uploads take as much as may be on the disk")
        self._share(holder, account_id).expected_bytes = size_bytes
        self._tell()

    async def take(self, holder: Hashable, account_id: AccountId | None, size_bytes: int) -> int:
        """Wait until the upload of `holder` may unpack to `size_bytes`; return to how many it may.

        These may be fewer if nothing of the account is being converted, which would end and leave more. Uploads without
        an account count as those of one.
        """
        waits_until = anyio.current_time() + PATIENCE_SECONDS
        while True:
            room = self._room(holder, account_id, await run_blocking(self._free_bytes, inline=False))
            others = [share for key, share in self.shares.items() if key != holder and share.size_bytes]
            may_wait = any(share.will_end and share.account_id == account_id for share in others)
            if room >= size_bytes or not others or (not may_wait and anyio.current_time() >= waits_until):
                granted = max(0, min(size_bytes, room))
                self._share(holder, account_id).expected_bytes = granted
                self._tell()
                return granted
            with anyio.move_on_after(LOOK_SECONDS):
                await self._changed.wait()

    def settle(self, holder: Hashable, size_bytes: int) -> None:
        """Note that `holder` has unpacked its upload to `size_bytes`, which stay there until `leave`."""
        share = self.shares[holder]
        share.written_bytes, share.expected_bytes, share.will_end = share.written_bytes + size_bytes, 0, True
        self._tell()

    def add(self, holder: Hashable, account_id: AccountId | None, size_bytes: int) -> None:
        """Note that `holder` has so much more on the disk, which stays there until `leave`."""
        self._share(holder, account_id).written_bytes += size_bytes
        self._tell()

    def leave(self, holder: Hashable) -> None:
        """Note that nothing of `holder` is on the disk, whether or not something was."""
        if self.shares.pop(holder, None) is not None:
            self._tell()

    def _share(self, holder: Hashable, account_id: AccountId | None) -> Occupied:
        return self.shares.setdefault(holder, Occupied(account_id))

    def _room(self, holder: Hashable, account_id: AccountId | None, free_bytes: int) -> int:
        """How many more bytes `holder` may expect on a disk of which so many are free."""
        shares = [share for key, share in self.shares.items() if key != holder]
        written = self.shares[holder].written_bytes if holder in self.shares else 0
        whole = free_bytes + written + sum(share.written_bytes for share in shares)
        own = written + sum(share.size_bytes for share in shares if share.account_id == account_id)
        others = written + sum(share.size_bytes for share in shares) - own
        number = len({share.account_id for share in shares if share.size_bytes} | {account_id})
        return max((whole // 2 - others) // 2, whole // 8 // (number * (number + 1))) - own

    def _tell(self) -> None:
        metrics.TEMPORARY_BYTES.set(sum(share.size_bytes for share in self.shares.values()))
        changed, self._changed = self._changed, anyio.Event()
        changed.set()
