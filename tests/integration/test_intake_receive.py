"""Forms received to disk: what is kept, what is refused, and that nothing is left behind."""

import errno
import gc
import hashlib
import os
import subprocess
import sys
import tracemalloc
from collections.abc import AsyncIterator, Callable, Sequence
from pathlib import Path
from typing import NoReturn

import anyio
import pytest
from hypothesis import HealthCheck, given, settings
from msgspec.structs import replace

from service.blocking import INLINE_BYTES
from service.errors import (
    BatchTooLarge,
    MalformedRequest,
    Overloaded,
    RequestFault,
    TooManyFiles,
    UploadTimeout,
    UploadTooLarge,
)
from service.intake.form import MEBIBYTE, Form, FormSpec, IntakeLimits
from service.intake.spool import receive
from service.intake.workspace import WorkArea, open_work_area
from tests.integration.intake_server import open_descriptors
from tests.unit.intake.forms import BOUNDARY, Part, build, chunk_sizes, cut, forms

FIELDS = frozenset({"outputFormat", "outputFormats"})
SINGLE = FormSpec(file_field="file", fields=FIELDS, digest=True)
BATCH = FormSpec(file_field="files", fields=FIELDS, many=True, digest=True)
LIMITS = IntakeLimits(max_file_bytes=4 * MEBIBYTE, max_batch_bytes=8 * MEBIBYTE, max_batch_files=3)
CONTENT_TYPE = f"multipart/form-data; boundary={BOUNDARY.decode()}"


@pytest.fixture
async def area(tmp_path: Path) -> AsyncIterator[WorkArea]:
    async with open_work_area(tmp_path / "work") as area:
        yield area


def left(root: Path) -> list[Path]:
    """What is in the work directory, except the area itself."""
    return [path for path in root.rglob("*") if path.parent != root / "work" and path != root / "work"]


async def chunks(body: bytes, sizes: Sequence[int] = (65536,)) -> AsyncIterator[bytes]:
    for chunk in cut(body, sizes):
        yield chunk


async def receive_into(
    area: WorkArea,
    body: AsyncIterator[bytes],
    *,
    form: FormSpec = SINGLE,
    limits: IntakeLimits = LIMITS,
    content_length: int | None = None,
) -> list[tuple[str, bytes]]:
    """Receive a form and return the names and contents of its files, each checked against its record."""
    async with area.workspace() as workspace:
        received = await receive(
            body,
            content_type=CONTENT_TYPE,
            content_length=content_length,
            form=form,
            workspace=workspace,
            limits=limits,
        )
        return contents_of(received)


def contents_of(form: Form) -> list[tuple[str, bytes]]:
    contents = []
    for upload in form.files:
        content = b"" if upload.oversize else upload.path.read_bytes()
        assert upload.path.exists() is not upload.oversize
        assert upload.oversize or upload.size_bytes == len(content)
        assert upload.digest == (None if upload.oversize else hashlib.sha256(content).digest())
        assert upload.directory.stat().st_mode & 0o777 == 0o700
        contents.append((upload.untrusted_name, content))
    return contents


@pytest.mark.parametrize("declared", [True, False])
@pytest.mark.parametrize("size_bytes", [0, 1, 1000, INLINE_BYTES, MEBIBYTE, 3 * MEBIBYTE + 1])
async def test_a_file_is_received(area: WorkArea, tmp_path: Path, size_bytes: int, declared: bool) -> None:
    """A file of any size arrives byte for byte, with or without a declared length, and goes with its workspace."""
    content = os.urandom(size_bytes)
    body = build([Part("file", content, "a.geojson")])
    files = await receive_into(area, chunks(body), content_length=len(body) if declared else None)
    assert files == [("a.geojson", content)]
    assert left(tmp_path) == []


