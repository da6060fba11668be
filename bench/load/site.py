"""The server under load: one that is started for the run, or any by its address and keys."""

import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import urlsplit

import anyio
import msgspec

from bench.load.client import Address
from bench.measure.meter import Meter
from service.accounts.administration import Administration, Terms
from service.clock import utc_now
from service.db.pool import open_pool
from service.metering.plans import BY_ID
from service.postgres_embedded import embedded_postgres
from tests.support.server import Server, running_server

MANY_ACCOUNTS = 64
PLAN = BY_ID["business"]


class Site(msgspec.Struct, frozen=True, kw_only=True):
    """A server and who may call it.

    `crowd` are the keys of many accounts, `spent` is that of one that has nothing left; where they are empty, scenarios
    that need them cannot run. `jobs` have ended. Without `meter` nothing is known of the server's processes; `server`
    is one that was started for the run.
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
    """Start a server with an embedded database and a local store on this host's disk, and make its accounts."""
    with tempfile.TemporaryDirectory(prefix="geomill-bench-") as directory:
        data_dir = Path(directory)
        with running_server(data_dir, settings=settings) as server:
            keys = anyio.run(_make_accounts, data_dir)
            yield Site(
                address=_address(server.url),
                prefix="",
                key=keys[0],
                crowd=keys[1:-1],
                spent=keys[-1],
                meter=Meter(server.process.pid, data_dir),
                server=server,
            )


def given_site(url: str, keys: tuple[str, ...], pid: int | None) -> Site:
    """Describe a server that runs already; with `pid`, of this host."""
    return Site(
        address=_address(url),
        prefix=urlsplit(url).path.rstrip("/"),
        key=keys[0],
        crowd=keys[1:],
        spent="",
        meter=Meter(pid, None) if pid else None,
    )


def _address(url: str) -> Address:
    parts = urlsplit(url)
    tls = parts.scheme == "https"
    return Address(parts.hostname or "", parts.port or (443 if tls else 80), tls)


async def _make_accounts(data_dir: Path) -> tuple[str, ...]:
    plan = Terms(plan=PLAN.id, plan_owner=PLAN.owner)
    terms = [*[plan] * (1 + MANY_ACCOUNTS), Terms(wallet_cents=0)]
    async with embedded_postgres(data_dir) as dsn, open_pool(dsn, max_size=1) as database:
        administration = Administration(database, utc_now)
        created = [await administration.create_account(f"bench {number}", each) for number, each in enumerate(terms)]
    return tuple(key.api_key for _, key in created)
