"""The checks of what a process uses besides its host: settings, database, store, queue."""

import importlib.util
import os
import tempfile
import urllib.error
import urllib.request
from collections.abc import AsyncIterator
from datetime import datetime, timedelta
from pathlib import Path

from anyio import to_thread

from service.app.converters import converters_of
from service.app.database import open_database
from service.app.fleet import require_fleet
from service.app.storage import open_storage
from service.cli.finding import Finding, State, judged
from service.cli.ports import HOST_ALONE
from service.cli.processes import process_count
from service.clock import MOST_APART, utc_now
from service.db import queries
from service.db.migrations import MigrationError, SchemaAhead, SchemaBehind
from service.errors import DatabaseUnavailable, ForeignStore
from service.postgres_embedded import EmbeddedPostgresError, has_database, installed_major
from service.settings import Settings
from service.storage.port import Link, ObjectKey, Storage, new_key
from service.usecases.own_store import OwnStore
from service.usecases.services import Role

OLDEST_POSTGRES = 150_000
CONNECTIONS_EACH = 8
CLOCK_SECONDS = 2.0
CONTENT = b"geomill doctor\n"
FETCH_SECONDS = 10.0
MEDIA_TYPE = "text/plain"


async def check_settings(settings: Settings, role: Role) -> AsyncIterator[Finding]:
    """Check what each setting alone cannot show: which of them contradict each other."""
    require_fleet(settings, role)
    if role != "worker":
        process_count(settings)
    ports = settings.private_port == settings.port != 0 and (settings.private_host or settings.host) == settings.host
    places = settings.waiting_room + converters_of(settings)
    is_loopback = any(name in settings.s3_endpoint for name in ("//localhost", "//127.", "//[::1]"))
    owner = settings.data_path.stat().st_uid if settings.data_path.exists() else os.geteuid()
    unused = [
        name
        for name, value in (
            ("GEOMILL_IDENTITY_SECRET", settings.identity_secret),
            ("GEOMILL_LINK_SECRETS", settings.link_secrets),
        )
        if value and role == "worker"
    ]
    findings: tuple[tuple[bool, State, str], ...] = (
        (not ports or role == "worker", "fail", "GEOMILL_PRIVATE_PORT is GEOMILL_PORT. Choose another one."),
        (settings.private_port is not None or not settings.private_host, "fail", HOST_ALONE),
        (
            settings.file_seconds >= settings.conversion_seconds,
            "warn",
            "GEOMILL_FILE_SECONDS is shorter than GEOMILL_CONVERSION_SECONDS, so no run can take that long.",
        ),
        (
            settings.max_batch_bytes >= settings.max_file_bytes,
            "warn",
            "GEOMILL_MAX_BATCH_BYTES is less than GEOMILL_MAX_FILE_BYTES, so a batch cannot hold the largest file.",
        ),
        (
            settings.max_per_account <= places,
            "warn",
            f"GEOMILL_MAX_PER_ACCOUNT has no effect: GEOMILL_WAITING_ROOM and converters give all accounts {places}.",
        ),
        (
            not is_loopback or bool(settings.s3_public_endpoint) or role == "worker",
            "warn",
            "Links lead clients to GEOMILL_S3_ENDPOINT, which is this host. Set GEOMILL_S3_PUBLIC_ENDPOINT.",
        ),
        (
            bool(os.geteuid()) or not owner,
            "warn",
            f"GEOMILL_DATA_DIR belongs to user {owner}, who cannot read what root creates. Run this as that user.",
        ),
        (settings.sandbox == "strict", "warn", "GEOMILL_SANDBOX is best-effort: files may run without isolation."),
        (not unused, "warn", f"A worker needs no {' and no '.join(unused)}. Give secrets to gateways alone."),
    )
    complaints = [Finding("settings", state, complaint) for holds, state, complaint in findings if not holds]
    for finding in complaints or [Finding("settings", "ok", "nothing contradicts")]:
        yield finding