@pytest.mark.parametrize("form", [SINGLE, BATCH])
async def test_a_file_may_come_in_one_chunk(area: WorkArea, form: FormSpec) -> None:
    """A file that begins and ends in one chunk larger than the buffer is received once."""
    content = os.urandom(2 * MEBIBYTE)
    body = build([Part(form.file_field, content, "a.geojson")])
    assert await receive_into(area, chunks(body, [len(body)]), form=form) == [("a.geojson", content)]


async def test_short_writes_are_continued(area: WorkArea, monkeypatch: pytest.MonkeyPatch) -> None:
    """If the file system accepts only part of a write, the rest follows."""
    writev, write = os.writev, os.write
    monkeypatch.setattr(os, "writev", lambda descriptor, pieces: writev(descriptor, [pieces[0][:1000]]))
    monkeypatch.setattr(os, "write", lambda descriptor, data: write(descriptor, data[:70_001]))
    content = os.urandom(2 * MEBIBYTE)
    body = build([Part("file", content, "a.geojson")])
    assert await receive_into(area, chunks(body)) == [("a.geojson", content)]


@pytest.mark.parametrize("file_first", [True, False])
async def test_fields_may_come_before_and_after_the_file(area: WorkArea, file_first: bool) -> None:
    """Fields keep their order, wherever the file stands; unknown fields are ignored."""
    fields = [Part("outputFormats", b"Kml"), Part("unknown", b"?"), Part("outputFormats", b""), Part("x", b"")]
    file = Part("file", bytes(2 * MEBIBYTE), "a.geojson")
    parts = [file, *fields] if file_first else [*fields, file]
    async with area.workspace() as workspace:
        form = await receive(
            chunks(build(parts)),
            content_type=CONTENT_TYPE,
            content_length=None,
            form=SINGLE,
            workspace=workspace,
            limits=LIMITS,
        )
    assert form.fields == {"outputFormats": ("Kml", "")}


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=50, deadline=None)
@given(parts=forms, sizes=chunk_sizes)
def test_any_chunking_yields_the_same_files(tmp_path: Path, parts: list[Part], sizes: list[int]) -> None:
    """The files of a form are the same however its body is divided."""
    files = [Part("files", part.content, part.file_name) for part in parts if part.file_name is not None]
    body = build([*files, Part("outputFormat", b"Kml")])
    limits = IntakeLimits(max_batch_files=max(1, len(files)))

    async def run() -> list[tuple[str, bytes]]:
        async with open_work_area(tmp_path / "work") as area:
            return await receive_into(area, chunks(body, sizes), form=BATCH, limits=limits)

    if files:
        assert anyio.run(run) == [(part.file_name, part.content) for part in files]
    else:
        with pytest.raises(MalformedRequest):
            anyio.run(run)


async def test_a_batch_keeps_its_order_and_counts_what_is_oversize(area: WorkArea, tmp_path: Path) -> None:
    """A file above the ceiling is an entry of its batch, counted but not kept, and the others arrive."""
    parts = [
        Part("files", b"1" * MEBIBYTE, "same.csv"),
        Part("files", bytes(5 * MEBIBYTE), "big.csv"),
        Part("files", b"3", "same.csv"),
    ]
    async with area.workspace() as workspace:
        form = await receive(
            chunks(build(parts)),
            content_type=CONTENT_TYPE,
            content_length=None,
            form=BATCH,
            workspace=workspace,
            limits=LIMITS,
        )
        contents = contents_of(form)
        assert len({upload.directory for upload in form.files}) == 3
    assert contents == [("same.csv", b"1" * MEBIBYTE), ("big.csv", b""), ("same.csv", b"3")]
    assert [(upload.size_bytes, upload.oversize) for upload in form.files] == [
        (MEBIBYTE, False),
        (5 * MEBIBYTE, True),
        (1, False),
    ]
    assert left(tmp_path) == []


