"""Large files of many accounts are detected in turn."""

import asyncio
import gzip
import shutil
import zipfile
from contextlib import nullcontext
from pathlib import Path
from typing import Any
from uuid import UUID

import msgspec
import pytest

from sandbox.command import Limits
from service.blocking import INLINE_BYTES
from service.engine.diagnostics import Subject
from service.engine.workspace import Workplace
from service.errors import Overloaded, Rejection
from service.formats.detect import Depth
from service.ids import AccountId
from service.intake.disk_space import DiskSpace
from service.intake.form import Upload
from service.intake.trees import tree_bytes
from service.intake.workspace import open_work_area
from service.permit import go_on
from service.usecases.detect_format import AT_ONCE, READ_INLINE_BYTES, UNPACKED, detect_format, detect_received
from tests.support.large_files import crafted_gpx
from tests.support.patience import until
from tests.support.space import ample_space

ROW = b"1,2,something\n"


def packed(directory: Path, number: int, rows: int) -> Upload:
    """A packed table in a directory of its own."""
    path = directory / str(number) / "upload"
    path.parent.mkdir()
    path.write_bytes(gzip.compress(b"x,y,name\n" + rows * ROW, 1))
    return Upload(untrusted_name="a.csv.gz", path=path, size_bytes=path.stat().st_size)


async def test_an_account_with_many_large_files_keeps_no_other_waiting(tmp_path: Path) -> None:
    """Crafted files of a few megabytes take minutes each: four of them kept every other archive waiting."""
    crowd, other = AccountId(UUID(int=1)), AccountId(UUID(int=2))
    large = [packed(tmp_path, number, 1 << 20) for number in range(4 * AT_ONCE)]
    space = ample_space()
    async with asyncio.TaskGroup() as tasks:
        looked_at = [tasks.create_task(detect_format(upload, Limits(), space, crowd)) for upload in large]
        await asyncio.sleep(0)  # all of them wait, or have begun
        await detect_format(packed(tmp_path, len(large), 1), Limits(), space, other)
        assert sum(task.done() for task in looked_at) < len(large) - AT_ONCE


@pytest.mark.parametrize("name", ["a.kml", "a.zip", "a.kmz"])
@pytest.mark.parametrize(("size", "is_inline"), [(READ_INLINE_BYTES, True), (READ_INLINE_BYTES + 1, False)])
async def test_the_event_loop_reads_through_no_more_than_a_few_kilobytes(
    tmp_path: Path, name: str, size: int, *, is_inline: bool
) -> None:
    """Expressions over 250 kB of crafted KML take a tenth of a second, in which nobody else was served."""
    path = tmp_path / "upload"
    content = b"<kml><Placemark>".ljust(size, b"<")
    path.write_bytes(content)
    if name != "a.kml":
        with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
            archive.writestr("doc.kml", content)
    upload = Upload(untrusted_name=name, path=path, size_bytes=path.stat().st_size)
    looked_at = asyncio.create_task(detect_format(upload, Limits(), ample_space()))
    await asyncio.sleep(0)  # it has begun; the outcome of a thread would come in a later turn of the loop
    assert looked_at.done() is is_inline
    await looked_at


async def test_detection_and_reading_share_one_budget(tmp_path: Path) -> None:
    """Each had its own, so that a crafted file took twice the computing time."""
    path = tmp_path / "upload"
    path.write_bytes(b"<kml><Placemark>".ljust(INLINE_BYTES + 1, b"<"))
    upload = Upload(untrusted_name="a.kml", path=path, size_bytes=INLINE_BYTES + 1)
    source = await detect_format(upload, Limits(), ample_space())
    assert source.looked_seconds > 0
    unused: Any = None
    for taken, ends in ((1.0, True), (0.0, False)):
        limits, source = Limits(cpu_seconds=1), msgspec.structs.replace(source, looked_seconds=taken)
        place = Workplace(unused, unused, limits, tmp_path, source=source, subject=Subject(input="KML"))
        with pytest.raises(Rejection, match="computing time") if ends else nullcontext():
            await place.look(go_on)


def crafted(directory: Path, number: int) -> Upload:
    """A file of a few megabytes that would be unpacked and looked at for minutes."""
    path = directory / str(number) / "upload"
    path.parent.mkdir()
    path.write_bytes(crafted_gpx())
    return Upload(untrusted_name="a.gpx.gz", path=path, size_bytes=path.stat().st_size)


async def test_a_file_that_takes_too_long_is_refused(tmp_path: Path) -> None:
    """A crafted one of a few megabytes took seven minutes of a processor, which nothing bounded."""
    with pytest.raises(Rejection, match="needs more computing time than allowed; split the file"):
        await detect_format(crafted(tmp_path, 0), Limits(cpu_seconds=1), ample_space())


async def test_nobody_waits_for_what_a_cancelled_caller_wanted_to_know(tmp_path: Path) -> None:
    """Requests of clients that had left, and a service that was told to stop, waited for as long as it took."""
    crowd = [crafted(tmp_path, number) for number in range(AT_ONCE)]
    async with asyncio.TaskGroup() as tasks:
        looked_at = [
            tasks.create_task(detect_format(upload, Limits(cpu_seconds=10**6), ample_space())) for upload in crowd
        ]
        await until(lambda: all((upload.directory / UNPACKED).exists() for upload in crowd))
        for task in looked_at:
            task.cancel()
    assert all(task.cancelled() for task in looked_at)


def mended_kml(directory: Path) -> Upload:
    """A packed document of two features, which are put in a Document: a copy of it is read in its place."""
    path = directory / "1" / "upload"
    path.parent.mkdir()
    feature = b"<Placemark><name>%s</name><Point><coordinates>1,2</coordinates></Point></Placemark>"
    features = b"".join(feature % (b"%d" % number) for number in range(10_000))
    path.write_bytes(gzip.compress(b'<kml xmlns="http://www.opengis.net/kml/2.2">' + features + b"</kml>"))
    return Upload(untrusted_name="a.kml.gz", path=path, size_bytes=path.stat().st_size)


