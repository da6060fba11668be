"""Clients of a fleet that is being broken: they send again until they have an answer, and remember each one."""

import asyncio
import itertools
import random
import secrets
from collections import Counter, defaultdict
from collections.abc import Callable, Mapping
from http import HTTPStatus
from typing import Any

import httpx
import msgspec

from bench.load.documents import document, small_document
from bench.load.paths import BATCH, SINGLE

ASYNC = {"Prefer": "respond-async"}
WRONG_KEY = "gm_wrong"
TARGETS = ("Csv", "Kml", "GeoPackage", "Shapefile")
LATER = frozenset(
    {
        HTTPStatus.CONFLICT,
        HTTPStatus.TOO_MANY_REQUESTS,
        HTTPStatus.BAD_GATEWAY,
        HTTPStatus.SERVICE_UNAVAILABLE,
        HTTPStatus.GATEWAY_TIMEOUT,
    }
)
"""Statuses that ask for the request to be sent again."""
LATER_SECONDS = 0.5
TIMEOUT_SECONDS = 180.0
PROMISED_SHARE = 0.2
FILES_OF_A_BATCH = 3

SMALL, LARGE, KEYED, BATCHED, BAD, POOR, UNKNOWN = "small", "large", "keyed", "batch", "bad", "poor", "unknown"
WEIGHTS = {SMALL: 60, LARGE: 8, KEYED: 15, BATCHED: 7, BAD: 5, POOR: 3, UNKNOWN: 2}
"""What is sent: the last two, one in twenty, are refused for what the account may not, and for its key."""
GOOD = frozenset({SMALL, LARGE, KEYED, BATCHED})
"""Kinds whose files can be converted; the name of a file begins with its kind."""


class Keys(msgspec.Struct, frozen=True):
    """API keys of accounts: several that may convert, and one without credit."""

    good: tuple[str, ...]
    spent: str


class ClientRecord:
    """What clients were told."""

    def __init__(self) -> None:
        self.promised: set[str] = set()
        """The ids of jobs that were answered with 202."""
        self.answered: dict[str, bool] = {}
        """The ids of jobs that were answered with 200, and their `success`."""
        self.repeated: defaultdict[str, set[str]] = defaultdict(set)
        """The ids of successful answers by file name, where each request of that name had the same idempotency key."""
        self.links: list[str] = []
        self.refused = 0
        self.troubles: Counter[str] = Counter()
        """Why requests were sent again."""
        self.wrong: list[str] = []
        """Answers that no client should get."""
        self.done = 0


class FleetClients:
    """Clients in one event loop; `gateways` returns the URLs that are worth a try now."""

    def __init__(self, gateways: Callable[[], list[str]], keys: Keys, seed: int) -> None:
        self.memory = ClientRecord()
        self._gateways = gateways
        self._keys = keys
        self._seed = seed
        self._numbers = itertools.count()
        self._mark = secrets.token_hex(4)  # so that the names of files are those of this run

    async def run(self, count: int, clients: int) -> None:
        """Have `count` requests answered, `clients` at a time."""
        numbers = itertools.islice(self._numbers, count)
        limits = httpx.Limits(max_keepalive_connections=clients)
        async with httpx.AsyncClient(timeout=TIMEOUT_SECONDS, limits=limits) as client, asyncio.TaskGroup() as tasks:
            for _ in range(clients):
                tasks.create_task(self._one_after_the_other(client, numbers))

    async def _one_after_the_other(self, client: httpx.AsyncClient, numbers: Any) -> None:
        for number in numbers:
            await self._errand(client, number)
            self.memory.done += 1

    async def _errand(self, client: httpx.AsyncClient, number: int) -> None:
        choose = random.Random(f"{self._seed}/{number}")  # the same whatever happened to other requests
        kind = choose.choices(list(WEIGHTS), list(WEIGHTS.values()))[0]
        headers = {"X-API-Key": choose.choice(self._keys.good), **(ASYNC if choose.random() < PROMISED_SHARE else {})}
        headers |= {POOR: {"X-API-Key": self._keys.spent}, UNKNOWN: {"X-API-Key": WRONG_KEY}}.get(kind, {})
        if kind == KEYED:
            headers["Idempotency-Key"] = f"{kind}-{number}-{choose.random()}"
        target = choose.choice(TARGETS)
        for _ in range(2 if kind == KEYED else 1):
            name = f"{kind}-{number}-{self._mark}.geojson"
            while not await self._is_done(client, kind, name, target, headers):  # noqa: ASYNC110 -- nothing tells when
                await asyncio.sleep(LATER_SECONDS)

    async def _is_done(
        self, client: httpx.AsyncClient, kind: str, name: str, target: str, headers: Mapping[str, str]
    ) -> bool:
        """Send a request once; return whether there is nothing more to do about it."""
        memory = self.memory
        try:
            response = await self._send(client, kind, name, target, headers)
        except (httpx.HTTPError, IndexError) as error:  # nobody there, or no gateway at all
            memory.troubles[type(error).__name__] += 1
            return False
        if response.status_code in LATER:
            memory.troubles[str(response.status_code)] += 1
            return False
        if kind == UNKNOWN and response.status_code == HTTPStatus.UNAUTHORIZED:
            memory.refused += 1
            return True
        if response.status_code not in {HTTPStatus.OK, HTTPStatus.ACCEPTED}:
            memory.wrong.append(f"{name}: {response.status_code} {response.text[:200]}")
            return response.status_code < HTTPStatus.INTERNAL_SERVER_ERROR
        answer = response.json()
        entries = answer.get("results") or answer.get("jobs") or [answer]
        contents = [self._note(kind, name, entry, response.status_code) for entry in entries]
        return all(contents)

    async def _send(
        self, client: httpx.AsyncClient, kind: str, name: str, target: str, headers: Mapping[str, str]
    ) -> httpx.Response:
        gateway = random.choice(self._gateways())
        content = {BAD: small_document()[:-40], LARGE: document(400_000)}.get(kind, small_document())
        if kind == BATCHED:
            files = [("files", (f"{kind}-{number}-of-{name}", content)) for number in range(FILES_OF_A_BATCH)]
            data = {"outputFormats": [target] * FILES_OF_A_BATCH}
            return await client.post(gateway + BATCH, files=files, data=data, headers=headers)
        return await client.post(
            gateway + SINGLE, files={"file": (name, content)}, data={"outputFormat": target}, headers=headers
        )

    def _note(self, kind: str, name: str, entry: Mapping[str, Any], status: int) -> bool:
        """Remember the answer for one file; return whether the client is content with it."""
        memory, job_id = self.memory, entry.get("jobId")
        if kind == POOR:
            memory.refused += 1
            if entry.get("success") is not False:
                memory.wrong.append(f"{name}: an account without credit got {entry}")
            return True
        if job_id is None:
            memory.troubles[f"no job: {entry.get('error')}"] += 1
            return False
        if status == HTTPStatus.ACCEPTED and entry.get("status") in {"Pending", "Processing"}:
            memory.promised.add(job_id)
            return True
        success = entry.get("success", entry.get("status") == "Completed")
        memory.answered[job_id] = success
        if success and kind == KEYED:
            memory.repeated[name].add(job_id)
        if success and entry.get("downloadUrl"):
            memory.links.append(entry["downloadUrl"])
        if kind == BAD and success:
            memory.wrong.append(f"{name}: a cut file was converted")
        if kind in GOOD and not success:
            memory.troubles[str(entry.get("error"))] += 1
        return bool(success) or kind == BAD