async def test_what_is_handed_over_stays(area: WorkArea) -> None:
    """A directory that was handed over outlives its workspace until it is removed; the others do not."""
    body = build([Part("files", b"1", "a.csv"), Part("files", b"2", "b.csv")])
    async with area.workspace() as workspace:
        form = await receive(
            chunks(body),
            content_type=CONTENT_TYPE,
            content_length=len(body),
            form=BATCH,
            workspace=workspace,
            limits=LIMITS,
        )
        kept = workspace.handover(form.files[0].directory)
    assert form.files[0].path.read_bytes() == b"1"
    assert not form.files[1].directory.exists()
    await area.remove(kept)
    assert not kept.exists()


def single(*parts: Part) -> bytes:
    return build([*parts, Part("outputFormat", b"Kml")])


FILE = Part("file", bytes(2 * MEBIBYTE), "a.geojson")

REFUSED: dict[str, tuple[type[RequestFault], FormSpec, Callable[[], bytes]]] = {
    "no file": (MalformedRequest, SINGLE, single),
    "the file under another name": (
        MalformedRequest,
        SINGLE,
        lambda: single(Part("upload", FILE.content, "a.geojson")),
    ),
    "no files": (MalformedRequest, BATCH, lambda: single(FILE)),
    "two files": (MalformedRequest, SINGLE, lambda: single(FILE, FILE)),
    "a file without a name": (MalformedRequest, SINGLE, lambda: single(Part("file", b"{}"))),
    "no closing boundary": (MalformedRequest, SINGLE, lambda: single(FILE).removesuffix(b"--\r\n")),
    "a body that ends inside the file": (MalformedRequest, SINGLE, lambda: single(FILE)[: MEBIBYTE + 7]),
    "a field of a megabyte": (MalformedRequest, SINGLE, lambda: single(Part("outputFormat", bytes(MEBIBYTE)), FILE)),
    "a field of a megabyte after the file": (
        MalformedRequest,
        SINGLE,
        lambda: single(FILE, Part("x", bytes(MEBIBYTE))),
    ),
    "bad UTF-8 after the file": (MalformedRequest, SINGLE, lambda: single(FILE, Part("x", b"\xff"))),
    "a hundred thousand parts": (MalformedRequest, SINGLE, lambda: single(FILE, *[Part("x", b"")] * 100_000)),
    "a large file": (UploadTooLarge, SINGLE, lambda: single(Part("file", bytes(LIMITS.max_file_bytes + 1), "a.csv"))),
    "too many files": (TooManyFiles, BATCH, lambda: single(*[Part("files", bytes(MEBIBYTE), "a.csv")] * 4)),
    "a large batch": (BatchTooLarge, BATCH, lambda: single(*[Part("files", bytes(3 * MEBIBYTE), "a.csv")] * 3)),
    "a large batch of an oversize file": (
        BatchTooLarge,
        BATCH,
        lambda: single(Part("files", bytes(9 * MEBIBYTE), "a.csv")),
    ),
    "an endless epilogue": (UploadTooLarge, SINGLE, lambda: single(FILE) + bytes(5 * MEBIBYTE)),
}
"""Bodies are built by the tests that send them: all workers of a run import this."""


@pytest.mark.parametrize("case", REFUSED)
async def test_a_refused_form_leaves_nothing(area: WorkArea, tmp_path: Path, case: str) -> None:
    """A form that breaks a rule is refused with that rule's fault, and nothing of it remains, open or on disk."""
    fault, form, body = REFUSED[case]
    descriptors = open_descriptors()
    with pytest.raises(fault) as refusal:
        await receive_into(area, chunks(body()), form=form)
    assert type(refusal.value) is fault
    assert str(tmp_path) not in refusal.value.message
    assert left(tmp_path) == []
    assert open_descriptors() - descriptors == set()


