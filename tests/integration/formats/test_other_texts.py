"""Texts in another encoding than their file declares: they are read as Windows-1252, and told."""

import json
import zipfile
from pathlib import Path

import pytest

from tests.integration.formats import readers
from tests.integration.formats.editing import edited
from tests.integration.formats.pipeline import Pipeline, write_geojson
from tests.integration.formats.samples import point

DECLARED = {
    **dict.fromkeys(
        ("OEM 866", "866", "IBM866", "oem-866", "CP-866", "DOS 866\r\n", "x-cp866", "CodePage 866"), "cp866"
    ),
    **dict.fromkeys(("ANSI 1251", "ansi_1251", "Windows 1251", "win1251", "Microsoft-CP1251", "1251"), "cp1251"),
    **dict.fromkeys(("KOI8-R", "koi8_r"), "koi8-r"),
    **dict.fromkeys(("ISO 8859-5", "ISO8859_5", "88595"), "iso8859-5"),
    **dict.fromkeys(("UTF-8", "65001", ""), "utf-8"),
    "Windows 1252": "cp1252",
    "CP1255": "cp1255",
    "1258": "cp1258",
}
"""What files declare, and what that is."""
WORDS = {"cp1252": "Müller €", "cp1255": "שלום", "cp1256": "سلام", "cp1258": "Huê"}
"""Words in encodings that have no Russian one; the last letters of two of them might combine with others."""
LANGUAGE_BYTE = 29
TOLD = (
    "The encoding that the file declares is unknown, or not that of 1 text of 'a', first in feature 2: Windows-1252 "
    "was assumed, except for UTF-8 that is cut within its last character, which became U+FFFD."
)


def mapinfo(path: Path, charset: str, texts: list[bytes]) -> Path:
    """A .mif and .mid of points with these names."""
    points = "Point 7 50\n" * len(texts)
    head = f'Version 300\nCharset "{charset}"\nDelimiter ","\nCoordSys Earth Projection 1, 104\n'
    with zipfile.ZipFile(path, "w") as packed:
        packed.writestr("a.mif", f"{head}Columns 1\n  n Char(20)\nData\n\n{points}")
        packed.writestr("a.mid", b"".join(b'"%b"\n' % text for text in texts))
    return path


async def shapefile(pipeline: Pipeline, path: Path, declared: str) -> Path:
    """A shapefile with text in Windows-1252 whose .cpg declares another encoding."""
    return await shapefile_of(pipeline, path, declared, "Müller €", "cp1252")


async def shapefile_of(pipeline: Pipeline, path: Path, declared: str, text: str, encoding: str) -> Path:
    """A shapefile with the value `text` in its second row, in `encoding`, and a .cpg that says `declared`."""
    rows = [point(7, 50, n=name) for name in ("plain", text)]
    made = (await pipeline.to("Shapefile", write_geojson(path / "a.geojson", rows))).path
    there, here = (text.encode(code) for code in ("utf-8", encoding))
    with zipfile.ZipFile(made) as former, zipfile.ZipFile(path / "a.zip", "w") as packed:
        for name in [name for name in former.namelist() if not name.endswith(".cpg")]:
            packed.writestr(name, former.read(name).replace(there, here.ljust(len(there))))
        packed.writestr("a.cpg", declared)
    return path / "a.zip"


@pytest.mark.parametrize("declared", ["UTF-16", "ucs2", "Unicode", "UTF-32LE"])
@pytest.mark.parametrize("encoding", ["utf-8", "cp1252"])
async def test_an_encoding_that_no_dbf_can_have_is_not_believed(
    pipeline: Pipeline, tmp_path: Path, declared: str, encoding: str
) -> None:
    """Pairs of letters became Chinese ones, in names of columns, too."""
    done = await pipeline.to("GeoJson", await shapefile_of(pipeline, tmp_path, declared, "Müller €", encoding))
    assert [row["properties"] for row in readers.geojson(done.path)] == [{"n": "plain"}, {"n": "Müller €"}]
    (told,) = done.output.warnings
    assert told.startswith(f"The .cpg of 'a' names '{declared.lower()}', which no .dbf can have: its texts were read")


@pytest.mark.parametrize("declared", ["UTF-8", "quite unknown"])
@pytest.mark.parametrize("target", ["GeoJson", "Gpx", "FlatGeobuf"])
async def test_texts_in_another_encoding_than_declared_are_mended_and_told(
    either: Pipeline, tmp_path: Path, declared: str, target: str
) -> None:
    """Their bytes were copied, so that results held text that no program can read."""
    sources = {
        "mif": mapinfo(
            tmp_path / "mif.zip", declared.replace("UTF-8", "Neutral"), [b"plain", "Müller €".encode("cp1252")]
        ),
        "shp": await shapefile(either, tmp_path, declared),
    }
    for source in sources.values():
        done = await either.to(target, source)
        (told,) = done.output.warnings
        assert told.startswith(TOLD)
        back = done.path if target == "GeoJson" else (await either.to("GeoJson", done.path)).path
        assert [row["properties"] for row in readers.geojson(back)] == [{"n": "plain"}, {"n": "Müller €"}]


@pytest.mark.parametrize("declared", DECLARED)
async def test_an_encoding_is_known_by_every_name_that_has_one_meaning(
    either: Pipeline, tmp_path: Path, declared: str
) -> None:
    """The driver knows few of them, and texts were read as Windows-1252."""
    encoding = DECLARED[declared]
    text = WORDS.get(encoding, "Привет")
    done = await either.to("GeoJson", await shapefile_of(either, tmp_path, declared, text, encoding))
    assert [row["properties"] for row in readers.geojson(done.path)] == [{"n": "plain"}, {"n": text}]
    assert not done.output.warnings


