"""Accounts that live: clients convert, repeat and cancel, operators change terms and keys, and everything breaks."""

import random
import threading
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any
from uuid import uuid4

import asyncpg
import httpx

from service.accounts.administration import AdministrationError, Changes, Terms
from service.db.pool import open_pool
from service.errors import DatabaseUnavailable
from service.ids import AccountId, KeyId
from tests.schedules.books import Books, Order, Sent
from tests.schedules.site import Node, Site
from tests.support.data import collection, feature, point
from tests.support.patience import PATIENCE_SECONDS, wait_until

ACCOUNTS = 6
CLIENTS = 5
REVOKED_SECONDS = 8
"""After which every process refuses a revoked key: five seconds, and the time that a busy host takes for a request."""
TERMS = (Terms(plan="free"), Terms(plan="personal"), *(Terms(wallet_cents=cents) for cents in (20, 100, 1000)))
FEATURES = (1, 1, 1, 2, 3, 40, 4000, 16000)
SHIFTS_SECONDS = (-3600, -5, 1, 3, 6, 60, 3600, 5 * 3600, 24 * 3600, 20 * 24 * 3600)
UNANSWERED = (0, 409, 429, 503)
"""After these statuses, 0 for none, a client asks again."""
PAUSES_SECONDS = (0.1, 1, 2, 7)
"""The last is longer than a lease."""
STATEMENTS = (
    "claim",
    "admit",
    "insert_failed",
    "flush_attempts",
    "settle",
    "release",
    "give_back",
    "prolong",
    "balance",
    "ended",
    "put",
)
COLLISIONS = 15
TABLES = (
    "SELECT FROM usage FOR UPDATE",
    "SELECT FROM job WHERE completed_at IS NULL FOR UPDATE",
    "SELECT FROM payer FOR UPDATE",
    "SELECT FROM idempotency_key FOR UPDATE",
)
"""What the service locks, which somebody else locks in other orders."""
MOVABLE_TIME = """
CREATE TABLE test_shift (seconds double precision NOT NULL);
INSERT INTO test_shift VALUES (0);
CREATE OR REPLACE FUNCTION service_time() RETURNS timestamptz LANGUAGE sql STABLE AS
    'SELECT now() + make_interval(secs => seconds) FROM test_shift';
"""
BOOKS = {
    "jobs": "SELECT * FROM job",
    "ledger": "SELECT * FROM ledger",
    "usage": "SELECT * FROM usage",
    "payers": "SELECT * FROM payer",
    "credit": "SELECT * FROM wallet_credit",
}

Change = Callable[[random.Random], Changes]
CHANGES: Mapping[str, Change] = {
    "plan": lambda chance: Changes(plan=chance.choice(("free", "personal"))),
    "wallet": lambda _: Changes(wallet=True),
    "credit": lambda chance: Changes(wallet_cents=chance.choice((0, 5, 6, 50, 300))),
    "organization": lambda chance: Changes(
        plan="team", plan_owner="organization", organization=chance.choice(("x", "y"))
    ),
    "leave": lambda _: Changes(leave_organization=True, plan="free"),
    "past due": lambda chance: Changes(past_due=chance.random() < 0.3),
    "access": lambda chance: Changes(may_convert=chance.random() < 0.7),
}


class Owner:
    """The owner of an account, with its keys and when they were revoked, if they were."""

    def __init__(self, account_id: AccountId, api_key: str, key_id: KeyId) -> None:
        self.account_id = account_id
        self.keys = {api_key: key_id}
        self.revoked: dict[str, float] = {}

    @property
    def valid(self) -> list[str]:
        """The keys that were not revoked."""
        return [key for key in self.keys if key not in self.revoked]