@pytest.mark.parametrize(
    ("form", "fault", "most_bytes"),
    [(SINGLE, UploadTooLarge, LIMITS.max_file_bytes + MEBIBYTE), (BATCH, BatchTooLarge, LIMITS.max_batch_bytes)],
)
async def test_a_declared_length_above_the_ceiling_is_refused_unread(
    area: WorkArea, form: FormSpec, fault: type[RequestFault], most_bytes: int
) -> None:
    """A body that declares too large a length is refused before any of it is read."""
    body = chunks(b"unread")
    with pytest.raises(fault):
        await receive_into(area, body, form=form, content_length=most_bytes + 1)
    assert await anext(body) == b"unread"


class ClientLeft(Exception):
    """What a server's stream of chunks raises when the client disconnects."""


@pytest.mark.parametrize("after_bytes", [0, 100, MEBIBYTE, 3 * MEBIBYTE])
async def test_a_client_that_leaves_leaves_nothing(area: WorkArea, tmp_path: Path, after_bytes: int) -> None:
    """The upload ends with the server's exception, and leaves nothing behind."""

    async def broken_off() -> AsyncIterator[bytes]:
        body = single(Part("file", bytes(4 * MEBIBYTE), "a.csv"))
        async for chunk in chunks(body[:after_bytes]):
            yield chunk
        raise ClientLeft

    descriptors = open_descriptors()
    with pytest.raises(ClientLeft):
        await receive_into(area, broken_off())
    assert left(tmp_path) == []
    assert open_descriptors() - descriptors == set()


async def test_a_cancelled_upload_leaves_nothing(area: WorkArea, tmp_path: Path) -> None:
    """An upload that is cancelled while waiting for its client leaves nothing behind."""
    waits = anyio.Event()

    async def stuck() -> AsyncIterator[bytes]:
        yield single(FILE)[:MEBIBYTE]
        waits.set()
        await anyio.sleep_forever()

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(receive_into, area, stuck())
        await waits.wait()
        assert left(tmp_path) != []
        tasks.cancel_scope.cancel()
    assert left(tmp_path) == []


async def silence(body: bytes) -> AsyncIterator[bytes]:
    yield body[: MEBIBYTE + 1]
    await anyio.sleep_forever()


async def drip(body: bytes) -> AsyncIterator[bytes]:
    for chunk in cut(body, [1]):
        yield chunk
        await anyio.sleep(0.001)


PATIENT = IntakeLimits(idle_seconds=60, total_seconds=60, min_bytes_per_second=1)

IMPATIENT = {
    "silence": (silence, replace(PATIENT, idle_seconds=0.1)),
    "a drip, by its rate": (drip, replace(PATIENT, idle_seconds=0.1, min_bytes_per_second=1_000_000)),
    "a drip, by its time": (drip, replace(PATIENT, total_seconds=0.1)),
}


@pytest.mark.parametrize("case", IMPATIENT)
async def test_a_slow_client_is_given_up(area: WorkArea, tmp_path: Path, case: str) -> None:
    """A client that is silent or too slow is refused because of the time limit, and nothing remains."""
    behaviour, limits = IMPATIENT[case]
    with pytest.raises(UploadTimeout):
        await receive_into(area, behaviour(single(FILE)), limits=limits)
    assert left(tmp_path) == []


def no_space(*arguments: object, **named: object) -> NoReturn:
    del arguments, named
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def no_space_for_new_files(path: Path, flags: int, mode: int = 0o777, *, dir_fd: int | None = None) -> int:
    return no_space() if flags & os.O_CREAT else OPEN(path, flags, mode, dir_fd=dir_fd)


OPEN = os.open
FULL_DISK = {"mkdir": no_space, "open": no_space_for_new_files, "writev": no_space}


@pytest.mark.parametrize("size_bytes", [2, 2 * MEBIBYTE])
@pytest.mark.parametrize("call", FULL_DISK)
async def test_a_full_disk_is_a_refusal_with_retry(
    area: WorkArea, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, call: str, size_bytes: int
) -> None:
    """Whichever call fails because the disk is full, the client is asked to retry, and nothing remains."""
    body = single(Part("file", bytes(size_bytes), "a.geojson"))
    descriptors = open_descriptors()
    monkeypatch.setattr(os, call, FULL_DISK[call])
    with pytest.raises(Overloaded) as refusal:
        await receive_into(area, chunks(body), content_length=len(body))
    assert refusal.value.retry_after_seconds > 0
    assert left(tmp_path) == []
    assert open_descriptors() - descriptors == set()