@pytest.mark.parametrize(("byte", "encoding"), [(0x7D, "cp1255"), (0x7E, "cp1256"), (0xC9, "cp1251")])
async def test_an_encoding_is_known_by_its_language_byte(
    either: Pipeline, tmp_path: Path, byte: int, encoding: str
) -> None:
    """The driver does not know all of them."""
    text = WORDS.get(encoding, "Привет")
    made = await shapefile_of(either, tmp_path, "", text, encoding)
    path = tmp_path / "b.zip"
    with zipfile.ZipFile(made) as former, zipfile.ZipFile(path, "w") as packed:
        for name in [name for name in former.namelist() if not name.endswith(".cpg")]:
            content = bytearray(former.read(name))
            if name.endswith(".dbf"):
                content[LANGUAGE_BYTE] = byte
            packed.writestr(name, content)
    done = await either.to("GeoJson", path)
    assert [row["properties"] for row in readers.geojson(done.path)] == [{"n": "plain"}, {"n": text}]
    assert not done.output.warnings


@pytest.mark.parametrize("table", ["towns", "gpkg_towns", "(towns)"])
async def test_texts_of_a_database_are_mended_whatever_its_tables_are_called(
    either: Pipeline, tmp_path: Path, table: str
) -> None:
    """Tables with some names are copied twice."""
    with edited(tmp_path / "a.sqlite") as connection:
        connection.execute(f'CREATE TABLE "{table}" (id INTEGER PRIMARY KEY, n TEXT)')
        connection.execute(f"INSERT INTO \"{table}\" (n) VALUES ('plain'), (CAST(? AS TEXT))", (b"M\xfcller \x80",))  # noqa: S608 -- ours
    done = await either.to("GeoJson", tmp_path / "a.sqlite")
    assert [row["properties"] for row in readers.geojson(done.path)] == [{"n": "plain"}, {"n": "Müller €"}]
    assert [warning.startswith(TOLD.partition("'a'")[0]) for warning in done.output.warnings] == [True]


@pytest.mark.parametrize("kind", ["GeoPackage", "SpatiaLite", "FlatGeobuf"])
async def test_texts_of_formats_without_encodings_are_mended(either: Pipeline, tmp_path: Path, kind: str) -> None:
    """Programs write other bytes than UTF-8 into them all the same; results held JSON that no program can read."""
    made = (
        await either.to(kind, write_geojson(tmp_path / "b.geojson", [point(7, 50, n="plain"), point(7, 50, n="Mü")]))
    ).path
    path = tmp_path / f"a{made.suffix}"
    path.write_bytes(made.read_bytes().replace("Mü".encode(), b"M\xfc\x80"))
    done = await either.to("GeoJsonSeq", path)
    rows = [json.loads(line.strip("\x1e"))["properties"] for line in done.path.read_text().splitlines()]
    assert sorted(row["n"] for row in rows) == ["Mü€", "plain"]
    assert ["not that of 1 text of " in warning for warning in done.output.warnings] == [True]


async def test_texts_that_are_cut_within_a_character_keep_the_others(either: Pipeline, tmp_path: Path) -> None:
    """As some programs cut them at the width of a column."""
    texts = [b"plain", "Škoda Ł".encode()[:-1]]
    done = await either.to("GeoJson", mapinfo(tmp_path / "a.zip", "Neutral", texts))
    assert [row["properties"] for row in readers.geojson(done.path)] == [{"n": "plain"}, {"n": "Škoda \ufffd"}]
    assert [warning.startswith(TOLD) for warning in done.output.warnings] == [True]


@pytest.mark.parametrize("charset", ["WindowsLatin1", "WindowsCyrillic"])
async def test_texts_in_utf_8_that_are_declared_otherwise_are_told(
    either: Pipeline, tmp_path: Path, charset: str
) -> None:
    """The driver reads them as declared, and a charset that fits them is one line away."""
    done = await either.to("GeoJson", mapinfo(tmp_path / "a.zip", charset, [b"plain", "Łódź".encode()]))
    (told,) = done.output.warnings
    assert told.startswith(f"Texts were read in the charset '{charset}', which the .mif declares, but look like")
    mended = await either.to("GeoJson", mapinfo(tmp_path / "b.zip", "UTF-8", [b"plain", "Łódź".encode()]))
    assert mended.output.warnings == ()
    assert [row["properties"] for row in readers.geojson(mended.path)] == [{"n": "plain"}, {"n": "Łódź"}]


async def test_texts_in_the_declared_encoding_are_kept(either: Pipeline, tmp_path: Path) -> None:
    """Also those that a charset does not name, but which are UTF-8."""
    names = {"Neutral": "Müller", "WindowsLatin1": "Müller", "WindowsCyrillic": "Москва", "WindowsHebrew": "שלום"}
    encodings = {"Neutral": "utf-8", "WindowsLatin1": "cp1252", "WindowsCyrillic": "cp1251", "WindowsHebrew": "cp1255"}
    for charset, encoding in encodings.items():
        name = names[charset]
        done = await either.to("GeoJson", mapinfo(tmp_path / f"{charset}.zip", charset, [name.encode(encoding)]))
        assert done.output.warnings == ()
        assert [row["properties"] for row in readers.geojson(done.path)] == [{"n": name}]