async def check_database(settings: Settings, role: Role) -> AsyncIterator[Finding]:
    """Check PostgreSQL, its version, schema, clock, durability and connections."""
    if not settings.database_url and not has_database(settings.data_path):
        bin_dir = Path(settings.postgres_bin_dir) if settings.postgres_bin_dir else None
        major = await to_thread.run_sync(installed_major, bin_dir, settings.postgres_user)
        detail = f"PostgreSQL {major}; `geomill serve` creates a database in {settings.data_path}"
        yield Finding("PostgreSQL", "ok", detail)
        return
    statements = queries.load("doctor")
    try:
        async with open_database(settings) as database, database.connection() as connection:
            before = utc_now()
            row = await connection.fetchrow(statements["look"])
            found = dict(row or {})
            after = utc_now()
    except (SchemaBehind, SchemaAhead) as other:
        yield Finding("schema", "warn", str(other))
        return
    version = int(found["version_number"])
    yield judged(
        "PostgreSQL",
        f"PostgreSQL {found['version']}",
        "Geomill needs PostgreSQL 15 or later.",
        holds=version >= OLDEST_POSTGRES,
        otherwise="fail",
    )
    yield Finding("schema", "ok", f"migrations up to {found['migration']}, all that this version has")
    yield _clock(found["clock"], before, after)
    yield judged(
        "access",
        f"read-only {found['read_only']}",
        "Geomill must write. Name the primary in GEOMILL_DATABASE_URL, or see why default_transaction_read_only is on.",
        holds=found["read_only"] == "off",
        otherwise="fail",
    )
    is_durable = found["fsync"] == "on" and found["synchronous_commit"] != "off"
    yield judged(
        "durability",
        f"fsync {found['fsync']}, synchronous_commit {found['synchronous_commit']}",
        "A crash of PostgreSQL may lose charges. Switch both on.",
        holds=is_durable,
    )
    yield judged(
        "isolation",
        f"transactions are {found['isolation']}",
        "PostgreSQL refuses some of many simultaneous requests. Behind a pooler, Geomill cannot choose the isolation: "
        "ALTER DATABASE ... SET default_transaction_isolation = 'read committed'.",
        holds=found["isolation"] == "read committed",
    )
    free = int(found["max_connections"]) - int(found["used_connections"])
    wanted = CONNECTIONS_EACH * (process_count(settings) if role != "worker" else 1)
    yield judged(
        "connections",
        f"{free} of {found['max_connections']} free",
        f"This process opens up to {wanted}. Raise max_connections, or put PgBouncer in between.",
        holds=free >= wanted,
    )


def _clock(there: datetime, before: datetime, after: datetime) -> Finding:
    off = max((before - there).total_seconds(), (there - after).total_seconds(), 0.0)
    return judged(
        "clocks",
        f"this host and the database differ by {off:.1f} s",
        "The store may refuse requests, and nothing that is old is deleted here. Synchronize both clocks (NTP).",
        holds=off <= CLOCK_SECONDS,
        otherwise="warn" if off <= MOST_APART.total_seconds() else "fail",
    )


async def check_storage(settings: Settings, role: Role) -> AsyncIterator[Finding]:
    """Check each region of the store with an object: put, read, link, delete.

    A worker makes no links and needs no right to list, which gateways need to remove what is left.
    """
    async with open_storage(settings) as storage:
        for region in ("", *sorted(storage.regions)):
            if role != "worker":
                await storage.check(region)
            async for finding in _check_region(storage, region, has_links=role != "worker"):
                yield finding
        yield await _check_belonging(settings, storage)


async def _check_belonging(settings: Settings, storage: Storage) -> Finding:
    """Check that the store is the one in which the database has its results; a copy only deletes nothing in it."""
    advice = (
        "Set database and store as for the service. If results really are lost, or a copy of the database has "
        "taken the place of its original, `geomill reconcile` names the command that says so."
    )
    is_own = False
    try:
        async with open_database(settings) as database:
            own_store, regions = OwnStore(database, storage), ("", *sorted(storage.regions))
            for region in regions:
                await own_store.require(region)
            is_own = True
            for region in regions:
                await own_store.require_original(region)
    except ForeignStore as foreign:
        return Finding("store", "warn" if is_own else "fail", foreign.detail, advice)
    except (DatabaseUnavailable, EmbeddedPostgresError, MigrationError):
        return Finding("store", "ok", "not compared with the database, which is not there")
    return Finding("store", "ok", "the one of this database")


