"""KML, GPX and GML in the encodings that programs write, whether drivers know them or not."""

import errno
import gzip
import os
import random
import zipfile
from contextlib import nullcontext
from functools import cache
from pathlib import Path
from typing import NoReturn

import pytest

from sandbox.command import Limits
from service.errors import Overloaded, Rejection
from service.formats.detect import Depth, detect
from service.formats.into_utf8 import CHUNK, MOST_BYTES
from service.intake.form import Upload
from service.usecases.detect_format import detect_format
from tests.integration.formats import readers
from tests.integration.formats.pipeline import Pipeline
from tests.support.converters import Converters
from tests.support.space import ample_space

PLACE = '<gml:Point srsName="EPSG:4326"><gml:pos>1 2</gml:pos></gml:Point>'
SPACES = 'xmlns:ogr="http://ogr.maptools.org/" xmlns:gml="http://www.opengis.net/gml"'
FEATURES = {
    "kml": "<Placemark><name>{}</name><Point><coordinates>1,2</coordinates></Point></Placemark>",
    "gpx": '<wpt lat="1" lon="2"><name>{}</name></wpt>',
    "gml": f"<gml:featureMember><ogr:a><ogr:g>{PLACE}</ogr:g><ogr:name>{{}}</ogr:name></ogr:a></gml:featureMember>",
}
ROOTS = {
    "kml": '<kml xmlns="http://www.opengis.net/kml/2.2"><Document>{}</Document></kml>',
    "gpx": '<gpx version="1.1" creator="c" xmlns="http://www.topografix.com/GPX/1/1">{}</gpx>',
    "gml": f"<ogr:FeatureCollection {SPACES}>{{}}</ogr:FeatureCollection>",
}
DECLARED = {
    "windows-1250": "Łódź",
    "Windows-1251": "Москва",
    "windows-1252": "Mü€",
    "ISO-8859-1": "Mü",
    "iso-8859-2": "Łódź",
    "latin1": "Mü",
    "ISO8859-1": "Mü",
    "ISO_8859-2": "Łódź",
    "ISO-8859-15": "Mü€",
    "koi8-r": "Москва",
    "Shift_JIS": "東京",
    "GB2312": "北京",
    "us-ascii": "abc",
}
ASSUMED = "Text that is not UTF-8, first in line {}, was read as Windows-1252, because the file declares no other"


def write(path: Path, encoding: str, declared: str, *names: str) -> Path:
    """A file of points with these names, each in a line of its own."""
    kind = path.suffix[1:]
    head = f'<?xml version="1.0" encoding="{declared}"?>\n' if declared else ""
    text = ROOTS[kind].format("\n".join(FEATURES[kind].format(name) for name in names))
    path.write_bytes((head + text).encode(encoding))
    return path


def names_in(path: Path) -> list[object]:
    """The names of the features of a GeoJSON file."""
    rows = [row["properties"] for row in readers.geojson(path)]
    return [row.get("name", row.get("Name")) for row in rows if isinstance(row, dict)]


@pytest.mark.parametrize("kind", FEATURES)
@pytest.mark.parametrize("declared", DECLARED)
async def test_text_in_a_declared_encoding_is_read(either: Pipeline, tmp_path: Path, kind: str, declared: str) -> None:
    """Also if the parser of the driver does not know the encoding."""
    path = write(tmp_path / f"a.{kind}", declared, declared, DECLARED[declared])
    done = await either.to("GeoJson", path)
    assert names_in(done.path) == [DECLARED[declared]]
    assert done.output.warnings == ()


@pytest.mark.parametrize("kind", FEATURES)
@pytest.mark.parametrize("declared", ["UTF-8", "ISO-8859-1"])
async def test_white_space_before_a_declaration_is_passed_over(
    pipeline: Pipeline, tmp_path: Path, kind: str, declared: str
) -> None:
    """Who edits a file by hand, or copies it out of a page, may leave some; parsers refuse it."""
    path = write(tmp_path / f"a.{kind}", declared, declared, "Mü")
    path.write_bytes(b"\r\n " + path.read_bytes())
    done = await pipeline.to("GeoJson", path)
    assert (names_in(done.path), done.output.warnings) == (["Mü"], ())


@pytest.mark.parametrize("kind", FEATURES)
@pytest.mark.parametrize("declared", ["", "UTF-8", "UTF-16"])
async def test_text_that_is_not_as_declared_is_read_and_told(
    either: Pipeline, tmp_path: Path, kind: str, declared: str
) -> None:
    """What is UTF-8 stays so, a declaration that cannot be true included."""
    path = write(tmp_path / f"a.{kind}", "cp1252", declared, "a", "Mü €", "ä")
    path.write_bytes(path.read_bytes().replace("ä".encode("cp1252"), "Łódź".encode()))
    done = await either.to("GeoJson", path)
    assert names_in(done.path) == ["a", "Mü €", "Łódź"]
    (told,) = done.output.warnings
    assert told.startswith(ASSUMED.format(3 if declared else 2))
    right = write(tmp_path / f"b.{kind}", "utf-8", declared, "Łódź")
    done = await either.to("GeoJson", right)
    assert (names_in(done.path), done.output.warnings) == (["Łódź"], ())


@pytest.mark.parametrize("kind", FEATURES)
@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-be", "utf-16-le"])
async def test_text_in_utf_16_is_read(pipeline: Pipeline, tmp_path: Path, kind: str, encoding: str) -> None:
    """With a byte order mark or without."""
    path = write(tmp_path / f"a.{kind}", "utf-8", "UTF-16", "Łódź")
    path.write_bytes(path.read_text(encoding="utf-8").encode(encoding))
    done = await pipeline.to("GeoJson", path)
    assert (names_in(done.path), done.output.warnings) == (["Łódź"], ())


