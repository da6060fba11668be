"""Uploads and what they unpack to leave space for other accounts and for the rest of the host."""

import asyncio
import random
from collections.abc import AsyncIterator, Hashable
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from uuid import UUID

import pytest

from service.ids import AccountId
from service.intake import disk_space
from service.intake.disk_space import DiskSpace
from tests.support.patience import until

ONE, OTHER = AccountId(UUID(int=1)), AccountId(UUID(int=2))


class Disk:
    """A disk of a number of bytes, to which uploads of accounts unpack."""

    def __init__(self, size_bytes: int) -> None:
        self.size_bytes = size_bytes
        self.used: dict[Path, int] = {}
        self.owners: dict[Path, AccountId] = {}
        self.space = DiskSpace(lambda: self.size_bytes - sum(self.used.values()))

    @asynccontextmanager
    async def unpacked(self, directory: Path, account_id: AccountId, asked: int, actual: int) -> AsyncIterator[int]:
        """Unpack an upload, which then lies on the disk until the end of the block, and return what was granted."""
        granted = await self.space.take(directory, account_id, asked)
        self.owners[directory] = account_id
        try:
            for _ in range(4):  # beside others
                self.used[directory] = self.used.get(directory, 0) + min(granted, actual) // 4
                await asyncio.sleep(0)
            self.space.settle(directory, self.used[directory])
            yield granted
        finally:
            del self.used[directory], self.owners[directory]
            self.space.leave(directory)

    def used_by(self, account_id: AccountId) -> int:
        """How many bytes an account has on the disk."""
        return sum(size for directory, size in self.used.items() if self.owners[directory] == account_id)