async def test_what_is_left_of_an_archive_has_its_part_of_the_disk(tmp_path: Path) -> None:
    """Documents in whose place copies are read are deleted."""
    space, upload = ample_space(), mended_kml(tmp_path)
    source = await detect_format(upload, Limits(), space)
    assert any("in a Document" in warning for warning in source.warnings)
    left = [path for path in (upload.directory / UNPACKED).rglob("*") if path.is_file()]
    assert source.path in left
    assert all(path == source.path or path.name.startswith("shorter") for path in left)
    [share] = space.shares.values()
    assert share.size_bytes == sum(path.stat().st_size for path in left)


def plain_kml(directory: Path, *, is_mended: bool) -> Upload:
    """The same document as it is, or one of which no copy is made."""
    packed_file = mended_kml(directory)
    content = gzip.decompress(packed_file.path.read_bytes())
    if not is_mended:
        content = content.replace(b'2.2">', b'2.2"><Document>').replace(b"</kml>", b"</Document></kml>")
    packed_file.path.write_bytes(content)
    return Upload(untrusted_name="a.kml", path=packed_file.path, size_bytes=len(content))


async def test_the_copy_of_a_plain_document_has_its_part_of_the_disk(tmp_path: Path) -> None:
    """Hundreds of jobs that wait for a converter have one."""
    space, upload = ample_space(), plain_kml(tmp_path, is_mended=True)
    source = await detect_format(upload, Limits(), space)
    assert source.path != upload.path
    left = [path for path in (upload.directory / UNPACKED).rglob("*") if path.is_file()]
    [share] = space.shares.values()
    assert share.size_bytes == sum(path.stat().st_size for path in left) >= upload.size_bytes


@pytest.mark.parametrize("is_mended", [True, False])
async def test_a_copy_for_which_there_is_no_space_is_not_made(tmp_path: Path, *, is_mended: bool) -> None:
    """The service is at fault, not the file. One of which no copy is made needs no space."""
    upload = plain_kml(tmp_path, is_mended=is_mended)
    space = DiskSpace(lambda: 4 * upload.size_bytes)
    with pytest.raises(Overloaded, match="no space") if is_mended else nullcontext():
        await detect_format(upload, Limits(), space)
    left = tree_bytes(upload.directory) - upload.size_bytes
    assert [share.size_bytes for share in space.shares.values()] == [left]
    assert left < upload.size_bytes


async def test_text_that_becomes_much_longer_has_its_part_of_the_disk(tmp_path: Path) -> None:
    """A byte of Thai becomes three in UTF-8, and with prefixes, they are copied twice, which an empty disk refused."""
    thai = "ประเทศไทย".encode("cp874") * (INLINE_BYTES // 8)
    head = b'<?xml version="1.0" encoding="windows-874"?>\n<k:kml xmlns:k="http://www.opengis.net/kml/2.2">'
    point = b"<k:Placemark><k:name>%s</k:name><k:Point><k:coordinates>1,2</k:coordinates></k:Point></k:Placemark>"
    path = tmp_path / "1" / "upload"
    path.parent.mkdir()
    path.write_bytes(head + point % thai + b"</k:kml>")
    upload = Upload(untrusted_name="a.kml", path=path, size_bytes=path.stat().st_size)
    space = ample_space()
    source = await detect_format(upload, Limits(), space)
    [share] = space.shares.values()
    assert share.size_bytes == tree_bytes(upload.directory / UNPACKED) >= source.path.stat().st_size > 2 * len(thai)
    shutil.rmtree(upload.directory / UNPACKED)
    with pytest.raises(Overloaded, match="no space"):
        await detect_format(upload, Limits(), DiskSpace(lambda: 20 * upload.size_bytes))
    assert list(upload.directory.iterdir()) == [path]


async def test_a_gateway_keeps_nothing_of_what_it_has_unpacked(tmp_path: Path) -> None:
    """Workers detect the format again."""
    async with open_work_area(tmp_path / "area") as area, area.workspace() as workspace:
        packed_file = mended_kml(tmp_path)
        upload = msgspec.structs.replace(packed_file, path=workspace.new_directory() / "upload")
        packed_file.path.rename(upload.path)
        account = AccountId(UUID(int=1))
        await detect_received(upload, Limits(), account, workspace, Depth.FORMAT)
        assert list(upload.directory.iterdir()) == [upload.path]
        assert [share.size_bytes for share in area.space.shares.values()] == [0]
    assert area.space.shares == {}


@pytest.mark.parametrize("name", ["a.csv.gz", "a.zip"])
async def test_more_than_there_is_space_for_is_not_unpacked(tmp_path: Path, name: str) -> None:
    """The service is at fault, not the file, and nothing is left of it."""
    path = tmp_path / "1" / "upload"
    path.parent.mkdir()
    content = b"x,y,name\n" + 20_000 * ROW
    if name == "a.zip":
        with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
            archive.writestr("a.csv", content)
    else:
        path.write_bytes(gzip.compress(content))
    upload = Upload(untrusted_name=name, path=path, size_bytes=path.stat().st_size)
    space = DiskSpace(lambda: 4 * len(content) - 8)
    with pytest.raises(Overloaded, match="no space"):
        await detect_format(upload, Limits(), space)
    assert list(path.parent.iterdir()) == [path]
    assert [share.size_bytes for share in space.shares.values()] == [0]
    await detect_format(upload, Limits(), DiskSpace(lambda: 4 * len(content) + 8))