async def test_every_document_of_an_archive_has_its_own_encoding(either: Pipeline, tmp_path: Path) -> None:
    """One of a KMZ may be read as it is, and another not."""
    texts = {"a": ("windows-1251", "Москва"), "b": ("utf-8", "Łódź")}
    with zipfile.ZipFile(tmp_path / "a.kmz", "w") as packed:
        for name, (encoding, text) in texts.items():
            packed.write(write(tmp_path / f"{name}.kml", encoding, encoding, text), f"{name}.kml")
    done = await either.to("Csv", tmp_path / "a.kmz", layer="a")
    assert "Москва" in done.path.read_text()


def test_one_warning_tells_of_all_documents_of_an_archive(converters: Converters, tmp_path: Path) -> None:
    """There may be thousands of them."""
    texts = {"a": "utf-8", "b": "cp1252", "c": "cp1252"}
    with zipfile.ZipFile(tmp_path / "a.kmz", "w") as packed:
        for name, encoding in texts.items():
            packed.write(write(tmp_path / f"{name}.kml", encoding, "", "ü"), f"{name}.kml")
    _, source = Pipeline(converters).receive(tmp_path / "a.kmz")
    (told,) = source.warnings
    assert told.startswith(f"Documents (2, first 'b'): {ASSUMED.format(1)}")


async def test_a_full_disk_is_not_said_to_be_the_fault_of_a_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Text that is brought into UTF-8 needs space; the client is asked to try again."""
    path = write(tmp_path / "a.kml", "windows-1250", "windows-1250", "Łódź")

    def no_space(*arguments: object, **named: object) -> NoReturn:
        del arguments, named
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "mkdir", no_space)
    upload = Upload(untrusted_name="a.kml", path=path, size_bytes=path.stat().st_size)
    with pytest.raises(Overloaded, match="no space"):
        await detect_format(upload, Limits(), ample_space())


@pytest.mark.parametrize("kind", FEATURES)
def test_an_encoding_that_is_not_known_is_named(converters: Converters, tmp_path: Path, kind: str) -> None:
    """The file was said to be damaged."""
    path = write(tmp_path / f"a.{kind}", "utf-8", "klingon", "a")
    with pytest.raises(Rejection, match=r"declares the encoding 'klingon', which cannot be read\. Save it as UTF-8"):
        Pipeline(converters).receive(path)


async def test_documents_of_an_archive_whose_encodings_are_not_known_are_left_out(
    pipeline: Pipeline, tmp_path: Path
) -> None:
    """With a warning; the others are read, if there are any."""
    path = tmp_path / "a.kmz"
    documents = {name: write(tmp_path / f"{name}.kml", "utf-8", name, "a") for name in ("klingon", "utf-8", "elvish")}
    with zipfile.ZipFile(path, "w") as archive:
        for document in documents.values():
            archive.write(document, document.name)
    done = await pipeline.to("Csv", path)
    assert len(readers.table(done.path)) == 1
    assert (
        "Documents (2, first 'klingon') were left out: they declare encodings that cannot be read, such as 'klingon'. "
        "Save them as UTF-8 and send the file again."
    ) in done.output.warnings
    with zipfile.ZipFile(path, "w") as archive:
        archive.write(documents["klingon"], "a.kml")
        archive.write(documents["elvish"], "b.kml")
    with pytest.raises(Rejection, match="declares the encoding 'klingon'"):
        pipeline.receive(path)


@cache
def much_text() -> bytes:
    """More than an archive may hold in another encoding, packed, with the end of a document."""
    packed_little = random.Random(0).randbytes(1 << 20).hex().encode()  # 200 times less than the rest
    return gzip.compress(packed_little + bytes([32]) * (MOST_BYTES - len(packed_little)) + b"</kml>", 1)


@pytest.mark.parametrize(("declared", "is_refused"), [("windows-1250", True), ("UTF-16", True), ("UTF-8", False)])
def test_a_small_archive_of_much_text_in_another_encoding_is_refused(
    tmp_path: Path, declared: str, *, is_refused: bool
) -> None:
    """It would keep the service busy for minutes."""
    path = tmp_path / "a.kml.gz"
    start = f'<?xml version="1.0" encoding="{declared}"?><kml><Placemark>'.encode()
    path.write_bytes(gzip.compress(start) + much_text())
    refusal = pytest.raises(
        Rejection, match="129 MiB of text that is not UTF-8, or not declared as UTF-8; at most 128 MiB"
    )
    with refusal if is_refused else nullcontext():
        detect(path, path.name, tmp_path / "unpacked", depth=Depth.FORMAT)


def test_bytes_that_an_encoding_does_not_have_are_told(converters: Converters, tmp_path: Path) -> None:
    """They become U+FFFD."""
    path = write(tmp_path / "a.gpx", "cp1252", "windows-1253", "\u00d2")
    _, source = Pipeline(converters).receive(path)
    told = "1 characters that windows-1253, the declared encoding, does not have became U+FFFD."
    assert source.warnings == (told,)


@pytest.mark.parametrize("filler", ["ü<", "<a>", "ü"])
def test_a_file_with_much_other_text_is_read_once(converters: Converters, tmp_path: Path, filler: str) -> None:
    """However often UTF-8 ends in it, and wherever the pieces begin in which it is read."""
    path = tmp_path / "a.kml"
    text = f"<kml>{filler * (2 * CHUNK // len(filler))}Łü</kml>"
    path.write_bytes(text.replace("Ł", "?").encode("cp1252").replace(b"?", "Ł".encode()))
    _, source = Pipeline(converters).receive(path)
    assert source.path.read_bytes().decode().startswith(f"<kml>{filler * 9}")
    assert any(told.startswith(ASSUMED.format(1)) for told in source.warnings)