@pytest.mark.parametrize("seed", range(20))
async def test_any_number_of_uploads_leaves_half_of_the_disk(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever they state and whenever their jobs end, each gets its turn, and an account never has more than half."""
    monkeypatch.setattr(disk_space, "PATIENCE_SECONDS", 1e9)
    chance, disk, most = random.Random(seed), Disk(1 << 20), dict.fromkeys((ONE, OTHER), 0)

    async def job(number: int) -> None:
        account_id, asked = chance.choice((ONE, OTHER)), chance.randrange(1, disk.size_bytes // 16)
        actual, pauses = chance.randrange(asked + 1), chance.randrange(30)
        for _ in range(chance.randrange(40)):
            await asyncio.sleep(0)
        async with disk.unpacked(Path(str(number)), account_id, asked, actual) as granted:
            assert granted == asked
            for _ in range(pauses):
                assert sum(disk.used.values()) <= disk.size_bytes // 2
                most[account_id] = max(most[account_id], disk.used_by(account_id))
                await asyncio.sleep(0)

    async with asyncio.TaskGroup() as tasks:
        for number in range(60):
            tasks.create_task(job(number))
    assert all(0 < each <= disk.size_bytes // 4 for each in most.values())
    assert await disk.space.take(Path("last"), ONE, disk.size_bytes // 4) == disk.size_bytes // 4


async def test_a_neighbour_does_not_wait_for_an_account_whose_uploads_do(monkeypatch: pytest.MonkeyPatch) -> None:
    """The further uploads of the account get their space as soon as the ones before them end, however late that is."""
    monkeypatch.setattr(disk_space, "PATIENCE_SECONDS", 0.0)
    monkeypatch.setattr(disk_space, "LOOK_SECONDS", 1e9)
    disk = Disk(1 << 20)
    quarter = disk.size_bytes // 4
    async with asyncio.TaskGroup() as tasks:
        async with disk.unpacked(Path("a"), ONE, quarter, quarter):
            waiting = tasks.create_task(disk.space.take(Path("b"), ONE, quarter))
            async with disk.unpacked(Path("c"), OTHER, quarter // 2, quarter // 2) as granted:
                assert granted == quarter // 2
            await asyncio.sleep(0.1)
            assert not waiting.done()
        assert await waiting == quarter


async def test_a_cancelled_wait_takes_nothing() -> None:
    """The client has left."""
    disk = Disk(1 << 20)
    quarter = disk.size_bytes // 4
    async with disk.unpacked(Path("a"), ONE, quarter, quarter):
        waiting = asyncio.create_task(disk.space.take(Path("b"), ONE, quarter))
        await asyncio.sleep(0.1)
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting
    assert await disk.space.take(Path("c"), ONE, quarter) == quarter


async def test_one_that_states_more_than_there_is_gets_what_there_is(monkeypatch: pytest.MonkeyPatch) -> None:
    """A .gz does not state its size: most unpack to much less than they might. Alone, it has nothing to wait for."""
    monkeypatch.setattr(disk_space, "PATIENCE_SECONDS", 1e9)
    disk = Disk(1 << 20)
    assert await disk.space.take(Path("a"), ONE, 1 << 30) == disk.size_bytes // 4


async def test_others_are_waited_for_before_making_do_with_what_they_leave(monkeypatch: pytest.MonkeyPatch) -> None:
    """They may end; if they do not, waiting for longer does not help either."""
    disk = Disk(1 << 20)
    quarter, eighth = disk.size_bytes // 4, disk.size_bytes // 8
    async with disk.unpacked(Path("a"), ONE, quarter, quarter):
        waiting = asyncio.create_task(disk.space.take(Path("b"), OTHER, quarter))
        await asyncio.sleep(0.1)
        assert not waiting.done()
    assert await waiting == quarter
    disk.space.leave(Path("b"))
    monkeypatch.setattr(disk_space, "PATIENCE_SECONDS", 0.1)
    async with disk.unpacked(Path("c"), ONE, quarter, quarter):
        assert await disk.space.take(Path("d"), OTHER, quarter) == eighth


async def test_what_is_still_to_be_unpacked_counts_as_if_it_were(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing of it is on the disk yet."""
    monkeypatch.setattr(disk_space, "PATIENCE_SECONDS", 0.0)
    disk = Disk(1 << 20)
    await disk.space.take(Path("a"), ONE, disk.size_bytes // 4)
    assert await disk.space.take(Path("b"), OTHER, disk.size_bytes) == disk.size_bytes // 8


async def test_the_disk_is_looked_at_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """Other programs use it, too, and nothing here says when they have left."""
    monkeypatch.setattr(disk_space, "LOOK_SECONDS", 0.01)
    disk = Disk(1 << 20)
    quarter = disk.size_bytes // 4
    async with disk.unpacked(Path("a"), ONE, quarter, quarter):
        waiting = asyncio.create_task(disk.space.take(Path("b"), ONE, quarter))
        await asyncio.sleep(0.1)
        assert not waiting.done()
        disk.size_bytes *= 2
        await until(waiting.done)
        assert await waiting == quarter


async def test_uploads_have_no_more_of_the_disk_than_what_they_unpack_to(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whether they are being received or wait for their jobs; another account has its own part."""
    monkeypatch.setattr(disk_space, "PATIENCE_SECONDS", 0.0)
    space, eighth = DiskSpace(lambda: 1 << 20), 1 << 17
    await space.reserve("being received", ONE, eighth)
    space.add(Path("received"), ONE, eighth)  # of a larger disk, which has as much free nevertheless
    with pytest.raises(OSError, match="other uploads"):
        await space.reserve("next", ONE, eighth)
    assert await space.take(Path("received"), ONE, eighth) < eighth
    await space.reserve("of another", OTHER, eighth)
    space.leave("being received")
    space.leave(Path("received"))
    await space.reserve("next", ONE, eighth)


async def test_what_is_reserved_again_counts_once() -> None:
    """The length of an upload in chunks shows while it is received."""
    space, quarter = DiskSpace(lambda: 1 << 20), 1 << 18
    for size_bytes in range(0, quarter + 1, quarter // 8):
        await space.reserve("growing", ONE, size_bytes)
    with pytest.raises(OSError, match="other uploads"):
        await space.reserve("growing", ONE, quarter + 1)


async def test_an_upload_waits_for_no_upload_of_its_account_that_waits_for_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """The next ones are looked at after it, so that waiting for their end would never end."""
    monkeypatch.setattr(disk_space, "PATIENCE_SECONDS", 0.1)
    space, eighth = DiskSpace(lambda: 1 << 20), 1 << 17
    for name in ("first", "next"):
        space.add(Path(name), ONE, eighth)
    assert 0 < await space.take(Path("first"), ONE, eighth) < eighth


@pytest.mark.parametrize("hoarders", [1, 4, 30])
async def test_however_many_accounts_take_all_they_may_the_next_gets_its_part(hoarders: int) -> None:
    """Half of what the others leave would be a few bytes for the thirty-first, on a disk with 100 GB."""
    size_bytes = 100 << 30
    space = DiskSpace(lambda: size_bytes)
    for number in range(1, hoarders + 1):
        hoarder = AccountId(UUID(int=number))
        for each in range(3):
            await reserve_most(space, (number, each), hoarder, size_bytes)
    await space.reserve("next", AccountId(UUID(int=99)), size_bytes // 8 // ((hoarders + 1) * (hoarders + 2)))
    assert reserved_bytes(space) <= size_bytes * 5 // 8


@pytest.mark.parametrize("seed", range(3))
async def test_accounts_that_come_and_go_never_have_more_than_five_eighths(seed: int) -> None:
    """In whatever order they reserve, extend and leave, each as much as it may."""
    chance, size_bytes = random.Random(seed), 1 << 30
    space = DiskSpace(lambda: size_bytes)
    for _ in range(400):
        number = chance.randrange(40)
        holder = (number, chance.randrange(4))
        if chance.random() < 0.3:
            space.leave(holder)
        else:
            await reserve_most(space, holder, AccountId(UUID(int=number)), chance.randrange(1, size_bytes))
        assert reserved_bytes(space) <= size_bytes * 5 // 8


async def reserve_most(space: DiskSpace, holder: Hashable, account_id: AccountId, asked: int) -> None:
    """Reserve what is asked, or else the half of it, and so on."""
    while asked:
        with suppress(OSError):
            await space.reserve(holder, account_id, asked)
            return
        asked //= 2


def reserved_bytes(space: DiskSpace) -> int:
    """What all have together."""
    return sum(share.size_bytes for share in space.shares.values())
