"""A database of an earlier version, with work in progress, continues under this version."""

from collections.abc import Awaitable, Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from uuid import UUID, uuid4

import anyio
import msgspec
import pytest

from service.accounts.idempotency import IdempotencyKeys, KeyClaim
from service.clock import utc_now
from service.db import migrate as migrate_module
from service.db.migrate import ATTEMPT_SECONDS, migrate
from service.db.pool import Database, open_pool
from service.db.queries import sql_directory
from service.errors import IdempotencyKeyInUse
from service.ids import AccountId, JobId, ServerId, uuid7
from service.jobs.leases import Leases
from service.jobs.lifecycle import Status
from service.jobs.register import JobRegister
from service.metering.audit import audit_books
from service.metering.ledger import Ledger, Release
from service.metering.pricing import Pricing
from tests.support.jobs import application, settlement

LEASE = timedelta(seconds=30)
Convert = Callable[[Database, AccountId, UUID, int], Awaitable[str]]
OLD_ADMISSION = "SELECT * FROM admit_jobs($1, $2, true, '{}', $3, $4, $5, $6, $7, $8, $9, $10)"
OLD_PLAN = "INSERT INTO plan VALUES ('free', 'user', 10, 50 << 20, 5 << 20, 4, false)"
OLD_CLAIM = """
INSERT INTO idempotency_key (account_id, key, fingerprint, server_id, job_ids, created_at)
VALUES ($1, $2, 'f', $3, $4, now())
"""

PREVIOUS_ADMISSION = "SELECT admitted FROM admit_files($1, $2, true, '{}', $3, $4, $5, $6, $7, $8, $9, NULL)"
PREVIOUS_SETTLEMENT = """
WITH done AS (
    UPDATE job SET status = 'Completed', completed_at = service_time(),
                   expires_at = service_time() + interval '4 hours',
                   processing_time_ms = 1, feature_count = 1, geometry_type = 'Point', output_size_bytes = 1,
                   download_name = 'a.csv', media_type = 'text/csv', details = '{}'
     WHERE id = $1 AND attempt = 1 AND completed_at IS NULL
 RETURNING *
)
INSERT INTO ledger (job_id, account_id, payer_id, period, conversions, bytes, cents, settled_at)
SELECT id, account_id, payer_id, period, 1, input_size_bytes, 0, completed_at FROM done
"""
PREVIOUS_RELEASE = "SELECT release_job($1, 1, 'no', '{}', NULL, NULL, NULL, NULL, false)"
PREVIOUS_READING = "SELECT status FROM job_record WHERE id = $1"
"""What the version with three migrations sends."""


def old_migrations(directory: Path, last: int) -> Path:
    """A directory with only the first migrations."""
    for path in sorted((sql_directory() / "migrations").glob("*.sql"))[:last]:
        (directory / path.name).write_bytes(path.read_bytes())
    return directory


async def create_account_as_before(database: Database) -> AccountId:
    """Create an account on plan free as the version before changeable payers does."""
    account_id, payer_id = AccountId(uuid4()), uuid4()
    async with database.connection() as connection:
        await connection.execute("INSERT INTO payer (id, plan_id) VALUES ($1, 'free')", payer_id)
        await connection.execute(
            "INSERT INTO account (id, name, payer_id, created_at) VALUES ($1, 'a', $2, now())", account_id, payer_id
        )
    return account_id


async def admit_as_before(database: Database, account_id: AccountId, server_id: UUID, jobs: list[JobId]) -> list[bool]:
    """Admit files as the version before fenced claims does."""
    count = len(jobs)
    async with database.connection() as connection:
        row = await connection.fetchrow(
            OLD_ADMISSION,
            account_id,
            server_id,
            jobs,
            ["a.geojson"] * count,
            ["geojson"] * count,
            ["csv"] * count,
            [1] * count,
            [6] * count,
            [uuid4().hex for _ in jobs],
            [datetime.now(UTC)] * count,
        )
    assert row is not None
    admitted: list[bool] = row["admitted"]
    return admitted


