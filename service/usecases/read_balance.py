"""Reads the balance after a conversion, whether it succeeded, failed or was refused."""

from service.ids import AccountId
from service.jobs.lifecycle import Status
from service.jobs.records import Details, Job
from service.metering.balance import Balance
from service.usecases.services import Services

Left = Balance | Details
"""Both state what is left of a plan's month or of prepaid credit."""


async def read_left(services: Services, account_id: AccountId, job: Job) -> Left:
    """Return the balance at a job's settlement; the current one if it failed, because nothing was charged then."""
    if job.status is Status.FAILED:
        return await services.ledger.balance(account_id)
    return job.details
