"""The books, derived again from the ledger and the jobs: every difference is a defect of ours."""

from service.db.pool import Database
from service.db.queries import load

_SQL = load("audit")


async def audit_books(database: Database) -> list[str]:
    """Return a sentence for each counter, balance and charge that is not what it should be; all seen at one moment."""
    async with database.connection() as connection, connection.transaction(isolation="repeatable_read", readonly=True):
        usage = await connection.fetch(_SQL["usage_differences"])
        wallets = await connection.fetch(_SQL["wallet_differences"])
        charges = await connection.fetch(_SQL["ledger_differences"])
    return [
        *(
            f"Payer {row['payer_id']}, {row['period']:%Y-%m}: {row['conversions']} conversions and {row['bytes']} "
            f"bytes are counted; ledger and open jobs have {row['derived_conversions']} and {row['derived_bytes']}."
            for row in usage
        ),
        *(
            f"Payer {row['payer_id']}: the wallet holds {row['wallet_cents']} cents; credit, ledger and open jobs "
            f"leave {row['derived_cents']}."
            for row in wallets
        ),
        *(
            f"Job {row['job_id']} is {row['status'] or 'missing'} and was {'' if row['charged'] else 'not '}charged."
            for row in charges
        ),
    ]
