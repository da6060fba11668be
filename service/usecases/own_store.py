"""Makes sure that a region of the store belongs to this database before anything in it is stored or deleted.

A process or command with the database of a service and another store would take every result that it does not find for
deleted. Each region therefore has a mark, an object whose name the database has recorded. Two databases that share a
region have a mark each.

A copy of a database, as one restored from a dump, has the mark of its original, and all its results. It stores, but
deletes nothing in a region until an operator has it adopt the region. A copy of a whole cluster cannot be told apart.

A region without a mark is adopted, as a new one or that of an earlier version, unless the database knows results in it
and none is there. One that has lost its mark is adopted only if some of these results are there.
"""

import secrets
from collections import defaultdict
from collections.abc import Sequence
from contextlib import aclosing
from functools import partial

import anyio

from service.db.pool import Connection, Database
from service.db.queries import load
from service.errors import ForeignStore, ObjectMissing, ObjectsLeft, StorageUnavailable
from service.storage.bucket_config import HOME
from service.storage.observed import delete_observed, observed
from service.storage.port import ObjectKey, PathLike, Storage, region_of
from service.usecases.recent_success import RecentSuccess

_SQL = load("store")
_LOOKED_FOR = 20
"""How many of the newest results show whether a region is the one in which this database has stored them."""
HOLDS_SECONDS = 60.0
"""How old the success of a check may be before a deletion."""
MARK_SECONDS = 5.0
"""How long marking a region may take; meanwhile, other processes that have nothing to mark are not delayed."""
PAUSE_SECONDS = 0.1


class OwnStore:
    """The store of one database; stores and deletes only in regions that are not known to belong to another one."""

    def __init__(self, database: Database, storage: Storage) -> None:
        self._database = database
        self._storage = storage
        self._foreign: dict[str, ForeignStore] = {}
        self._kept = defaultdict[str, RecentSuccess](partial(RecentSuccess, HOLDS_SECONDS))

    async def put(
        self, key: ObjectKey, path: PathLike, *, media_type: str, download_name: str, sha256: bytes = b""
    ) -> None:
        """Store an object; see `Storage.put`.

        Raises:
            StorageUnavailable: the store is, or the last check has shown that the region is another database's.
        """
        with observed("put"):
            self.require_known(region_of(key))
            await self._storage.put(key, path, media_type=media_type, download_name=download_name, sha256=sha256)

    async def delete(self, keys: Sequence[str]) -> None:
        """Delete the objects under these keys that are in regions of this database.

        Raises:
            ObjectsLeft: only those were not deleted that it names.
            StorageUnavailable: the store is; some may be deleted.
        """
        left: dict[str, StorageUnavailable] = {}
        for region in {region_of(key) for key in keys}:
            try:
                await self._kept[region].ensure(partial(self._keep_original, region))
            except StorageUnavailable as error:
                left |= {key: error for key in keys if region_of(key) == region}
        try:
            if own := [key for key in keys if key not in left]:
                await delete_observed(self._storage, own)
        except ObjectsLeft as error:
            left |= error.reasons
        if left:
            raise ObjectsLeft(left)

    def require_known(self, region: str = HOME) -> None:
        """Raise `ForeignStore` if the last check has shown that a region is another database's."""
        if foreign := self._foreign.get(region):
            raise ForeignStore(foreign.detail)

    async def require(self, region: str = HOME) -> None:
        """Check that a region belongs to this database, and change nothing.

        Raises:
            ForeignStore: it belongs to another one, or has lost its content.
            StorageUnavailable: the store is.
        """
        await self._lacks_mark(self._database, region)

    async def require_original(self, region: str) -> None:
        """Check that this database is not a copy of the one whose results are in a region.

        Raises:
            ForeignStore: it is; nothing is deleted in the region.
        """
        row = await self._database.fetchrow(_SQL["mark"], region)
        if row is not None and row["is_copy"]:
            raise ForeignStore(f"this database is a copy of the one that has its results in {place(region)}")

    async def keep(self, region: str = HOME) -> None:
        """Check that a region belongs to this database, and mark it if it is new or the mark is old.

        Raises:
            ForeignStore: as `require`; nothing is stored in it until a check succeeds.
            StorageUnavailable: the store is.
        """
        try:
            if await self._lacks_mark(self._database, region):
                await self._mark(region, is_adopted=False)
        except ForeignStore as error:
            self._foreign[region] = error
            raise
        self._foreign.pop(region, None)

    async def adopt(self, region: str) -> None:
        """Mark a region as this database's own, whatever is in it.

        Raises:
            StorageUnavailable: the store is.
        """
        await self._mark(region, is_adopted=True)

    async def other_marks(self, region: str) -> list[str]:
        """Return the names of the marks of other databases that share a region.

        Raises:
            StorageUnavailable: the store is.
        """
        row = await self._database.fetchrow(_SQL["mark"], region)
        return sorted(await self._storage.marks(region) - {row["mark"] if row else ""})

    async def _keep_original(self, region: str) -> None:
        await self.keep(region)
        await self.require_original(region)

    async def _mark(self, region: str, *, is_adopted: bool) -> None:
        await self._database.execute(_SQL["name_mark"], region, f"mark-{secrets.token_hex(16)}")
        try:
            with anyio.fail_after(MARK_SECONDS):
                while not await self._mark_alone(region, is_adopted=is_adopted):  # noqa: ASYNC110 -- a row has no event
                    await anyio.sleep(PAUSE_SECONDS)
        except TimeoutError:
            raise StorageUnavailable("slow", f"it was not marked within {MARK_SECONDS:g} s") from None

    async def _mark_alone(self, region: str, *, is_adopted: bool) -> bool:
        """Mark a region, unless another process is at it; return whether it is marked.

        One that starts at the same time with another store then finds the mark recorded, and does not adopt that store.
        """
        async with self._database.transaction() as connection:
            mark = await connection.fetchval(_SQL["lock_mark"], region)
            if mark is not None and (is_adopted or await self._lacks_mark(connection, region)):
                await self._storage.mark(region, mark)
                await connection.execute(_SQL["note_mark"], region, is_adopted)
        return mark is not None

    async def _lacks_mark(self, source: "Database | Connection", region: str) -> bool:
        """Whether a region of this database has no mark, or an old one."""
        row = await source.fetchrow(_SQL["mark"], region)
        was_stored = row is not None and row["was_stored"]
        if row is not None and was_stored and await self._storage.has_mark(region, row["mark"]):
            return bool(row["is_old"])
        outputs = [found["object_key"] for found in await source.fetch(_SQL["newest_outputs"], region, _LOOKED_FOR)]
        if (outputs or was_stored) and not await self._has_any(outputs):
            raise ForeignStore(_description(region, row["mark"] if row is not None and was_stored else ""))
        return True

    async def _has_any(self, outputs: Sequence[str]) -> bool:
        for key in outputs:
            try:
                async with aclosing(self._storage.read(ObjectKey(key))) as pieces:
                    await anext(pieces, b"")
            except ObjectMissing:
                continue
            return True
        return False


def _description(region: str, mark: str) -> str:
    lacks = f"has no object {mark}" if mark else "has none of the newest results"
    return f"{place(region)} {lacks}, so it belongs to another database, or its content was lost"


def place(region: str) -> str:
    """Return what messages call a region of the store."""
    return f"the region {region}" if region else "the store"
