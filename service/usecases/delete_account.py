"""Deletes an account: its keys, its files and all names; the ledger stays (interface 10)."""

from collections.abc import Sequence
from contextlib import aclosing, suppress
from functools import partial

from service.accounts.administration import Administration, AdministrationError
from service.errors import ObjectMissing
from service.ids import AccountId
from service.jobs.records import Job
from service.jobs.register import JobRegister
from service.metering.ledger import Ledger, Release
from service.storage.observed import delete_observed
from service.storage.port import ObjectKey, Storage

DELETED = "The account was deleted."
_AT_ONCE = 500


class AccountEraser:
    """Deletes accounts, beside serving processes, which end the runs of cancelled jobs when they notice."""

    def __init__(self, administration: Administration, jobs: JobRegister, ledger: Ledger, storage: Storage) -> None:
        self._administration = administration
        self._jobs = jobs
        self._ledger = ledger
        self._storage = storage
        self._remove = partial(delete_observed, storage)

    async def delete(self, account_id: AccountId, *, are_results_lost: bool = False) -> int:
        """Delete an account and return how many results were erased; a repeat completes what was interrupted.

        Raises:
            AdministrationError: there has never been such an account, or a transaction does not end; repeat it then.
                Or the store has none of the results, unless `are_results_lost`: that of the service keeps them.
            StorageUnavailable: the store could not delete a result; the rest is left to a repeat.
        """
        await self._administration.close_account(account_id)
        await self._administration.await_admissions()  # from here on it is admitted no more
        erased = 0
        while opened := await self._jobs.open_of(account_id):
            for job in opened:
                await self._cancel(job)
        if not are_results_lost:
            await self._require_own_store(await self._jobs.kept_of(account_id, _AT_ONCE))
        while kept := await self._jobs.kept_of(account_id, _AT_ONCE):
            for job in kept:
                await self._jobs.erase(job.id, job.object_key or "", self._remove)
            erased += len(kept)
        await self._jobs.anonymise(account_id, DELETED)
        return erased

    async def _require_own_store(self, kept: Sequence[Job]) -> None:
        """Require one of these results in the store: deleting what it does not have succeeds in every store."""
        for job in kept:
            with suppress(ObjectMissing):
                async with aclosing(self._storage.read(ObjectKey(job.object_key or ""))) as pieces:
                    await anext(pieces, b"")
                return
        if kept:
            raise AdministrationError(
                "The store has no result of this account, so it is probably not the one that the service uses. Set "
                "GEOMILL_S3_BUCKET, or GEOMILL_DATA_DIR without it, as for the service, and repeat the command. Now, "
                "the account has no keys and no open jobs. If its results really are lost, add --force."
            )

    async def _cancel(self, job: Job) -> None:
        """Fail an open job; if it ends meanwhile, its result is erased with the others."""
        release = Release(job_id=job.id, attempt=job.attempt, error_message=DELETED, object_key=job.object_key)
        await self._ledger.release(release)
