"""Deletes an account: its keys, its files and all names; the ledger stays (interface 10)."""

from collections import Counter
from functools import partial
from uuid import UUID

from service.accounts.administration import Administration, AdministrationError
from service.errors import StorageUnavailable
from service.ids import AccountId
from service.jobs.records import Job
from service.jobs.register import JobRegister, Remove
from service.metering.ledger import Ledger, Release
from service.storage.observed import delete_observed
from service.storage.port import Storage, region_of
from service.usecases.own_store import OwnStore

DELETED = "The account was deleted."
_AT_ONCE = 500
_FIRST = UUID(int=0)


class AccountEraser:
    """Deletes accounts, beside serving processes, which end the runs of cancelled jobs when they notice."""

    def __init__(
        self, administration: Administration, jobs: JobRegister, ledger: Ledger, storage: Storage, own_store: OwnStore
    ) -> None:
        self._administration = administration
        self._jobs = jobs
        self._ledger = ledger
        self._storage = storage
        self._own_store = own_store

    async def delete(self, account_id: AccountId, *, are_results_lost: bool = False) -> int:
        """Delete an account and return how many results were erased; a repeat completes what was interrupted.

        Raises:
            AdministrationError: there has never been such an account, or a transaction does not end; repeat it then.
                Or results are left in regions that are away or, unless `are_results_lost`, not of this database; these
                have expired, and the service or a repeat erases them.
        """
        await self._administration.close_account(account_id)
        await self._administration.await_admissions()  # from here on it is admitted no more
        while opened := await self._jobs.open_of(account_id):
            for job in opened:
                await self._cancel(job)
        away: dict[str, StorageUnavailable] = {}
        remove = partial(delete_observed, self._storage) if are_results_lost else self._own_store.delete
        erased, left, after = 0, Counter[str](), _FIRST
        while kept := await self._jobs.kept_of(account_id, after, _AT_ONCE):
            for job in kept:
                region = region_of(job.object_key or "")
                if await self._erase(job, away, remove):
                    erased += 1
                else:
                    left[region] += 1
            after = kept[-1].id
        await self._jobs.anonymise(account_id, DELETED)
        if left:
            raise AdministrationError(_told(left, away, erased))
        return erased

    async def _erase(self, job: Job, away: dict[str, StorageUnavailable], remove: Remove) -> bool:
        """Erase a result; if its region is away, which is noted, only end its retention, so that the service does."""
        region = region_of(job.object_key or "")

        async def removed(keys: list[str]) -> None:
            if region in away:
                raise away[region]
            await remove(keys)

        try:
            await self._jobs.erase(job.id, job.object_key or "", removed)
        except StorageUnavailable as error:
            away[region] = error
        return region not in away

    async def _cancel(self, job: Job) -> None:
        """Fail an open job; if it ends meanwhile, its result is erased with the others."""
        release = Release(job_id=job.id, attempt=job.attempt, error_message=DELETED, object_key=job.object_key)
        await self._ledger.release(release)


def _told(left: Counter[str], away: dict[str, StorageUnavailable], erased: int) -> str:
    places = "; ".join(
        f"{count} in {f'the region {region}' if region else 'the home region'} "
        f"({away[region].fault}: {away[region].detail})"
        for region, count in sorted(left.items())
    )
    return (
        f"The account no longer has keys, open jobs or names, and {erased} results are erased. The store still has: "
        f"{places}. They have expired. The service erases them once it reaches them; so does this command, with "
        "GEOMILL_S3_BUCKET and GEOMILL_S3_REGIONS, or GEOMILL_DATA_DIR without them, as for the service. If such "
        "results really are lost, add --force."
    )
