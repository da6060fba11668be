"""Shows the result of a job on a map: its first features as GeoJSON in longitude and latitude, uncounted.

The first request for a job makes the preview from the stored result, which is as untrusted as any upload, in a
converter that the account waits for like for any other file. It is stored beside the result and removed with it.
"""

from collections.abc import AsyncGenerator, Iterator
from contextlib import aclosing, contextmanager, suppress
from functools import partial
from pathlib import Path

import anyio
import msgspec
import structlog

from service.blocking import run_blocking
from service.engine.convert import Engine
from service.engine.files import size_of_written
from service.engine.preview import MOST_BYTES
from service.engine.workspace import Run
from service.errors import NoResult, Overloaded, Rejection, StorageUnavailable, TooManyRequests
from service.formats.source import Source
from service.ids import AccountId, JobId
from service.intake.form import MEBIBYTE, Upload
from service.jobs.dispatch import RETRY_AFTER_SECONDS
from service.jobs.lifecycle import Status
from service.jobs.records import Job
from service.storage.observed import copy_observed, observed
from service.storage.port import ObjectKey, new_key, region_of
from service.telemetry import events
from service.usecases.converter import RunCrashed, converter
from service.usecases.detect_format import detect_format
from service.usecases.jobs import read_job
from service.usecases.read_result import read_while_kept
from service.usecases.services import Services

_log = structlog.get_logger()

MEDIA_TYPE = "application/geo+json"
TOPIC = "preview"
_ASKED_SECONDS = 120.0
"""How long a gateway waits for the worker that makes a preview; a repeated request finds what came later."""
AT_ONCE = 4
"""Previews that a process makes at a time, one for each account: each holds a copy of its result on the disk."""
PER_ACCOUNT = 8
"""Previews that an account may wait for or receive in one process: each holds a few pieces in memory."""
GONE = "The result of this job is no longer kept. Convert the file again."
UNREADABLE = "The store of results is unavailable. Try again later."


class About(msgspec.Struct, frozen=True, rename="camel"):
    """What a preview says about itself: `reason` is why it has no features, if it has none."""

    feature_count: int
    shown: int
    complete: bool
    simplified: bool
    reason: str | None


class Preview(msgspec.Struct, frozen=True, tag_field="type", tag="FeatureCollection"):
    """A preview without features."""

    preview: About
    features: tuple[()] = ()


class Question(msgspec.Struct, frozen=True):
    """The job whose preview a gateway, which has no GDAL, asks a worker for."""

    account_id: AccountId
    job_id: JobId


class _Stored(msgspec.Struct, frozen=True):
    """A preview that is being read from the store."""

    first: bytes
    rest: AsyncGenerator[bytes]


class _Requests:
    """The requests of one account: how many there are, and the lock of the one that makes its preview."""

    def __init__(self) -> None:
        self.count = 0
        self.turn = anyio.Lock()


_making = anyio.CapacityLimiter(AT_ONCE)
_requests: dict[AccountId, _Requests] = {}


async def preview_result(services: Services, account_id: AccountId, untrusted_id: str) -> AsyncGenerator[bytes]:
    """Iterate over the preview of a job's result, a GeoJSON document; close the iterator if you leave it early.

    The first piece comes once there is a preview. From its beginning to its end, a request has one of the account's
    places, however slowly the client reads.

    Raises:
        JobNotFound: there is no such job of this account.
        NoResult: the job has no result, or it is no longer kept.
        Overloaded, TooManyRequests: no converter is available, or the store is not.
    """
    with _place(account_id) as turn:
        job = (await read_job(services, account_id, untrusted_id)).job
        key = await _key(services, account_id, job)
        stored = await _find(services, key)
        if stored is None:
            async with turn, _making:
                # Another request may have made it meanwhile.
                stored = await _find(services, key) or await _made(services, account_id, job, key)
        async with aclosing(stored.rest):
            yield stored.first
            async for piece in stored.rest:
                yield piece


async def _key(services: Services, account_id: AccountId, job: Job) -> ObjectKey:
    """Return the key of the preview, which is recorded before there is anything under it."""
    if job.status not in {Status.COMPLETED, Status.EXPIRED}:
        raise NoResult(f"The job is {job.status}, so there is no result to preview.")
    if job.status is Status.COMPLETED and job.object_key is not None:
        new = new_key(region_of(job.object_key))
        if key := await services.jobs.preview_key(job.id, account_id, new):
            return ObjectKey(key)
    raise NoResult(GONE)


