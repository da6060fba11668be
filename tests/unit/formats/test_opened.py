"""Whatever is read of uploads in threads of the service can be ended."""

import gzip
import io
import re
import zipfile
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path

import pytest

import service.engine.reading
import service.formats
from service.engine import shape_records
from service.engine.reading import gml
from service.errors import Rejection
from service.formats import mid_values, opened
from service.formats.dbf_columns import DbfColumn, dbf_columns, filled_foreign, that_hold_values
from service.formats.dbf_encoding import guess_encoding
from service.formats.dbf_texts import cut_texts
from service.formats.dbf_values import odd_values
from service.formats.detect import detect, is_read_through
from service.formats.kml_tracks import lack_times
from service.formats.left_out import CHUNK
from service.formats.shx import is_whole
from service.permit import OutOfTime, Permit

TEXTS: Mapping[str, bytes] = {
    "a.kml": b"<kml><Placemark>",
    "a.gml": b"<FeatureCollection><featureMember>",
    "a.gpx": b"<gpx><wpt>",
    "a.dxf": b"  0\nSECTION\n  2\nHEADER\n",
}
PIECES = 3
ENOUGH_CPU_SECONDS = 60.0
"""Many times what a slow host takes for a record of a thousand columns and a MiB of them."""


class Counting(Permit):
    """A permit that allows everything, and counts how often it is asked."""

    asked = 0

    def require(self) -> None:
        self.asked += 1
        super().require()


def large(text: bytes) -> bytes:
    return text.ljust(PIECES * CHUNK)


def packed(name: str, text: bytes) -> bytes:
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr(name, large(text))
    return content.getvalue()


PACKED: Mapping[str, Callable[[], bytes]] = {
    "a.kmz": lambda: packed("doc.kml", TEXTS["a.kml"]),
    "a.zip": lambda: packed("a.csv", b"a,b\n"),
    "a.csv.gz": lambda: gzip.compress(large(b"a,b\n")),
}


def upload(directory: Path, name: str) -> Path:
    """A large upload of a kind that is read through."""
    path = directory / name
    path.write_bytes(large(TEXTS[name]) if name in TEXTS else PACKED[name]())
    return path


def read(name: str, path: Path, unpacked: str) -> Callable[[], object]:
    return lambda: detect(path, name, path.parent / unpacked)


@pytest.mark.parametrize("name", [*TEXTS, *PACKED])
def test_detection_asks_for_each_piece_whether_it_may_go_on(tmp_path: Path, name: str) -> None:
    path, permit = upload(tmp_path, name), Counting()
    assert is_read_through(name)
    permit.use(read(name, path, "unpacked"))
    assert permit.asked > PIECES
    with pytest.raises(OutOfTime):
        Permit(0).use(read(name, path, "again"))


def test_the_beginning_of_each_file_in_an_archive_asks_whether_it_may_go_on(tmp_path: Path) -> None:
    """However few bytes they take: some hundred may unpack to megabytes."""
    asked = []
    for count in (1, 40):
        path, permit = tmp_path / f"{count}.zip", Counting()
        with zipfile.ZipFile(path, "w", zipfile.ZIP_BZIP2) as archive:
            for number in range(count):
                archive.writestr(f"{number}.gpkg", "")
                archive.writestr(f"{number}.gpkg-journal", b"a" * 99)
        with suppress(Rejection):
            permit.use(read("a.zip", path, f"{count}"))
        asked.append(permit.asked)
    assert asked[1] > 40 > asked[0]


def dbf(path: Path, kind: bytes, width: int, columns: int, record: bytes) -> Path:
    """A table of as many columns as it declares, whatever is in a record."""
    fields = b"".join(
        (b"c%d" % n).ljust(11, b"\0") + kind + bytes((0,) * 4 + (width,)).ljust(20, b"\0") for n in range(columns)
    )
    header = bytes(8) + (32 + len(fields) + 1).to_bytes(2, "little") + len(record).to_bytes(2, "little")
    path.write_bytes(header.ljust(32, b"\0") + fields + b"\r" + record * (PIECES * CHUNK // len(record)))
    return path


def all_of(path: Path) -> Callable[[], object]:
    columns = dbf_columns(path)
    return lambda: (filled_foreign(path, columns), odd_values(path, columns, "a"), cut_texts(path, columns, "a"))


def test_readers_ask_for_each_piece_whether_they_may_go_on(tmp_path: Path) -> None:
    kml, features = upload(tmp_path, "a.kml"), upload(tmp_path, "a.gml")
    table = dbf(tmp_path / "a.dbf", b"C", 3, 1, b" abc")
    whole = dbf_columns(table)
    mif, mid = tmp_path / "a.mif", tmp_path / "a.mid"
    mif.write_bytes(
        b"Version 300\nColumns 1\n  a Integer\nData\n" + large(b"").replace(b" " * 99, b"POINT".ljust(98) + b"\n")
    )
    mid.write_bytes(large(b"").replace(b" " * 99, b"12345".ljust(98) + b"\n"))
    shx = tmp_path / "a.shx"
    entries = b"\0\0\0\x32\0\0\0\x02" * (PIECES * CHUNK // 8)
    head = bytes.fromhex("0000270a").ljust(24, b"\0") + ((100 + len(entries)) // 2).to_bytes(4, "big")
    shx.write_bytes(head.ljust(100, b"\0") + entries)
    shp = tmp_path / "a.shp"
    shp.write_bytes(bytes(104) + b"\0\0\0\x02" + bytes(100))
    reading: list[Callable[[], object]] = [
        lambda: mid_values.mid_warnings(mif, mid, "a"),
        lambda: cut_texts(table, whole, "a"),
        lambda: guess_encoding(table),
        lambda: odd_values(dbf(tmp_path / "n.dbf", b"N", 3, 1, b" 123"), [DbfColumn("n", "N", 1, 3, 0)], "a"),
        lambda: filled_foreign(dbf(tmp_path / "x.dbf", b"X", 3, 1, b"    "), [DbfColumn("x", "X", 1, 3, 0)]),
        lambda: is_whole(shx, shp),
        lambda: lack_times(kml),
        lambda: gml._names(features),
    ]
    for read_all in reading:
        permit = Counting()
        permit.use(read_all)
        assert permit.asked >= PIECES
        with pytest.raises(OutOfTime):
            Permit(0).use(read_all)


def test_uploads_are_opened_in_one_way() -> None:
    """So that no reader is forgotten: but for the beginning of JSON, and the files of the documentation."""
    packages = [Path(str(package.__file__)).parent for package in (service.formats, service.engine.reading)]
    modules = [module for package in packages for module in package.rglob("*.py")]
    modules.append(Path(str(shape_records.__file__)))
    direct = re.compile(
        r"\bFileIO\(|(?<!session)\.open\((?!\"x|member\.info)|(?<!place)\.read_(?:bytes|text)\(|(?<![\w.])open\("
    )
    found = {module.name for module in modules if direct.search(module.read_text(encoding="utf-8"))}
    assert found - {Path(str(opened.__file__)).name} == {"json_kinds.py", "documentation.py"}


@pytest.mark.parametrize("kind", [b"C", b"N", b"X"])
def test_columns_without_bytes_take_no_time(tmp_path: Path, kind: bytes) -> None:
    """A table of a MiB with 2,000 of them, which packed has some kilobytes, kept a processor busy for minutes."""
    path = dbf(tmp_path / "a.dbf", kind, 0, 2000, b"  ")
    assert len(dbf_columns(path)) == 2000
    assert that_hold_values(dbf_columns(path), 2) == []
    Permit(ENOUGH_CPU_SECONDS).use(all_of(path))