async def test_jobs_and_keys_of_the_version_before_go_on(empty_database_url: str, tmp_path: Path) -> None:
    """Open jobs are settled, released or recovered, keys answer or wait, and processes of that version still admit."""
    await migrate(empty_database_url, old_migrations(tmp_path, 1))
    async with open_pool(empty_database_url) as database:
        async with database.connection() as connection:
            await connection.execute(OLD_PLAN)
        account_id, living, dead = await create_account_as_before(database), ServerId(uuid4()), ServerId(uuid4())
        settled, released, late = (JobId(uuid7(datetime.now(UTC))) for _ in range(3))
        abandoned = JobId(uuid7(datetime.now(UTC)))
        assert await admit_as_before(database, account_id, living, [settled, released]) == [True, True]
        assert await admit_as_before(database, account_id, dead, [abandoned]) == [True]
        async with database.connection() as connection:
            await connection.execute("INSERT INTO server VALUES ($1, now(), now())", living)
            await connection.execute(OLD_CLAIM, account_id, "has jobs", living, [settled, released])
            await connection.execute(OLD_CLAIM, account_id, "has none yet", living, [late])

        assert (await migrate(empty_database_url)).applied
        ledger, register = Ledger(database, Pricing()), JobRegister(database)
        keys = IdempotencyKeys(database, LEASE, utc_now)

        def claim(key: str, files: int) -> KeyClaim:
            new = tuple(JobId(uuid7(datetime.now(UTC))) for _ in range(files))
            return KeyClaim(account_id=account_id, key=key, fingerprint=b"f", job_ids=new)

        with pytest.raises(IdempotencyKeyInUse):
            await keys.claim(claim("has jobs", 2))
        with pytest.raises(IdempotencyKeyInUse):
            await keys.claim(claim("has none yet", 1))
        assert await admit_as_before(database, account_id, living, [late]) == [True]

        assert await ledger.settle(settlement(settled)) is not None
        assert await ledger.release(Release(job_id=released, attempt=1, error_message="no", details={})) is not None
        [job] = await Leases(database, ServerId(uuid4()), LEASE).abandoned()
        assert await ledger.release(Release(job_id=job.id, attempt=job.attempt, error_message="gone")) is not None
        assert (await register.find(abandoned, account_id)).status is Status.FAILED
        answered = await keys.claim(claim("has jobs", 2))
        assert (answered.is_answered, answered.job_ids) == (True, (settled, released))
        assert await ledger.settle(settlement(late)) is not None
        assert (await keys.claim(claim("has none yet", 1))).is_answered
        assert (await ledger.balance(account_id)).used_conversions == 2
        assert await audit_books(database) == []


async def convert_as_before(database: Database, account_id: AccountId, server_id: UUID, number: int) -> str:
    """Admit a file and complete it, or release every third, as the version with three migrations does."""
    job_id = JobId(uuid7(datetime.now(UTC)))
    given = ([job_id], ["a.geojson"], ["geojson"], ["csv"], [1], [6], [uuid4().hex])
    async with database.connection() as connection:
        assert await connection.fetchval(PREVIOUS_ADMISSION, account_id, server_id, *given) == [True]
        await connection.execute(PREVIOUS_SETTLEMENT if number % 3 else PREVIOUS_RELEASE, job_id)
        status: str = await connection.fetchval(PREVIOUS_READING, job_id)
    return status


async def convert_by_ledger(database: Database, account_id: AccountId, server_id: UUID, number: int) -> str:
    """Do the same as versions since the fourth migration do, whose statements are unchanged."""
    job_id, ledger = JobId(uuid7(datetime.now(UTC))), Ledger(database, Pricing())
    request = msgspec.structs.replace(application(account_id, 1, job_id), server_id=ServerId(server_id))
    await ledger.admit(request)
    if number % 3:
        assert await ledger.settle(settlement(job_id)) is not None
    else:
        assert await ledger.release(Release(job_id=job_id, attempt=1, error_message="no", details={})) is not None
    async with database.connection() as connection:
        status: str = await connection.fetchval(PREVIOUS_READING, job_id)
    return status


