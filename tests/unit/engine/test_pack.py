"""ZIP archives of outputs, and the files in them."""

import os
import zipfile
from pathlib import Path

import pytest

from service.engine.files import open_written, read_written, size_of_written, write_for_runs, written_files
from service.engine.pack import CHUNK, Entry, write_zip
from service.errors import Rejection
from tests.support.small_disk import small_disk


def test_every_unzipper_reads_it(tmp_path: Path) -> None:
    """Names in UTF-8, contents, checksums and sizes are right, and the members are ordinary files."""
    contents = {
        "Straßen.shp": os.urandom(3_000_000),
        "Straßen.dbf": b"a" * 2_000_000,
        "empty.prj": b"",
        "small.cpg": b"UTF-8",
    }
    for name, content in contents.items():
        (tmp_path / name).write_bytes(content)
    target = tmp_path / "out.zip"
    size = write_zip(target, [Entry(tmp_path / name, f"dir/{name}") for name in contents])
    assert target.stat().st_size == size
    with zipfile.ZipFile(target) as archive:
        assert archive.testzip() is None
        assert {name: archive.read(f"dir/{name}") for name in contents} == contents
        assert {info.external_attr >> 16 for info in archive.infolist()} == {0o100644}


def test_a_lack_of_space_is_told(tmp_path: Path) -> None:
    """As it is when a converter has none; it is no defect of the service."""
    (tmp_path / "a.shp").write_bytes(os.urandom(1 << 20))
    with small_disk(tmp_path / "full", 512) as full:
        with pytest.raises(Rejection, match="no disk space left"):
            write_zip(full / "out.zip", [Entry(tmp_path / "a.shp", "a.shp")])
        with pytest.raises(Rejection, match="no disk space left"):
            write_for_runs(full / "text", "a" * (1 << 20))


@pytest.mark.parametrize("size", [0, 20, CHUNK, CHUNK + 1, 2 * CHUNK])
def test_an_ending_follows_the_content(tmp_path: Path, size: int) -> None:
    """Whether a file is packed at once or in pieces, its sizes and its checksum include what is added."""
    (tmp_path / "a.dbf").write_bytes(b"a" * size)
    target = tmp_path / "out.zip"
    write_zip(target, [Entry(tmp_path / "a.dbf", "a.dbf", b"\x1a"), Entry(tmp_path / "a.dbf", "b.dbf")])
    with zipfile.ZipFile(target) as archive:
        assert archive.testzip() is None
        assert archive.read("a.dbf") == b"a" * size + b"\x1a"
        assert archive.read("b.dbf") == b"a" * size


def test_the_same_files_make_the_same_bytes(tmp_path: Path) -> None:
    """Neither the clock nor the directory order matters."""
    (tmp_path / "a").write_bytes(b"hello" * 1000)
    first, second = tmp_path / "1.zip", tmp_path / "2.zip"
    for target in (first, second):
        write_zip(target, [Entry(tmp_path / "a", "a")])
        os.utime(tmp_path / "a", (1, 1))
    assert first.read_bytes() == second.read_bytes()


def test_links_that_a_converter_made_are_not_followed(tmp_path: Path) -> None:
    """A converter's output is untrusted."""
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "a.shp").symlink_to("/etc/passwd")
    with pytest.raises(Rejection):
        write_zip(tmp_path / "out.zip", [Entry(tmp_path / "out" / "a.shp", "a.shp")])
    assert written_files(tmp_path / "out") == []


@pytest.mark.parametrize("name", ["..\\..\\a.shp", "a\n.shp", "a\udcff.shp"])
def test_names_that_a_converter_chose_are_refused(tmp_path: Path, name: str) -> None:
    """The first leads out of the folder where Windows unpacks it; the last is no text."""
    (tmp_path / name).write_bytes(b"a")
    with pytest.raises(Rejection, match="no usable result"):
        write_zip(tmp_path / "out.zip", [Entry(tmp_path / name, name)])


def test_a_folder_in_place_of_the_archive_is_refused(tmp_path: Path) -> None:
    (tmp_path / "a.shp").write_bytes(b"a")
    (tmp_path / "out.zip").mkdir()
    with pytest.raises(Rejection, match="no usable result"):
        write_zip(tmp_path / "out.zip", [Entry(tmp_path / "a.shp", "a.shp")])


def test_pipes_do_not_hang_the_service(tmp_path: Path) -> None:
    """Only ordinary files are read."""
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(Rejection):
        open_written(tmp_path / "pipe")


def test_a_linked_folder_of_outputs_is_refused(tmp_path: Path) -> None:
    """The directory is checked before its files."""
    (tmp_path / "out").symlink_to("/etc")
    with pytest.raises(Rejection):
        written_files(tmp_path / "out")


def test_what_a_program_says_is_bounded(tmp_path: Path) -> None:
    """A file beyond the cap is refused without reading it."""
    (tmp_path / "facts.json").write_bytes(b"x" * 1001)
    assert len(read_written(tmp_path / "facts.json", 1001)) == 1001
    with pytest.raises(Rejection):
        read_written(tmp_path / "facts.json", 1000)


@pytest.mark.parametrize(("content", "whole"), [(b"<kml></kml>\n ", True), (b"<kml><Placemark>", False)])
def test_a_cut_off_file_is_noticed(tmp_path: Path, content: bytes, whole: bool) -> None:
    """Drivers exit with code 0 on a full disk; the last bytes reveal it."""
    (tmp_path / "a.kml").write_bytes(content)
    if whole:
        assert size_of_written(tmp_path / "a.kml", b"</kml>") == len(content)
    else:
        with pytest.raises(Rejection, match="cut off"):
            size_of_written(tmp_path / "a.kml", b"</kml>")
