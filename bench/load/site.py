"""The server under load: one started for the run, or any server by its URL and keys."""

import argparse
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from pathlib import Path
from urllib.parse import urlsplit

import anyio
import msgspec

from bench.load.client import Address
from bench.measure.meter import Meter
from service.accounts.administration import Administration, CreatedKey, Terms
from service.clock import utc_now
from service.db.pool import open_pool
from service.metering.plans import BY_ID
from service.postgres_embedded import embedded_postgres
from tests.support.server import EXECUTED, Server, running_server

MANY_ACCOUNTS = 64
PLAN = BY_ID["business"]
_LIFT_ALLOWANCES = (
    "UPDATE plan SET monthly_conversions = 2000000000, monthly_data_bytes = 1::bigint << 60 WHERE id = $1"
)


class Site(msgspec.Struct, frozen=True, kw_only=True):
    """A server and API keys for it.

    `crowd` has the keys of many accounts, `spent` the key of an account without credit; scenarios that need one that is
    empty cannot run. `jobs` are the ids of ended jobs. Without `meter`, the server's processes cannot be measured;
    `server` is set if it was started for the run.
    """

    address: Address
    prefix: str
    key: str
    crowd: tuple[str, ...]
    spent: str
    meter: Meter | None
    jobs: tuple[str, ...] = ()
    server: Server | None = None


@contextmanager
def own_site(settings: Mapping[str, str]) -> Iterator[Site]:
    """Start a server with an embedded database and a local store on this host's disk, and create its accounts."""
    with tempfile.TemporaryDirectory(prefix="geomill-bench-") as directory:
        data_dir = Path(directory)
        with running_server(data_dir, settings=settings, program=EXECUTED) as server:
            keys = anyio.run(_make_own_accounts, data_dir)
            yield started_site(server, keys, data_dir)


def started_site(server: Server, keys: tuple[CreatedKey, ...], database_directory: Path | None) -> Site:
    """The site of a server that was started for the run, with the keys that `make_accounts` returned.

    `database_directory` is the data directory of its embedded database, for the meter, if it has one.
    """
    return Site(
        address=address_of(server.url),
        prefix="",
        key=keys[0].api_key,
        crowd=tuple(key.api_key for key in keys[1:-1]),
        spent=keys[-1].api_key,
        meter=Meter(server.process.pid, database_directory),
        server=server,
    )


def add_site_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments that select a server."""
    parser.add_argument("--url", default="", help="URL of a running server; default: one is started")
    parser.add_argument("--key", action="append", default=[], help="API key; repeat it for several accounts")
    parser.add_argument("--pid", type=int, help="process of that server on this host, to measure what it uses")


def open_site(options: argparse.Namespace, settings: Mapping[str, str] | None = None) -> AbstractContextManager[Site]:
    """Return the server that `options` select, or start one with `settings`.

    Raises:
        SystemExit: there is a URL, but no key.
    """
    if not options.url:
        return own_site(settings or {})
    if not options.key:
        raise SystemExit("--url needs --key")
    return nullcontext(given_site(options.url, tuple(options.key), options.pid))


def given_site(url: str, keys: tuple[str, ...], pid: int | None) -> Site:
    """Describe a running server; `pid` is its process on this host."""
    return Site(
        address=address_of(url),
        prefix=urlsplit(url).path.rstrip("/"),
        key=keys[0],
        crowd=keys[1:],
        spent="",
        meter=Meter(pid, None) if pid else None,
    )


def address_of(url: str) -> Address:
    """Return the address that a URL leads to."""
    parts = urlsplit(url)
    tls = parts.scheme == "https"
    return Address(parts.hostname or "", parts.port or (443 if tls else 80), tls)


async def _make_own_accounts(data_dir: Path) -> tuple[CreatedKey, ...]:
    async with embedded_postgres(data_dir) as dsn:
        return await make_accounts(dsn)


async def make_accounts(dsn: str, count: int = 1 + MANY_ACCOUNTS) -> tuple[CreatedKey, ...]:
    """Make accounts whose allowances no run exhausts, and a last one without credit; return their keys."""
    terms = [*[Terms(plan=PLAN.id, plan_owner=PLAN.owner)] * count, Terms(wallet_cents=0)]
    async with open_pool(dsn, max_size=1) as database:
        await database.execute(_LIFT_ALLOWANCES, PLAN.id)
        administration = Administration(database, utc_now)
        created = [await administration.create_account(f"bench {number}", each) for number, each in enumerate(terms)]
    return tuple(key for _, key in created)