async def _check_region(storage: Storage, region: str, *, has_links: bool) -> AsyncIterator[Finding]:
    name = f"store {region}".rstrip()
    key = new_key(region)
    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory) / "doctor.txt"
        path.write_bytes(CONTENT)
        await storage.put(key, path, media_type=MEDIA_TYPE, download_name=path.name)
        try:
            read = b"".join([piece async for piece in storage.read(key)])
            yield judged(
                name, "put, read", "The store changes what it stores.", holds=read == CONTENT, otherwise="fail"
            )
            if has_links:
                yield await _check_link(storage, key, f"link {region}".rstrip())
        finally:
            await storage.delete([ObjectKey(key)])
    yield Finding(name, "ok", "deleted")


async def _check_link(storage: Storage, key: ObjectKey, name: str) -> Finding:
    link = await storage.link(
        key, expires_at=utc_now() + timedelta(minutes=5), download_name="doctor.txt", media_type=MEDIA_TYPE
    )
    if link is None or link.url.startswith("/"):
        return Finding(name, "ok", "signed; this service delivers the results")
    host = link.url.partition("?")[0].removesuffix(key)
    problem = await to_thread.run_sync(_fetch, link)
    advice = "Clients need it: check GEOMILL_S3_PUBLIC_ENDPOINT, the credentials and the clock of this host."
    return judged(name, f"{host}: {problem or 'fetched'}", advice, holds=not problem)


def _fetch(link: Link) -> str:
    """Fetch a link as a client does; return what went wrong."""
    try:
        with urllib.request.urlopen(link.url, timeout=FETCH_SECONDS) as answer:  # noqa: S310 -- our own link
            return "" if answer.read() == CONTENT else "another content"
    except urllib.error.HTTPError as error:
        return f"status {error.code}"
    except OSError as error:
        return str(error)


async def check_queue(settings: Settings, role: Role) -> AsyncIterator[Finding]:
    """Check the NATS server, its stream and its consumers, and create nothing."""
    if role == "all" and not settings.nats_url:
        yield Finding("NATS", "ok", "not used without GEOMILL_NATS_URL")
        return
    if importlib.util.find_spec("nats") is None:
        yield Finding("NATS", "fail", "the extra `fleet` is missing", "Install it: pip install 'geomill[fleet]'.")
        return
    from service.jobs.queue_state import MESSAGE_BYTES, look_at_queue  # noqa: PLC0415 -- it needs an extra

    found = await look_at_queue(settings.nats_url)
    yield Finding("NATS", "ok", f"version {found.version}")
    needed = settings.inline_bytes + MESSAGE_BYTES
    yield judged(
        "message size",
        f"up to {found.message_bytes} bytes",
        f"GEOMILL_INLINE_BYTES needs {needed}, and jobs without their inputs {MESSAGE_BYTES}; some inputs take the "
        "slower way through the bucket until max_payload of the NATS server and max_msg_size of the stream are larger, "
        "or GEOMILL_INLINE_BYTES smaller.",
        holds=found.message_bytes >= needed,
        otherwise="warn" if found.message_bytes >= MESSAGE_BYTES else "fail",
    )
    if found.lanes is None:
        yield Finding("stream", "ok", "none yet; the first gateway or worker creates it")
        return
    yield judged(
        "stream",
        f"{found.messages} messages, {found.replicas} replicas",
        "It is full or sealed, and takes no jobs: nats stream edit GEOMILL --max-msgs=-1 --max-bytes=-1",
        holds=not found.is_full,
        otherwise="fail",
    )
    if found.loses_jobs:
        advice = "Jobs that it drops wait for a lease: nats stream edit GEOMILL --max-age=0 --discard=new"
        yield Finding("limits of the stream", "warn", "it drops jobs that no worker has taken", advice)
    yield judged(
        "lanes",
        f"{found.lanes} of {found.all_lanes}",
        "The next gateway or worker creates those that are missing.",
        holds=found.lanes == found.all_lanes,
    )
    yield judged(
        "lease",
        f"the queue waits {found.lease_seconds:g} s for a worker",
        f"GEOMILL_LEASE_SECONDS is {settings.lease_seconds} here. Set it to the same for all gateways and workers.",
        holds=found.lease_seconds == settings.lease_seconds,
    )