@contextmanager
def _place(account_id: AccountId) -> Iterator[anyio.Lock]:
    requests = _requests.setdefault(account_id, _Requests())
    if requests.count >= PER_ACCOUNT:
        message = f"This account has {PER_ACCOUNT} requests for previews in progress. Wait until some have ended."
        raise TooManyRequests(message, RETRY_AFTER_SECONDS)
    requests.count += 1
    try:
        yield requests.turn
    finally:
        requests.count -= 1
        if not requests.count:
            del _requests[account_id]


async def _find(services: Services, key: ObjectKey) -> _Stored | None:
    """Return the stored preview; None if there is none yet.

    Not observed as an operation of the store, because a missing object is no failure here. If the store has failed,
    reading the result fails, too, and is observed.
    """
    with suppress(StorageUnavailable):
        return await _open(services.storage.read(key))
    return None


async def _open(pieces: AsyncGenerator[bytes]) -> _Stored:
    return _Stored(await anext(pieces, b""), pieces)


async def answer_preview(services: Services, question: bytes) -> bytes:
    """Make and store the preview that a gateway asks for.

    Raises:
        GeomillError: as `preview_result`.
    """
    asked = msgspec.msgpack.decode(question, type=Question)
    job = (await read_job(services, asked.account_id, str(asked.job_id))).job
    key = await _key(services, asked.account_id, job)
    async with _making:
        await _make_stored(services, asked.account_id, job, key)
    return key.encode()


async def _made(services: Services, account_id: AccountId, job: Job, key: ObjectKey) -> _Stored:
    """Have the preview made and stored, and open it."""
    try:
        if services.asked is None:
            await _make_stored(services, account_id, job, key)
        else:
            await services.asked.ask(TOPIC, msgspec.msgpack.encode(Question(account_id, job.id)), _ASKED_SECONDS)
        with observed("read"):
            return await _open(read_while_kept(services, job, key, NoResult(GONE)))
    except StorageUnavailable as unavailable:
        _log.warning(events.STORAGE_FAILED, job_id=job.id, fault=unavailable.fault, detail=unavailable.detail)
        raise Overloaded(UNREADABLE, RETRY_AFTER_SECONDS) from unavailable


async def _make_stored(services: Services, account_id: AccountId, job: Job, key: ObjectKey) -> None:
    async with services.work_area.workspace() as workspace:
        [ticket] = services.runner.enqueue(account_id)
        with converter(services.pool, ticket) as run:
            made = await _make(services, run, job, workspace.new_directory())
        await services.own_store.put(key, made, media_type=MEDIA_TYPE, download_name="preview.geojson")


async def _make(services: Services, run: Run, job: Job, directory: Path) -> Path:
    """Make the preview below `directory`; return its path."""
    try:
        return await _preview(services, run, job, directory)
    except Rejection as rejection:
        return await run_blocking(partial(_without_features, directory, job, rejection.message), inline=True)


async def _preview(services: Services, run: Run, job: Job, directory: Path) -> Path:
    size_bytes, most = job.output_size_bytes or 0, services.intake.max_file_bytes
    if size_bytes > most:
        raise Rejection(f"The result is larger than {most // MEBIBYTE} MB, too large for a preview.")
    result = directory / "result"
    await copy_observed(read_while_kept(services, job, ObjectKey(job.object_key or ""), NoResult(GONE)), result)
    upload = Upload(untrusted_name=job.download_name or "", path=result, size_bytes=size_bytes)
    source = await detect_format(upload, services.engine.limits, services.work_area.space)
    try:
        return await _written(services.engine, run, source, job, directory)
    except RunCrashed:
        return await _written(services.engine, run, source, job, directory)


async def _written(engine: Engine, run: Run, source: Source, job: Job, directory: Path) -> Path:
    path = await engine.preview(run, source, directory, job.details.output_epsg)
    if size_of_written(path) > MOST_BYTES:
        raise Rejection("The features are too large for a preview.")
    return path


def _without_features(directory: Path, job: Job, reason: str) -> Path:
    about = About(job.feature_count or 0, shown=0, complete=False, simplified=False, reason=reason)
    path = directory / "reason.json"
    path.write_bytes(msgspec.json.encode(Preview(about)))
    return path
