"""Requests of clients that record every response, and what must be true of them in the end."""

from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from typing import Any
from uuid import uuid4

import httpx
import msgspec

from service.accounts.administration import Terms
from tests.schedules.site import Node, Site
from tests.support.data import collection, feature, lakes, point
from tests.support.patience import PATIENCE_SECONDS, wait_until

CREDIT_CENTS = 1000
SENDERS = ThreadPoolExecutor(max_workers=32)

BROKEN = b"{"
LARGER = collection(*(feature(point(n % 90, 1), n=n) for n in range(3000)))


class Kind(msgspec.Struct, frozen=True, kw_only=True):
    """Which files a request sends, and how."""

    files: tuple[bytes, ...] = (lakes(),)
    is_batch: bool = False
    will_not_wait: bool = False
    has_key: bool = True
    has_wallet: bool = False


SINGLE = Kind()
KINDS = {
    "single": SINGLE,
    "larger": Kind(files=(LARGER,)),
    "broken": Kind(files=(BROKEN,)),
    "batch": Kind(files=(lakes(), BROKEN, LARGER), is_batch=True),
    "async": Kind(will_not_wait=True),
    "async batch": Kind(files=(lakes(), lakes()), is_batch=True, will_not_wait=True),
    "wallet": Kind(has_wallet=True),
    "wallet batch": Kind(files=(lakes(), lakes()), is_batch=True, has_wallet=True),
    "without a key": Kind(has_key=False),
    "batch without a key": Kind(files=(lakes(), lakes()), is_batch=True, has_key=False),
}


class Request:
    """A request of a fresh account that may be repeated."""

    def __init__(self, site: Site, kind: Kind) -> None:
        terms = Terms(wallet_cents=CREDIT_CENTS) if kind.has_wallet else Terms(plan="free")
        account, key = site.account(terms)
        self._site = site
        self.kind = kind
        self.account_id = account.account_id
        self._headers = {"X-API-Key": key.api_key}
        if kind.has_key:
            self._headers["Idempotency-Key"] = uuid4().hex
        if kind.will_not_wait:
            self._headers["Prefer"] = "respond-async"
        self.told: list[list[dict[str, Any]]] = []
        """The entries of each answer that had any."""

    def begin(self, node: Node) -> "Future[httpx.Response | None]":
        """Send it without waiting for the response."""
        return SENDERS.submit(self.send, node)

    def send(self, node: Node) -> httpx.Response | None:
        """Send it; None if the connection broke."""
        part = "files" if self.kind.is_batch else "file"
        files = [(part, (f"{number}.geojson", content)) for number, content in enumerate(self.kind.files)]
        path = "batch" if self.kind.is_batch else "file"
        with suppress(httpx.HTTPError):
            response = httpx.post(
                f"{node.server.url}/api/geo/convert/{path}",
                files=files,
                headers=self._headers,
                timeout=PATIENCE_SECONDS,
            )
            if response.is_success:
                self._note(response.json())
            return response
        return None

    def _note(self, body: dict[str, Any]) -> None:
        self.told.append(body.get("results") or body.get("jobs") or [body])

    def repeat(self, node: Node) -> list[dict[str, Any]]:
        """Repeat it until there is a response; return the response's entries."""

        def is_answered() -> bool:
            response = self.send(node)
            if response is None or response.status_code in {409, 503}:
                return False
            assert response.is_success, response.text
            return True

        wait_until(is_answered, longest_pause=0.3)
        return self.told[-1]

    def delete(self, node: Node) -> httpx.Response:
        """Delete the only job."""
        [row] = self._site.rows("SELECT id FROM job WHERE account_id = $1", self.account_id)
        address = f"{node.server.url}/api/geo/convert/jobs/{row['id']}"
        return httpx.delete(address, headers=self._headers, timeout=PATIENCE_SECONDS)

    def assert_all_adds_up(self, node: Node, *, store_was_there: bool = True) -> None:
        """Responses match ledger and jobs, and nothing was done twice under a key.

        Everything that can be converted was, if the store was away by a repeat after its return.
        """
        if self.kind.has_key and not store_was_there:
            self.repeat(node)
        wait_until(self.has_ended)
        charged = self.charged()
        for entry in (entry for answer in self.told for entry in answer):
            record = self._record(node, entry["jobId"])
            if "success" in entry:
                assert record["status"] == ("Completed" if entry["success"] else "Failed"), (entry, record)
            assert (entry["jobId"] in charged) == (record["status"] == "Completed")
        if self.kind.has_key:
            jobs = self._assert_done_once(node, charged)
            converted = [job["status"] == "Completed" for job in jobs]
            assert converted == [content != BROKEN for content in self.kind.files], jobs

    def _assert_done_once(self, node: Node, charged: Sequence[str]) -> list[dict[str, Any]]:
        final, again = self.repeat(node), self.repeat(node)
        assert [entry["jobId"] for entry in final] == [entry["jobId"] for entry in again]
        jobs = [self._record(node, entry["jobId"]) for entry in final]
        succeeded = [job["jobId"] for job in jobs if job["status"] == "Completed"]
        assert sorted(charged) == sorted(self.charged()) == sorted(succeeded)
        return jobs

    def _record(self, node: Node, job_id: str) -> dict[str, Any]:
        """The job at its address, which exists for every job that a client was told of."""
        response = httpx.get(
            f"{node.server.url}/api/geo/convert/jobs/{job_id}/status", headers=self._headers, timeout=PATIENCE_SECONDS
        )
        assert response.status_code == httpx.codes.OK, (job_id, response.text)
        record: dict[str, Any] = response.json()
        return record

    def has_ended(self) -> bool:
        """Whether the account has no open job."""
        query = "SELECT id FROM job WHERE account_id = $1 AND completed_at IS NULL"
        return not self._site.rows(query, self.account_id)

    def charged(self) -> list[str]:
        """The jobs that the account was charged for."""
        query = "SELECT job_id FROM ledger WHERE account_id = $1"
        return [str(row["job_id"]) for row in self._site.rows(query, self.account_id)]
