"""A result that its owner erases while it is being read is gone; that is no failure of the store (interface 4.8)."""

from collections.abc import AsyncIterator
from contextlib import aclosing
from typing import get_args

import pytest
from prometheus_client import REGISTRY

from service.errors import StorageFault
from service.storage.local import LocalStorage
from service.storage.port import ObjectKey
from tests.support.data import lakes
from tests.support.world import World

pytestmark = pytest.mark.asyncio(loop_scope="session")  # as the shared service

KEY = {"Idempotency-Key": "erased"}
FILES = {"file": ("a.geojson", lakes())}


def failures() -> float:
    """How many failures of the store were counted."""
    counted = [
        REGISTRY.get_sample_value("geomill_storage_failures_total", {"fault": fault})
        for fault in get_args(StorageFault)
    ]
    return sum(filter(None, counted))


@pytest.mark.parametrize(
    ("request_path", "reads_before", "code"),
    [
        ("file?download=true", 0, "download_expired"),
        ("jobs/{}/preview", 2, "no_result"),  # it was looked for twice, and is to be made now
        ("jobs/{}/preview", 3, "no_result"),  # it was made and stored
    ],
)
@pytest.mark.parametrize("is_erased", [True, False], ids=["erased", "lost"])
async def test_a_read_of_what_was_erased_meanwhile(
    here: World, monkeypatch: pytest.MonkeyPatch, request_path: str, reads_before: int, code: str, *, is_erased: bool
) -> None:
    """The client is told so. Only an object that the store has lost makes it unavailable, and pages its operator."""
    answer = (await here.client.post("/api/geo/convert/file", files=FILES, headers=KEY)).json()
    read, reads = LocalStorage.read, 0

    async def late(storage: LocalStorage, key: ObjectKey) -> AsyncIterator[bytes]:
        nonlocal reads
        reads += 1
        if reads > reads_before:
            await remove()
        async with aclosing(read(storage, key)) as pieces:
            async for piece in pieces:
                yield piece

    async def remove() -> None:
        if is_erased:
            await here.client.delete(f"/api/geo/convert/jobs/{answer['jobId']}")
        else:
            await here.services.storage.delete([entry.key async for entry in here.services.storage.objects()])

    monkeypatch.setattr(LocalStorage, "read", late)
    before, path = failures(), f"/api/geo/convert/{request_path.format(answer['jobId'])}"
    if "preview" in path:
        response = await here.client.get(path)
    else:
        response = await here.client.post(path, files=FILES, headers=KEY)
    assert reads == reads_before + 1
    assert response.json()["code"] == (code if is_erased else "overloaded")
    assert failures() == before + (not is_erased)