async def upload_to(root: Path) -> None:
    """Upload 3 MB under `root`, in a process with a disk of its own."""
    async with open_work_area(root / "work") as area:
        with pytest.raises(Overloaded):
            await receive_into(area, chunks(single(Part("file", os.urandom(3 * MEBIBYTE), "a.geojson"))))
        assert left(root) == []
        assert await receive_into(area, chunks(single(Part("file", b"{}", "a.geojson"))))


def test_a_small_disk_fills_and_is_freed(tmp_path: Path) -> None:
    """On a disk of 2 MB, an upload of 3 MB is refused and removed, and a smaller one fits."""
    module = "tests.integration.test_intake_receive"
    program = f"import anyio, pathlib, {module} as t; anyio.run(t.upload_to, pathlib.Path({str(tmp_path)!r}))"
    mount = 'mount -t tmpfs -o size=2m none "$1" && exec "$2" -c "$3"'
    own_disk = ["unshare", "--user", "--map-root-user", "--mount", "sh", "-c", mount, "sh", str(tmp_path)]
    if subprocess.run([*own_disk, "true", ""], check=False, capture_output=True).returncode != 0:
        pytest.skip("this host lets no test mount a disk of its own")
    done = subprocess.run([*own_disk, sys.executable, program], check=False, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_an_upload_beyond_the_host_s_limit_on_files_is_refused(tmp_path: Path) -> None:
    """Under `ulimit -f` of 2 MB, an upload of 3 MB is refused as on a full disk, and a smaller one fits."""
    limit = f"import resource; resource.setrlimit(resource.RLIMIT_FSIZE, ({2 * MEBIBYTE}, {2 * MEBIBYTE}))"
    program = f"import anyio, pathlib, {__name__} as t; anyio.run(t.upload_to, pathlib.Path({str(tmp_path)!r}))"
    done = subprocess.run([sys.executable, "-c", f"{limit}; {program}"], check=False, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


async def test_memory_does_not_grow_with_the_file(area: WorkArea) -> None:
    """An upload of 90 MB takes a few megabytes of memory, whatever the size of its chunks."""

    async def large() -> AsyncIterator[bytes]:
        head, _, tail = single(Part("file", b"CONTENT", "a.geojson")).partition(b"CONTENT")
        yield head
        for number in range(90 * 16):
            yield number.to_bytes(4, "big") * (64 * 1024 // 4)
        yield tail

    limits = IntakeLimits()
    gc.collect()
    tracemalloc.start()
    try:
        async with area.workspace() as workspace:
            form = await receive(
                large(),
                content_type=CONTENT_TYPE,
                content_length=None,
                form=SINGLE,
                workspace=workspace,
                limits=limits,
            )
            assert form.files[0].path.stat().st_size == 90 * MEBIBYTE
        assert tracemalloc.get_traced_memory()[1] < 4 * MEBIBYTE
    finally:
        tracemalloc.stop()


async def test_memory_does_not_grow_with_the_number_of_chunks(area: WorkArea) -> None:
    """A body in chunks of two bytes, as chunked encoding permits, takes no more memory than others."""
    body = single(Part("file", bytes(MEBIBYTE // 8), "a.geojson"))

    async def crumbs() -> AsyncIterator[bytes]:
        for start in range(0, len(body), 2):
            yield body[start : start + 2]

    gc.collect()
    tracemalloc.start()
    try:
        await receive_into(area, crumbs(), limits=replace(LIMITS, min_bytes_per_second=1))
        assert tracemalloc.get_traced_memory()[1] < 2 * MEBIBYTE
    finally:
        tracemalloc.stop()
