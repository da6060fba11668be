"""A mixed load: ordinary requests of clients, and invalid ones.

Each row does one thing as a client does it, start to end, and names what became of it: `OK`, or what else. A failure
that belongs to a row, such as the refusal of a bad file, is what it waits for.
"""

import asyncio
import random
import time
import uuid
from collections.abc import Mapping
from functools import partial
from http import HTTPStatus
from typing import Any

import httpx

from bench.load.client import Address, LoadRequest, upload
from bench.load.documents import document, small_document
from bench.load.load import OK
from bench.load.page import PAGE
from bench.load.paths import ANALYZE, BATCH, JOBS, SINGLE
from bench.load.scenarios import WRONG_KEY
from bench.load.site import Site
from bench.load.visitor import TARGETS, Row, Visitor, converted, first_wrong, rejected, what, with_status
from bench.measure.meter import MEGABYTE

LARGE_MB = (1, 2, 8)
TIMEOUT_SECONDS = 180.0
POLL_SECONDS = 0.05
BAD = {
    "cut.geojson": small_document()[:-40],
    "noise.gpkg": random.Random(1).randbytes(20_000),
    "empty.kml": b"",
    "liar.zip": b"PK\x03\x04" + bytes(200),
    "wrong.fgb": small_document(),
}
ENDED = frozenset({"Completed", "Failed", "Expired"})


async def _small(visitor: Visitor) -> str:
    return converted(await visitor.convert("places.geojson", small_document()))


async def _formats(visitor: Visitor) -> str:
    source = visitor.random.choice(list(visitor.files))
    target = visitor.random.choice([name for name, token in TARGETS.items() if token != source])
    name, content = visitor.files[source]
    fields = {"outputFormat": target, "sourceEpsg": "4326", "targetEpsg": "3857"}
    return converted(await visitor.convert(name, content, fields))


async def _large(visitor: Visitor) -> str:
    content = document(visitor.random.choice(LARGE_MB) * MEGABYTE)
    fields = {"outputFormat": visitor.random.choice(["Shapefile", "Csv"])}
    return converted(await visitor.convert("places.geojson", content, fields))


async def _analysis(visitor: Visitor) -> str:
    size = visitor.random.choice((2_000, 200_000, 2_000_000))
    return converted(await visitor.convert("places.geojson", document(size), path=ANALYZE))


async def _batch(visitor: Visitor) -> str:
    files = [("files", file) for file in visitor.random.sample(list(visitor.files.values()), 3)]
    files.append(("files", ("cut.geojson", BAD["cut.geojson"])))
    fields = {"outputFormats": ["GeoJsonSeq"] * len(files), "sourceEpsgs": ["4326"] * len(files)}
    path = visitor.site.prefix + BATCH
    response = await visitor.client.post(path, files=files, data=fields, headers=visitor.key())
    if response.status_code != HTTPStatus.OK:
        return what(response)
    outcomes = [entry["success"] for entry in response.json()["results"]]
    return OK if outcomes == [True, True, True, False] else f"a batch ended as {outcomes}"


async def _repeat(visitor: Visitor) -> str:
    headers = {**visitor.key(), "Idempotency-Key": uuid.UUID(int=visitor.random.getrandbits(128)).hex}
    answers = [await visitor.convert("places.geojson", small_document(), headers=headers) for _ in range(2)]
    same = len({answer.json().get("jobId") for answer in answers}) == 1
    return first_wrong(*map(converted, answers), OK if same else "a repeat made another job")


async def _asynchronous(visitor: Visitor) -> str:
    key = visitor.key()
    response = await visitor.convert("places.geojson", small_document(), headers={**key, "Prefer": "respond-async"})
    if response.status_code != HTTPStatus.ACCEPTED:
        return what(response)
    path, give_up_at = f"{JOBS}/{response.json()['jobId']}/status", time.monotonic() + TIMEOUT_SECONDS
    job = await _poll(visitor, path, key)
    while job["status"] not in ENDED and time.monotonic() < give_up_at:
        await asyncio.sleep(POLL_SECONDS)
        job = await _poll(visitor, path, key)
    return OK if job["status"] == "Completed" else f"an accepted job is {job['status']}"


async def _poll(visitor: Visitor, path: str, key: Mapping[str, str]) -> dict[str, Any]:
    job: dict[str, Any] = (await visitor.get(path, key)).json()
    return job


async def _jobs(visitor: Visitor) -> str:
    return with_status(await visitor.get(f"{JOBS}?limit=20", visitor.key()), HTTPStatus.OK)


async def _download(visitor: Visitor) -> str:
    answer = await visitor.convert("places.geojson", small_document(), {"outputFormat": "GeoPackage"})
    if verdict := first_wrong(converted(answer)).removeprefix(OK):
        return verdict
    link = answer.json()["downloadUrl"]
    whole = await visitor.client.get(link)
    part = await visitor.client.get(link, headers={"Range": "bytes=0-99"})
    altered = await visitor.client.get(f"{link}0")
    right = whole.content[:100] == part.content
    return first_wrong(
        with_status(whole, HTTPStatus.OK),
        with_status(altered, HTTPStatus.FORBIDDEN),
        OK if right else "a part of a result is another",
    )