class Lives:
    """What clients have asked for, what operators have done, and what neither may see."""

    def __init__(self, site: Site, seed: int) -> None:
        self.orders: list[Order] = []
        self.defects: list[str] = []
        self._site = site
        self._chance = random.Random(seed)
        self._owners: list[Owner] = []
        self._lock = threading.Lock()
        self._is_over = False
        self._shift = 0.0
        for _ in range(ACCOUNTS):
            self._open_account()
        self._clients = [threading.Thread(target=self._be_a_client, args=(f"{seed} {n}",)) for n in range(CLIENTS)]

    def live(self, steps: int) -> None:
        """Do that many things to the site and its accounts, while clients do theirs; then let everything end."""
        for client in self._clients:
            client.start()
        try:
            for _ in range(steps):
                self._chance.choice((self._break, self._administer))()
        finally:
            self._is_over = True
            for node in self._site.nodes:
                node.wake()
                node.mend()
            for client in self._clients:
                client.join()
        self.settle_down()

    def settle_down(self) -> None:
        """Wait until all works and every job has ended."""
        for node in self._site.nodes:
            _revive(node)
        self._site.await_calm()
        wait_until(lambda: not self._site.rows("SELECT FROM job WHERE completed_at IS NULL"))

    def repeat_all(self) -> None:
        """Repeat each order with a key, as long as its account has one, until it is answered or refused for good."""
        owners = {owner.account_id: owner for owner in self._owners}
        for order in self.orders:
            owner = owners[AccountId(order.account_id)]
            if order.key is None or not owner.valid:
                continue

            def is_answered(order: Order = order, key: str = owner.valid[0]) -> bool:
                return self._send(order, self._site.nodes[0], key) not in UNANSWERED

            wait_until(is_answered)
            order.is_settled = True

    def books(self) -> Books:
        """The tables of the service."""
        return Books(**{name: self._site.rows(query) for name, query in BOOKS.items()})

    def _open_account(self) -> None:
        account, key = self._site.account(self._chance.choice(TERMS))
        self._owners.append(Owner(account.account_id, key.api_key, key.key_id))

    def _be_a_client(self, seed: str) -> None:
        chance = random.Random(seed)
        while not self._is_over:
            with self._lock:
                owner = chance.choice(self._owners[-ACCOUNTS:])
                key = chance.choice(list(owner.keys))
                keyed = [order for order in self.orders if order.key]
            mine = [order for order in keyed if order.account_id == owner.account_id]
            [act] = chance.choices((self._order, self._repeat, self._reuse, self._delete), (9, 6, 2, 3))
            act(chance, owner, key, mine if act != self._reuse else keyed)

    def _order(self, chance: random.Random, owner: Owner, api_key: str, _orders: list[Order]) -> None:
        """Ask for something new, perhaps several times at once."""
        order = self._new_order(chance, owner, uuid4().hex if chance.random() < 0.8 else None)
        times = chance.choice((1, 1, 2, 3)) if order.key else 1
        senders = [
            threading.Thread(target=self._send, args=(order, chance.choice(self._site.nodes), api_key))
            for _ in range(times)
        ]
        for sender in senders:
            sender.start()
        for sender in senders:
            sender.join()

    def _repeat(self, chance: random.Random, _owner: Owner, api_key: str, orders: list[Order]) -> None:
        if orders:
            self._send(chance.choice(orders), chance.choice(self._site.nodes), api_key)

    def _reuse(self, chance: random.Random, owner: Owner, api_key: str, orders: list[Order]) -> None:
        """Use a key for something else, of the same account or another."""
        if orders:
            order = self._new_order(chance, owner, chance.choice(orders).key)
            self._send(order, chance.choice(self._site.nodes), api_key)

    def _delete(self, chance: random.Random, _owner: Owner, api_key: str, orders: list[Order]) -> None:
        """Cancel or erase a job."""
        if found := [entry["jobId"] for order in orders for told in order.told for entry in told]:
            path = f"/api/geo/convert/jobs/{chance.choice(found)}"
            self._ask("DELETE", chance.choice(self._site.nodes), path, api_key)

    def _new_order(self, chance: random.Random, owner: Owner, key: str | None) -> Order:
        order = Order(
            account_id=owner.account_id,
            files=tuple(_file(chance) for _ in range(chance.choice((1, 1, 1, 2, 3, 6)))),
            key=key,
            will_not_wait=chance.random() < 0.3,
        )
        with self._lock:
            self.orders.append(order)
        return order

    def _send(self, order: Order, node: Node, api_key: str) -> int:
        """Send an order and note its answer; return the status, 0 if there is none."""
        is_batch = len(order.files) > 1
        headers = {"Idempotency-Key": order.key} if order.key else {}
        if order.will_not_wait:
            headers["Prefer"] = "respond-async"
        files = [("files" if is_batch else "file", (file.name, file.content)) for file in order.files]
        path = f"/api/geo/convert/{'batch' if is_batch else 'file'}"
        response = self._ask("POST", node, path, api_key, headers=headers, files=files)
        if response is None or response.is_server_error:
            order.is_unsure = True
        elif response.is_success:
            body = response.json()
            order.told.append(body.get("results") or body.get("jobs") or [body])
        return response.status_code if response is not None else 0

    def _ask(
        self, method: str, node: Node, path: str, api_key: str, *, headers: Mapping[str, str] | None = None, **body: Any
    ) -> httpx.Response | None:
        """Send a request and note what no answer may be; None if the connection broke."""
        with self._lock:
            revoked_at = next((owner.revoked.get(api_key) for owner in self._owners if api_key in owner.keys), None)
        is_refused = revoked_at is not None and time.monotonic() > revoked_at + REVOKED_SECONDS
        with suppress(httpx.HTTPError):
            url, headers = f"{node.server.url}{path}", {"X-API-Key": api_key, **(headers or {})}
            response = httpx.request(method, url, headers=headers, timeout=PATIENCE_SECONDS, **body)
            if response.status_code == httpx.codes.INTERNAL_SERVER_ERROR:
                self.defects.append(f"{method} {path}: {response.text}")
            if is_refused and response.status_code not in {httpx.codes.UNAUTHORIZED, httpx.codes.SERVICE_UNAVAILABLE}:
                self.defects.append(f"{method} {path} with a revoked key: {response.status_code}")
            return response
        return None

    def _administer(self) -> None:
        """Do what an operator does, unless the database is away or the account does not allow it."""
        owner = self._chance.choice(self._owners[-ACCOUNTS:])
        with suppress(DatabaseUnavailable, AdministrationError, asyncpg.PostgresError):
            [act] = self._chance.choices((self._change, self._add_key, self._revoke_key, self._close), (10, 3, 3, 1))
            act(owner)

    def _change(self, owner: Owner) -> None:
        changes = CHANGES[self._chance.choice(sorted(CHANGES))](self._chance)
        self._site.administer("change_account", owner.account_id, changes)

    def _add_key(self, owner: Owner) -> None:
        made = self._site.administer("create_key", owner.account_id)
        with self._lock:
            owner.keys[made.api_key] = made.key_id

    def _revoke_key(self, owner: Owner) -> None:
        if len(owner.valid) > 1:
            key = self._chance.choice(owner.valid)
            self._site.administer("revoke_key", owner.keys[key])
            with self._lock:
                owner.revoked[key] = time.monotonic()

    def _close(self, owner: Owner) -> None:
        self._site.administer("close_account", owner.account_id)
        with self._lock:
            owner.revoked |= dict.fromkeys(owner.valid, time.monotonic())
            self._open_account()

    def _break(self) -> None:
        """Do one of the things that happen to servers, to one or both."""
        table: Mapping[Callable[[Node], None], int] = {
            self._crash_database: 2,
            self._terminate_sessions: 3,
            self._cancel_statements: 4,
            self._lock_out_of_order: 4,
            self._cut_off: 2,
            self._kill: 1,
            self._freeze: 3,
            self._move_time: 3,
            self._break_connection: 8,
            self._hold: 4,
        }
        [act] = self._chance.choices(list(table), list(table.values()))
        act(self._chance.choice(self._site.nodes))
        time.sleep(self._chance.random() / 2)

    def _crash_database(self, _node: Node) -> None:
        self._site.crash_database()

    def _terminate_sessions(self, _node: Node) -> None:
        self._site.rows("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE pid <> pg_backend_pid()")

    def _cancel_statements(self, _node: Node) -> None:
        """As a limit of their time does."""
        for _ in range(COLLISIONS):
            self._site.rows(
                "SELECT pg_cancel_backend(pid) FROM pg_stat_activity WHERE pid <> pg_backend_pid() AND state = 'active'"
            )
            time.sleep(0.01)

    def _lock_out_of_order(self, _node: Node) -> None:
        """Let deadlocks happen."""
        self._site.portal.call(self._collide)

    async def _collide(self) -> None:
        async with open_pool(self._site.dsn, max_size=1) as pool:
            for _ in range(COLLISIONS):
                with suppress(DatabaseUnavailable, asyncpg.PostgresError):
                    async with pool.transaction() as connection:
                        for table in self._chance.sample(TABLES, len(TABLES)):
                            await connection.execute(table)

    def _cut_off(self, node: Node) -> None:
        node.database.cut()
        time.sleep(self._chance.choice(PAUSES_SECONDS))
        node.mend()

    def _kill(self, node: Node) -> None:
        node.kill()
        _revive(node)

    def _freeze(self, node: Node) -> None:
        node.freeze()
        time.sleep(self._chance.choice(PAUSES_SECONDS))
        node.wake()

    def _move_time(self, _node: Node) -> None:
        self._shift += self._chance.choice(SHIFTS_SECONDS)
        self._site.rows("UPDATE test_shift SET seconds = $1", self._shift)

    def _break_connection(self, node: Node) -> None:
        """Break the connection of a statement, before it is run or its answer has come."""
        statement = self._chance.choice(STATEMENTS)
        _tap_of(node, statement).hold(statement, self._chance.choice(("before", "after"))).let_go(breaks=True)

    def _hold(self, node: Node) -> None:
        """Hold a statement or its answer, and perhaps break its connection then."""
        statement = self._chance.choice(STATEMENTS)
        hold = _tap_of(node, statement).hold(statement, self._chance.choice(("before", "after")))
        hold.reached.wait(3)
        time.sleep(self._chance.choice(PAUSES_SECONDS))
        hold.let_go(breaks=self._chance.random() < 0.5)


def _tap_of(node: Node, statement: str) -> Any:
    return node.store if statement == "put" else node.database


def _revive(node: Node) -> None:
    """Restart it, as a service manager does until the database is there."""

    def is_up() -> bool:
        with suppress(AssertionError):
            node.revive()
        return node.server.process.poll() is None

    wait_until(is_up)


def _file(chance: random.Random) -> Sent:
    number, name = chance.randrange(1 << 30), f"{uuid4().hex}.geojson"
    if chance.random() < 0.1:
        return Sent(name=name, content=b"{%d" % number, can_be_converted=False)
    features = (feature(point(n % 90, 1), n=n + number) for n in range(chance.choice(FEATURES)))
    return Sent(name=name, content=collection(*features))


async def prepare(dsn: str) -> None:
    """Let a test move the clock of a database, which notices deadlocks soon."""
    async with open_pool(dsn, max_size=1) as database, database.connection() as connection:
        await connection.execute(MOVABLE_TIME)
        await connection.execute("ALTER SYSTEM SET deadlock_timeout = '50ms'")
        await connection.execute("SELECT pg_reload_conf()")