@pytest.mark.parametrize(
    ("migrations", "convert"),
    [
        (3, convert_as_before),
        (4, convert_by_ledger),
        (5, convert_by_ledger),
        (6, convert_by_ledger),
        (7, convert_by_ledger),
    ],
)
async def test_the_previous_version_serves_while_the_database_is_migrated(
    empty_database_url: str, tmp_path: Path, migrations: int, convert: Convert
) -> None:
    """All its statements work before, during and after, and the books agree with what it charged."""
    await migrate(empty_database_url, old_migrations(tmp_path, migrations))
    done: list[str] = []
    begun, migrated = anyio.Event(), anyio.Event()
    async with open_pool(empty_database_url) as database:
        async with database.connection() as connection:
            await connection.execute(OLD_PLAN.replace("10, 50", "100000, 50"))
        account_id, server_id = await create_account_as_before(database), uuid4()

        async def convert_on() -> None:
            while not migrated.is_set() or len(done) < after + 20:
                done.append(await convert(database, account_id, server_id, len(done)))
                if len(done) == 20:
                    begun.set()

        after = 0
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(convert_on)
            await begun.wait()
            assert (await migrate(empty_database_url)).applied
            after = len(done)
            migrated.set()
        assert set(done) == {"Completed", "Failed"}
        used = (await Ledger(database, Pricing()).balance(account_id)).used_conversions
        assert used == done.count("Completed")
        assert await audit_books(database) == []


@pytest.mark.parametrize("attempt_seconds", [ATTEMPT_SECONDS, 60])
async def test_a_migration_makes_way_for_statements_that_it_would_wait_for(
    empty_database_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, attempt_seconds: float
) -> None:
    """Whoever uses its second table may use its first one next: neither fails, also if there is a deadlock."""
    monkeypatch.setattr(migrate_module, "ATTEMPT_SECONDS", attempt_seconds)
    (tmp_path / "0001_first.sql").write_text("CREATE TABLE first (n int); CREATE TABLE second (n int);")
    await migrate(empty_database_url, tmp_path)
    (tmp_path / "0002_second.sql").write_text("ALTER TABLE first ADD m int; ALTER TABLE second ADD m int;")
    waits = "SELECT FROM pg_locks WHERE relation = 'second'::regclass AND NOT granted"
    async with (
        open_pool(empty_database_url) as database,
        anyio.create_task_group() as tasks,
        database.transaction() as serving,
        database.connection() as other,
    ):
        if attempt_seconds > ATTEMPT_SECONDS:
            await serving.execute("SET LOCAL deadlock_timeout = '1h'")  # so that PostgreSQL ends the migration
        await serving.execute("INSERT INTO second VALUES (1)")
        tasks.start_soon(migrate, empty_database_url, tmp_path)
        while not await other.fetch(waits):  # noqa: ASYNC110 -- in its own time
            await anyio.sleep(0.01)
        await serving.execute("INSERT INTO first VALUES (1)")
    async with open_pool(empty_database_url) as database, database.connection() as connection:
        assert (await migrate(empty_database_url, tmp_path)).applied == []
        assert (
            await connection.fetchval("SELECT count(*) FROM first f, second s WHERE f.m IS NULL AND s.m IS NULL") == 1
        )


async def test_jobs_can_be_read_while_they_are_indexed_for_a_fleet(empty_database_url: str, tmp_path: Path) -> None:
    """Building the indexes waits for no reader and blocks none, since the table's change was committed before."""
    await migrate(empty_database_url, old_migrations(tmp_path, 8))
    until_then = old_migrations(tmp_path, 9)
    indexes = "SELECT indexname FROM pg_indexes WHERE indexname IN ('job_handed_over', 'job_input')"
    async with open_pool(empty_database_url) as database, database.transaction() as reader:
        assert await reader.fetch(indexes) == []
        await reader.execute("SELECT FROM job")
        assert (await migrate(empty_database_url, until_then)).applied == ["0009_indexes_of_the_fleet.sql"]
        assert len(await reader.fetch(indexes)) == 2
