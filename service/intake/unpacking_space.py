"""The space on the disk for what uploads unpack to, shared between accounts.

A few megabytes unpack to a gibibyte, which stays on the disk until the job has ended, while hundreds of jobs may wait
for a converter. All of it together takes at most half of the space that would be free without it, and an account gets
at most half of what the others leave of that. Several processes on one disk leave each other the rest in the same way.
"""

from collections.abc import Callable
from pathlib import Path

import anyio
import msgspec

from service.blocking import run_blocking
from service.ids import AccountId
from service.telemetry import metrics

PATIENCE_SECONDS = 10.0
"""How long an account that has nothing on the disk waits for others, before it has to do with what they leave."""
LOOK_SECONDS = 1.0
"""When a waiting account looks at the disk again, which other programs use, too."""


class Occupied(msgspec.Struct):
    """What an upload unpacks to: at most `size_bytes` until it `is_written`, and so much from then on."""

    account_id: AccountId | None
    size_bytes: int
    is_written: bool = False


class UnpackingSpace:
    """What the uploads of this process have unpacked to, each by its directory."""

    def __init__(self, free_bytes: Callable[[], int]) -> None:
        """`free_bytes` looks at the disk, in a thread."""
        self._free_bytes = free_bytes
        self.shares: dict[Path, Occupied] = {}
        """What each directory of an upload occupies."""
        self._changed = anyio.Event()

    async def take(self, directory: Path, account_id: AccountId | None, size_bytes: int) -> int:
        """Wait until an upload in `directory` may unpack to `size_bytes`; return to how many it may.

        These may be fewer if the account has nothing on the disk: nothing of its own will end and leave more. Uploads
        without an account count as those of one.
        """
        waits_until = anyio.current_time() + PATIENCE_SECONDS
        while True:
            free = await run_blocking(self._free_bytes, inline=False)
            own, room = self._room(account_id, free)
            is_alone = not any(share.size_bytes for share in self.shares.values())
            if room >= size_bytes or is_alone or (not own and anyio.current_time() >= waits_until):
                granted = max(0, min(size_bytes, room))
                self.shares[directory] = Occupied(account_id, granted)
                self._tell()
                return granted
            with anyio.move_on_after(LOOK_SECONDS):
                await self._changed.wait()

    def settle(self, directory: Path, size_bytes: int) -> None:
        """Note that the upload in `directory` has unpacked to `size_bytes`, which stay there until `leave`."""
        share = self.shares[directory]
        share.size_bytes, share.is_written = size_bytes, True
        self._tell()

    def leave(self, directory: Path) -> None:
        """Note that `directory` is deleted, whether or not something was unpacked into it."""
        if self.shares.pop(directory, None) is not None:
            self._tell()

    def _room(self, account_id: AccountId | None, free_bytes: int) -> tuple[int, int]:
        """How many bytes the account has, and how many more it may have, of a disk of which so many are free."""
        shares = self.shares.values()
        most = (free_bytes + sum(share.size_bytes for share in shares if share.is_written)) // 2
        own = sum(share.size_bytes for share in shares if share.account_id == account_id)
        others = sum(share.size_bytes for share in shares) - own
        return own, (most - others) // 2 - own

    def _tell(self) -> None:
        metrics.UNPACKED_BYTES.set(sum(share.size_bytes for share in self.shares.values()))
        changed, self._changed = self._changed, anyio.Event()
        changed.set()
