"""Shows the result of a job on a map: its first features as GeoJSON in longitude and latitude, uncounted.

The first request for a job makes the preview from the stored result, which is as untrusted as any upload, in a
converter that the account waits for like for any other file. It is stored beside the result and removed with it.
"""

from collections import Counter
from collections.abc import Iterator
from contextlib import aclosing, contextmanager, suppress
from functools import partial
from pathlib import Path

import anyio
import msgspec

from service.blocking import run_blocking
from service.engine.convert import Engine
from service.engine.files import holds_little, read_written
from service.engine.preview import MOST_BYTES
from service.engine.workspace import Run
from service.errors import NoResult, Overloaded, Rejection, StorageUnavailable, TooManyRequests
from service.formats.detect import Source
from service.ids import AccountId
from service.intake.form import MEBIBYTE, Upload
from service.jobs.dispatch import RETRY_AFTER_SECONDS
from service.jobs.lifecycle import Status
from service.jobs.records import Job
from service.storage.observed import observed
from service.storage.port import ObjectKey, new_key, split_key
from service.usecases.converter import RunCrashed, converter
from service.usecases.detect_format import detect_format
from service.usecases.jobs import read_job
from service.usecases.services import Services

MEDIA_TYPE = "application/geo+json"
AT_ONCE = 4
"""Previews that a process makes at a time: each holds a copy of its result on the disk."""
PER_ACCOUNT = 8
"""Previews that an account may wait for in one process."""
GONE = "The result of this job is no longer kept. Convert the file again."
UNREADABLE = "The store of results is unavailable. Try again later."
_making = anyio.CapacityLimiter(AT_ONCE)
_waiting: Counter[AccountId] = Counter()


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


async def preview_result(services: Services, account_id: AccountId, untrusted_id: str) -> bytes:
    """Return the preview of a job's result, a GeoJSON document.

    Raises:
        JobNotFound: there is no such job of this account.
        NoResult: the job has no result, or it is no longer kept.
        Overloaded, TooManyRequests: no converter is available, or the store is not.
    """
    job = (await read_job(services, account_id, untrusted_id)).job
    key, is_new = await _key(services, account_id, job)
    if not is_new:
        # A process may have recorded the key and stored nothing: then the preview is made again.
        with suppress(StorageUnavailable), observed("read"):
            return b"".join([piece async for piece in services.storage.read(key)])
    try:
        async with services.work_area.workspace() as workspace:
            with _place(account_id):
                [ticket] = services.runner.enqueue(account_id)
                async with _making, converter(services.pool, ticket) as run:
                    made = await _make(services, run, job, workspace.new_directory())
            with observed("put"):
                await services.storage.put(key, made, media_type=MEDIA_TYPE, download_name="preview.geojson")
            return await _read(made)
    except StorageUnavailable as unavailable:
        raise Overloaded(UNREADABLE, RETRY_AFTER_SECONDS) from unavailable


async def _key(services: Services, account_id: AccountId, job: Job) -> tuple[ObjectKey, bool]:
    """Return the key of the preview, which is recorded before there is anything under it, and whether it is new."""
    if job.status not in {Status.COMPLETED, Status.EXPIRED}:
        message = f"The job is {job.status}, so there is no result to preview."
        raise NoResult(message)
    if job.status is Status.COMPLETED and job.object_key is not None:
        region, _ = split_key(ObjectKey(job.object_key))
        made = new_key(region)
        if key := await services.jobs.preview_key(job.id, account_id, made):
            return ObjectKey(key), key == made
    raise NoResult(GONE)


@contextmanager
def _place(account_id: AccountId) -> Iterator[None]:
    if _waiting[account_id] >= PER_ACCOUNT:
        message = f"This account waits for {PER_ACCOUNT} previews. Request this one when some of them are ready."
        raise TooManyRequests(message, RETRY_AFTER_SECONDS)
    _waiting[account_id] += 1
    try:
        yield
    finally:
        _waiting[account_id] -= 1
        if not _waiting[account_id]:
            del _waiting[account_id]


async def _make(services: Services, run: Run, job: Job, directory: Path) -> Path:
    """Make the preview below `directory`; return its path."""
    try:
        return await _preview(services, run, job, directory)
    except Rejection as rejection:
        return await run_blocking(partial(_without_features, directory, job, rejection.message), inline=True)


async def _preview(services: Services, run: Run, job: Job, directory: Path) -> Path:
    size_bytes, most = job.output_size_bytes or 0, services.intake.max_file_bytes
    if size_bytes > most:
        message = f"The result is larger than {most // MEBIBYTE} MB, too large for a preview."
        raise Rejection(message)
    result = directory / "result"
    await _fetch(services, ObjectKey(job.object_key or ""), result)
    upload = Upload(untrusted_name=job.download_name or "", path=result, size_bytes=size_bytes)
    source = await detect_format(upload)
    try:
        return await _written(services.engine, run, source, job, directory)
    except RunCrashed:
        return await _written(services.engine, run, source, job, directory)


async def _written(engine: Engine, run: Run, source: Source, job: Job, directory: Path) -> Path:
    path = await engine.preview(run, source, directory, job.details.output_epsg)
    await _read(path)  # it is an ordinary file, and no larger than agreed
    return path


def _without_features(directory: Path, job: Job, reason: str) -> Path:
    about = About(job.feature_count or 0, shown=0, complete=False, simplified=False, reason=reason)
    path = directory / "reason.json"
    path.write_bytes(msgspec.json.encode(Preview(about)))
    return path


async def _fetch(services: Services, key: ObjectKey, path: Path) -> None:
    """Copy an object to a file of its own, which a converter may own."""
    with observed("read"):
        async with aclosing(services.storage.read(key)) as pieces:
            with path.open("xb") as file:
                async for piece in pieces:
                    file.write(piece)


async def _read(path: Path) -> bytes:
    return await run_blocking(partial(read_written, path, MOST_BYTES), inline=holds_little(path))