async def _wrong_key(visitor: Visitor) -> str:
    response = await visitor.convert("places.geojson", document(MEGABYTE), headers={"X-API-Key": WRONG_KEY})
    return with_status(response, HTTPStatus.UNAUTHORIZED)


async def _rejection(visitor: Visitor) -> str:
    fields = visitor.random.choice(
        [{"outputFormat": "Dwg"}, {"outputFormat": "GeoJson"}, {"targetEpsg": "999999"}, {"layer": "nowhere"}]
    )
    return rejected(await visitor.convert("places.geojson", small_document(), fields))


async def _without_credit(visitor: Visitor) -> str:
    key = {"X-API-Key": visitor.site.spent}
    return rejected(await visitor.convert("places.geojson", small_document(), headers=key))


async def _bad_file(visitor: Visitor) -> str:
    name = visitor.random.choice(list(BAD))
    return rejected(await visitor.convert(name, BAD[name], {"outputFormat": "Csv"}))


async def _malformed(visitor: Visitor) -> str:
    wrong = visitor.random.choice([{"targetEpsg": "WGS84"}, {"includeWallet": "perhaps"}])
    field = await visitor.convert("places.geojson", small_document(), wrong)
    path = visitor.site.prefix + SINGLE
    text = await visitor.client.post(path, content=small_document(), headers=visitor.key())
    return first_wrong(with_status(field, HTTPStatus.BAD_REQUEST), with_status(text, HTTPStatus.BAD_REQUEST))


async def _too_large(visitor: Visitor) -> str:
    head = (
        f"POST {visitor.site.prefix}{SINGLE} HTTP/1.1\r\nHost: {visitor.site.address.host}\r\n"
        f"X-API-Key: {visitor.key()['X-API-Key']}\r\nContent-Length: 300000000\r\n"
        "Content-Type: multipart/form-data; boundary=x\r\n\r\n"
    )
    reader, writer = await _connect(visitor.site.address)
    try:
        writer.write(head.encode())
        status = (await reader.readline()).split(b" ")[1:2]
    finally:
        writer.transport.abort()
    return OK if status == [b"413"] else f"too large an upload was answered with {status}"


async def _leave(visitor: Visitor, share: float) -> str:
    """Send a part of an upload, wait for a moment, and disconnect."""
    content = document(visitor.random.choice((4_000, 400_000)))
    request: LoadRequest = upload(
        visitor.site.address, visitor.site.prefix + SINGLE, visitor.key(), name="places.geojson", content=content
    )
    _, writer = await _connect(visitor.site.address)
    try:
        writer.write(request.parts[0][: int(len(request.parts[0]) * share)])
        await writer.drain()
        await asyncio.sleep(visitor.random.random() * POLL_SECONDS)
    finally:
        writer.transport.abort()
    return OK


async def _connect(address: Address) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    return await asyncio.open_connection(address.host, address.port, ssl=address.tls or None)


async def _look_around(visitor: Visitor) -> str:
    key = visitor.key()
    paths = ("/api/geo/formats", "/api/geo/pricing/tiers")
    answers = [await visitor.get(path, key) for path in paths]
    nothing = await visitor.get("/api/geo/nothing", key)
    return first_wrong(
        *(with_status(answer, HTTPStatus.OK) for answer in answers), with_status(nothing, HTTPStatus.NOT_FOUND)
    )


MIX: dict[str, Row] = {
    "small conversion": Row(30, _small),
    "format to format": Row(25, _formats),
    "large conversion": Row(2, _large),
    "analysis": Row(6, _analysis),
    "batch": Row(5, _batch),
    "repeat with a key": Row(4, _repeat),
    "answered before its end": Row(6, _asynchronous),
    "list of jobs": Row(6, _jobs),
    "download": Row(6, _download),
    "wrong key": Row(4, _wrong_key),
    "rejection": Row(5, _rejection),
    "no credit": Row(3, _without_credit),
    "bad file": Row(6, _bad_file),
    "malformed request": Row(4, _malformed),
    "too large": Row(2, _too_large),
    "leaves during upload": Row(5, partial(_leave, share=0.5)),
    "leaves after upload": Row(4, partial(_leave, share=1.0)),
    "look around": Row(3, _look_around),
    **PAGE,
}


def rows_for(site: Site) -> dict[str, int]:
    """The actions that this site supports, with their weights."""
    return {name: row.weight for name, row in MIX.items() if site.spent or row.act is not _without_credit}


async def act(visitor: Visitor, name: str) -> str:
    """Perform the action, and return its outcome."""
    try:
        return await MIX[name].act(visitor)
    except (httpx.HTTPError, OSError, TimeoutError) as error:
        return type(error).__name__
