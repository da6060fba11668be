"""Detecting the format of uploads."""

import bz2
import gzip
import io
import random
import sqlite3
import struct
import tracemalloc
import zipfile
from collections.abc import Callable, Mapping
from contextlib import closing, nullcontext, suppress
from pathlib import Path
from zlib import crc32

import pytest

from service.blocking import INLINE_BYTES
from service.errors import Rejection
from service.formats.bounds import MIB, Bounds, TooMuch
from service.formats.detect import REMEDIES, Depth, detect
from service.formats.json_kinds import TOKEN
from service.formats.registry import INPUT_EXTENSIONS, by_token
from service.formats.source import Source
from service.formats.table import FORMATS
from service.formats.table.databases import GEOPACKAGE
from service.formats.table.json_family import GEOJSON
from service.usecases.detect_format import LITTLE
from tests.hostile.packing import Entry, assembled
from tests.support.calls import counted_calls
from tests.support.data import JOURNAL

BY_CONTENT = {("topojson", ".json"), ("esrijson", ".json")}
SHAPE = {"roads.shp": b"shp", "roads.shx": b"shx", "roads.dbf": b"dbf"}


def packed(members: Mapping[str, bytes], method: int = zipfile.ZIP_DEFLATED) -> bytes:
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w", method) as archive:
        for name, member in members.items():
            archive.writestr(name, member)
    return content.getvalue()


def zipped(path: Path, members: Mapping[str, bytes]) -> Path:
    path.write_bytes(packed(members))
    return path


def received(
    tmp_path: Path, members: Mapping[str, bytes], name: str = "up.zip", bounds: Bounds | None = None
) -> Source:
    return detect(zipped(tmp_path / "upload", members), name, tmp_path / "unpacked", bounds)


@pytest.mark.parametrize(
    ("beside", "content", "refused"),
    [
        ("-wal", b"", ""),
        ("-wal", bytes(32), ""),
        ("-wal", bytes(33), r"'a/lakes\.gpkg-wal', changes that .* lacks\..*closed; create the ZIP"),
        ("-journal", b"", ""),
        ("-journal", bytes(2_000), ""),
        ("-journal", JOURNAL + bytes(2_000), ""),
        (
            "-journal",
            JOURNAL + b"\xff" * 4,
            r"'a/lakes\.gpkg-journal', which .* part of an unfinished change\. .* undoes the change; create the ZIP",
        ),
    ],
)
def test_a_database_is_refused_with_changes_that_it_lacks_or_that_did_not_end(
    tmp_path: Path, beside: str, content: bytes, refused: str
) -> None:
    """GDAL would read it without the file beside it, which may be empty, a header alone, or that of an ended change."""
    members = {"a/lakes.gpkg": b"x", f"a/lakes.gpkg{beside}": content, "a/lakes.gpkg-shm": b"x"}
    if refused:
        with pytest.raises(Rejection, match=refused):
            received(tmp_path, members)
    else:
        assert received(tmp_path, members).format.token == GEOPACKAGE.token


@pytest.mark.parametrize("ending", ["", "DELETE", "PERSIST", "TRUNCATE"])
def test_a_journal_matters_while_its_change_has_not_ended(tmp_path: Path, ending: str) -> None:
    """SQLite itself takes the change back when it opens the database, or finds an ended one."""
    path, journal = tmp_path / "a.gpkg", tmp_path / "a.gpkg-journal"
    with closing(sqlite3.connect(path, isolation_level=None)) as database:
        database.execute("CREATE TABLE a AS SELECT zeroblob(1000)")
        database.execute(f"PRAGMA journal_mode = {ending or 'DELETE'}")
        database.execute("PRAGMA cache_size = 1")
        database.execute("BEGIN")
        for _ in range(6):
            database.execute("INSERT INTO a SELECT * FROM a")
        if ending:
            database.execute("COMMIT")
        members = {file.name: file.read_bytes() for file in (path, journal) if file.exists()}
    with pytest.raises(Rejection, match="unfinished change") if not ending else nullcontext():
        received(tmp_path, members)


@pytest.mark.parametrize(
    ("extension", "token"),
    [
        (extension, row.token)
        for row in FORMATS
        for extension in row.extensions
        if extension not in {".zip", ".kmz"} and (row.token, extension) not in BY_CONTENT
    ],
)
def test_every_extension_is_recognised_in_any_case(tmp_path: Path, extension: str, token: str) -> None:
    """The extension decides, in upper case too (interface 1)."""
    (tmp_path / "upload").write_bytes(b"x")
    source = detect(tmp_path / "upload", f"My Data{extension.upper()}", tmp_path)
    assert (source.format.token, source.stem) == (token, "My_Data")


def test_an_unknown_extension_is_refused_with_the_known_ones(tmp_path: Path) -> None:
    """The message lists what is accepted."""
    (tmp_path / "upload").write_bytes(b"x")
    with pytest.raises(Rejection, match=r"\.pdf cannot be converted.*\.geojson"):
        detect(tmp_path / "upload", "plan.pdf", tmp_path)


@pytest.mark.parametrize(
    ("name", "remedy"),
    [
        ("a.TSV", "csv"),
        ("a.jsonl", "geojsonl"),
        ("a.7z", "ZIP"),
        ("a.xls", "xlsx"),
        ("a.fods", "xlsx"),
        ("a.geoparquet", "parquet"),
        ("a.fgjson", "json"),
        ("a.ewkt", "wkt"),
        ("a.dgn", "DXF"),
        ("a.pmtiles", "GeoJSON"),
        ("a.citygml", "kml"),
    ],
)
def test_an_extension_that_is_not_accepted_says_which_is(tmp_path: Path, name: str, remedy: str) -> None:
    """If that is known, before the list."""
    (tmp_path / "upload").write_bytes(b"x")
    with pytest.raises(Rejection, match=rf"cannot be converted\. [^.]* (a |as )?\.?{remedy}\b.* Accepted:"):
        detect(tmp_path / "upload", name, tmp_path)
    assert not REMEDIES.keys() & set(INPUT_EXTENSIONS)


def test_an_empty_file_is_refused(tmp_path: Path) -> None:
    """There is nothing to convert."""
    (tmp_path / "upload").touch()
    with pytest.raises(Rejection, match="empty"):
        detect(tmp_path / "upload", "a.kml", tmp_path)


def test_a_shapefile_is_put_together_from_any_spelling(tmp_path: Path) -> None:
    """In folders, in upper case and in any language; known sidecars are unpacked, others are not."""
    members = {
        f"Ordner/STRAßEN{extension.upper()}": b"x" for extension in (".shp", ".shx", ".dbf", ".prj", ".sbn", ".cpg")
    }
    members |= {"__MACOSX/Ordner/._STRAßEN.shp": b"junk", ".DS_Store": b"junk", "Ordner/readme.txt": b"hello"}
    source = received(tmp_path, members)
    assert (source.format.token, source.stem) == ("shapefile", "STRAßEN")
    assert set(source.parts[0].files) == {".shp", ".shx", ".dbf", ".prj", ".cpg"}
    assert all(path.parent == tmp_path / "unpacked" for path in source.parts[0].files.values())


def test_several_shapefiles_are_layers(tmp_path: Path) -> None:
    """Each keeps its name, even if only folders tell them apart."""
    members = {f"{folder}/roads.{extension}": b"x" for folder in "ab" for extension in ("shp", "shx", "dbf")}
    source = received(tmp_path, members, "Karte 1.zip")
    assert [part.layer for part in source.parts] == ["roads", "roads_2"]
    assert source.stem == "Karte_1"


@pytest.mark.parametrize("other", ["Roads.shp", "ROADS.dbf", "roads.PRJ"])
def test_parts_whose_names_differ_in_case_alone_are_refused(tmp_path: Path, other: str) -> None:
    """One of them would be dropped silently."""
    with pytest.raises(Rejection, match=rf"'roads\.\w+' and '{other}', whose names differ at most in case"):
        received(tmp_path, {**SHAPE, "roads.prj": b"", other: b"x"})


@pytest.mark.parametrize("name", ["roads.PRJ", "roads.prj"])
def test_a_projection_may_be_there_twice(tmp_path: Path, name: str) -> None:
    """Equal bytes say the same, whichever are taken; some programs write both spellings."""
    path = zipped(tmp_path / "upload", {**SHAPE, "ROADS.prj": b"same"})
    with zipfile.ZipFile(path, "a") as archive:
        archive.writestr(name, b"same")
    source = detect(path, "up.zip", tmp_path / "unpacked")
    assert source.parts[0].files[".prj"].read_bytes() == b"same"


@pytest.mark.parametrize("name", SHAPE)
def test_parts_that_hold_data_are_refused_twice_even_if_equal(tmp_path: Path, name: str) -> None:
    """Two datasets may share a table and differ in their shapes."""
    with pytest.raises(Rejection, match="differ at most in case"):
        received(tmp_path, {**SHAPE, name.upper(): SHAPE[name]})


def test_clutter_may_have_names_that_differ_in_case_alone(tmp_path: Path) -> None:
    """It belongs to no dataset."""
    source = received(tmp_path, {**SHAPE, "readme.txt": b"", "README.TXT": b""})
    assert (source.format.token, len(source.parts)) == ("shapefile", 1)


@pytest.mark.parametrize("missing", [".shx", ".dbf"])
def test_a_shapefile_lacking_a_part_names_it(tmp_path: Path, missing: str) -> None:
    """ZIP rule 3."""
    with pytest.raises(Rejection, match=rf"lacks its \{missing}\. .* Or send the \.shp alone, outside a ZIP"):
        received(tmp_path, {name: content for name, content in SHAPE.items() if not name.endswith(missing)})


@pytest.mark.parametrize("companion", ["cities.tab", "readme.TAB"])
def test_a_tab_without_its_table_is_clutter_beside_a_whole_file(tmp_path: Path, companion: str) -> None:
    """MapInfo writes one beside a CSV file that it opens; a missing .dbf of a .shp is still reported."""
    beside = tmp_path / "beside"
    beside.mkdir()
    with pytest.raises(Rejection, match=r"lacks its \.shx and \.dbf"):
        received(beside, {"cities.csv": b"x,y\n1,2\n", "roads.shp": b"x"})
    source = received(tmp_path, {"cities.csv": b"x,y\n1,2\n", companion: b"x"})
    assert (source.format.token, source.stem) == ("csv", "cities")


def test_a_seamless_table_of_mapinfo_is_not_taken_for_data(tmp_path: Path) -> None:
    """It lists the tables with the data, and was called damaged, with all of these."""
    listing = {"whole.tab": b'!table\nbegin_metadata\n"\\IsSeamless" = "TRUE"\n', "whole.dat": b"x"}
    tables = {f"{name}.{extension}": b"x" for name in "ab" for extension in ("tab", "dat", "map")}
    source = received(tmp_path, {**listing, **tables})
    assert [part.layer for part in source.parts] == ["a", "b"]
    assert any("Seamless tables ('whole.tab') only list others" in warning for warning in source.warnings)
    alone = tmp_path / "alone"
    alone.mkdir()
    with pytest.raises(Rejection, match=r"Put the tables that they list into the ZIP"):
        received(alone, listing)


def test_a_single_file_of_another_format_is_unwrapped(tmp_path: Path) -> None:
    """ZIP rule 1: the content counts, clutter aside."""
    source = received(tmp_path, {"x/Tracks.GPX": b"<gpx/>", "x/notes.txt": b"", "__MACOSX/x/._Tracks.GPX": b"-"})
    assert (source.format.token, source.stem, source.parts[0].path.read_bytes()) == ("gpx", "Tracks", b"<gpx/>")


def test_the_documents_of_a_kmz_are_unpacked(tmp_path: Path) -> None:
    """GDAL reads only a KMZ's first document, and not all its attributes. Documents without features do not count."""
    source = received(tmp_path, {"doc.kml": b"<kml/>", "files/icon.png": b"x"}, "Tour.kmz")
    assert (source.format.token, source.stem, source.parts[0].extension) == ("kmz", "Tour", ".kml")
    assert (source.parts[0].path.read_bytes(), source.parts[0].layer) == (b"<kml/>", "Tour")
    documents = {
        "doc.kml": b"<kml><NetworkLink></kml>",
        "a/x.kml": b"<kml><Placemark/></kml>",
        "b/x.KML": "\ufeff<kml><Placemark/></kml>".encode("utf-16-le"),
        "c/map.kml": b"<kml><GroundOverlay/></kml>",
        "d/empty.kml": b"",
    }
    several = detect(zipped(tmp_path / "several", documents), "Tour.kmz", tmp_path / "two")
    assert [part.layer for part in several.parts] == ["x", "x_2", "map"]
    assert [part.path.read_bytes() for part in several.parts] == [
        documents["a/x.kml"],
        b"<kml><Placemark/></kml>",
        documents["c/map.kml"],
    ]
    assert any("Network links (1)" in warning for warning in several.warnings)


UTF_16 = {"utf-16": "text in UTF-16. Save", "utf-16-le": "looks like text in UTF-16", "utf-16-be": "looks like text"}
TEXTS = {
    "a.geojson": '{"type": "FeatureCollection"}',
    "a.geojsonl": '{"type": "Feature"}',
    "a.topojson": '{"type": "Topology"}',
    "a.gml": "<?xml?>",
    "a.gpx": "<gpx/>",
    "a.dxf": "  0\nSECTION",
    "a.csv": "Größe,b\n1,2\n",
    "a.wkt": "POINT (1 2)",
    "a.kml": "<kml/>",
}
READ = {("a.csv", "utf-16"), ("a.wkt", "utf-16")}
BECOMES_UTF_8 = {(name, encoding) for name in ("a.kml", "a.gml", "a.gpx") for encoding in UTF_16}


@pytest.mark.parametrize("name", TEXTS)
def test_text_in_utf_16_is_refused_where_its_driver_does_not_read_it(tmp_path: Path, name: str) -> None:
    """Packed or not; the driver calls it damaged, or takes the zero bytes for letters."""
    for encoding, told in UTF_16.items():
        content, folder = TEXTS[name].encode(encoding), tmp_path / encoding
        folder.mkdir()
        (tmp_path / name).write_bytes(content)
        if (name, encoding) in READ:
            assert detect(tmp_path / name, name, tmp_path / "unpacked").parts[0].path.read_bytes() == content
            continue
        if (name, encoding) in BECOMES_UTF_8:
            (part,) = detect(tmp_path / name, name, tmp_path / encoding).parts
            assert part.path.read_text(encoding="utf-8") == TEXTS[name]
            continue
        with pytest.raises(Rejection, match=f"{told}.*UTF-8"):
            detect(tmp_path / name, name, tmp_path / "unpacked")
        with pytest.raises(Rejection, match=told):
            received(folder, {name: content})
    (tmp_path / name).write_text(TEXTS[name], encoding="utf-8")
    assert detect(tmp_path / name, name, tmp_path / "unpacked").parts


@pytest.mark.parametrize("depth", [Depth.FORMAT, Depth.DOCUMENTS])
def test_a_file_is_refused_for_what_it_lacks_however_little_is_looked_at(tmp_path: Path, depth: Depth) -> None:
    """What is lost is told by whoever converts the file."""
    link, placemark = b"<NetworkLink></NetworkLink>", b"<Placemark></Placemark>"
    (path := tmp_path / "upload").write_bytes(b"<kml><Document>%b%b</Document></kml>" % (link, placemark))
    assert "Network links (1)" in detect(path, "a.kml", tmp_path / "unpacked").warnings[0]
    assert not detect(path, "a.kml", tmp_path / "unpacked", depth=depth).warnings
    path.write_bytes(b"<kml>%b</kml>" % link)
    with pytest.raises(Rejection, match=r"holds no features .*Network links \(1\)"):
        detect(path, "a.kml", tmp_path / "unpacked", depth=depth)


def test_only_for_its_format_no_document_is_mended(tmp_path: Path) -> None:
    """Whoever converts the file mends it; one that may hold no features is mended, to know."""
    (path := tmp_path / "upload").write_bytes(b"<gpx><rte><rtept lat='1' lon='2'><ele/></rtept></rte></gpx>")
    mended = detect(path, "a.gpx", tmp_path / "unpacked", depth=Depth.DOCUMENTS).path
    assert mended != path
    assert detect(path, "a.gpx", tmp_path / "unpacked", depth=Depth.FORMAT).path == path
    assert mended.exists()


def test_a_binary_dxf_is_refused_as_such(tmp_path: Path) -> None:
    """It is not damaged, but its driver reads only text."""
    with pytest.raises(Rejection, match=r"binary DXF.* Save it as ASCII DXF"):
        received(tmp_path, {"a.dxf": b"AutoCAD Binary DXF\r\n\x1a\0\0\0SECTION\0"})


def test_an_encrypted_workbook_is_named(tmp_path: Path) -> None:
    """It is no ZIP but an older container, as the workbooks of older programs are."""
    (tmp_path / "upload").write_bytes(b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + bytes(600))
    with pytest.raises(Rejection, match=r"encrypted workbook.* Save it without a password"):
        detect(tmp_path / "upload", "a.xlsx", tmp_path)


def test_each_document_of_a_kmz_takes_as_long_whatever_their_number(tmp_path: Path) -> None:
    """Five thousand empty ones took fifteen seconds; now, as many calls more as there are documents more."""
    counts: list[int] = []
    for number in (200, 400):
        path = tmp_path / str(number)
        path.mkdir()
        archive = zipped(path / "upload", {f"{at}.kml": b"<kml/>" for at in range(number)})
        with counted_calls() as calls:
            detect(archive, "a.kmz", path / "unpacked")
        counts.append(calls.python.total())
    assert counts[1] < 2.2 * counts[0]


def test_a_kmz_without_a_document_is_refused(tmp_path: Path) -> None:
    """Whatever its name; documents that are all empty do not count either."""
    with pytest.raises(Rejection, match=r"no \.kml document"):
        received(tmp_path, {"a.txt": b"x"}, "Tour.kmz")
    with pytest.raises(Rejection, match="is empty"):
        detect(zipped(tmp_path / "empty", {"doc.kml": b""}), "Tour.kmz", tmp_path / "two")


@pytest.mark.parametrize("extra", [{"a.kml": b"x"}, SHAPE])
def test_several_convertible_files_are_listed(tmp_path: Path, extra: Mapping[str, bytes]) -> None:
    """ZIP rule 2."""
    with pytest.raises(Rejection, match=r"several files.*b\.geojson"):
        received(tmp_path, {"b.geojson": b"{}", **extra})


def test_a_zip_of_nothing_useful_says_what_it_holds(tmp_path: Path) -> None:
    """The list helps to find the mistake."""
    with pytest.raises(Rejection, match=r"no file that can be converted; it contains: plan\.pdf"):
        received(tmp_path, {"plan.pdf": b"x"})


@pytest.mark.parametrize(
    ("names", "advice"),
    [
        (("stops.txt", "feed/trips.txt"), REMEDIES[".txt"]),
        (("scan.tif", "SCAN.PNG"), REMEDIES[".tif"]),
        (("roads.dbf", "readme.txt"), "A shapefile needs .shp, .shx and .dbf."),
        (("roads.osm", "scan.tif"), "A shapefile needs .shp, .shx and .dbf."),
    ],
)
def test_a_zip_of_files_of_one_unaccepted_kind_is_refused_with_what_helps(
    tmp_path: Path, names: tuple[str, ...], advice: str
) -> None:
    """Such as GTFS feeds, whose tables are called .txt: that a shapefile needs other files does not help there."""
    upload = tmp_path / "upload.zip"
    upload.write_bytes(packed(dict.fromkeys(names, b"a,b")))
    with pytest.raises(Rejection) as refused:
        detect(upload, "upload.zip", tmp_path / "in", Bounds())
    assert str(refused.value) == (
        f"The ZIP holds no file that can be converted; it contains: {', '.join(names)}. {advice}"
    )


@pytest.mark.parametrize("name", ["../evil.geojson", "/etc/evil.geojson", "C:/evil.geojson", "a/../../evil.geojson"])
def test_names_that_leave_the_zip_are_refused(tmp_path: Path, name: str) -> None:
    """Nothing is written for them."""
    with pytest.raises(Rejection, match=r"evil\.geojson"):
        received(tmp_path, {name: b"{}"})
    assert list((tmp_path / "unpacked").iterdir()) == []


def test_links_are_refused(tmp_path: Path) -> None:
    """Links in a ZIP are never followed."""
    link = zipfile.ZipInfo("a.geojson")
    link.external_attr = 0o120777 << 16
    with zipfile.ZipFile(tmp_path / "upload", "w") as archive:
        archive.writestr(link, "/etc/passwd")
    with pytest.raises(Rejection, match=r"'a\.geojson'.*link"):
        detect(tmp_path / "upload", "a.zip", tmp_path / "unpacked")


def test_encrypted_members_are_refused(tmp_path: Path) -> None:
    """Even if only the central directory says so."""
    path = zipped(tmp_path / "upload", {"a.geojson": b"{}"})
    content = bytearray(path.read_bytes())
    at = content.index(b"PK\x01\x02")
    content[at + 8] |= 1
    path.write_bytes(content)
    with pytest.raises(Rejection, match="encrypted"):
        detect(path, "a.zip", tmp_path / "unpacked")


@pytest.mark.parametrize("name", ["inner.zip", "data.tar.gz", "x.7z", "y.RAR"])
def test_archives_inside_are_refused_by_name(tmp_path: Path, name: str) -> None:
    """Nested archives are not opened."""
    with pytest.raises(Rejection, match=name):
        received(tmp_path, {**SHAPE, name: b"x"})


def test_unpacking_is_counted_not_believed(tmp_path: Path) -> None:
    """The limit applies to the bytes that are unpacked."""
    with pytest.raises(Rejection, match="unpacks to more than"):
        received(tmp_path, {"a.geojson": b"0" * 3_000_000}, bounds=Bounds(unpacked_bytes=1 << 20))


def test_a_bomb_is_told_by_its_ratio(tmp_path: Path) -> None:
    """No map compresses a thousandfold."""
    with pytest.raises(Rejection, match="200 times"):
        received(tmp_path, {"a.geojson": b"0" * 3_000_000}, bounds=Bounds(ratio_from_bytes=1 << 20))


def test_a_lying_size_does_not_help(tmp_path: Path) -> None:
    """A member that unpacks to more than its header declares counts as damaged."""
    path = zipped(tmp_path / "upload", {"a.geojson": b"0" * 100_000})
    content = bytearray(path.read_bytes())
    struct.pack_into("<I", content, content.index(b"PK\x01\x02") + 24, 10)
    path.write_bytes(content)
    with pytest.raises(Rejection, match="damaged"):
        detect(path, "a.zip", tmp_path / "unpacked")


def test_too_many_members_are_refused(tmp_path: Path) -> None:
    """Their number is limited."""
    with pytest.raises(Rejection, match="30 entries"):
        received(tmp_path, {f"{number}.txt": b"" for number in range(30)}, bounds=Bounds(members=20))


LITTLE_TOO_MUCH = {
    "bytes": ({"a.geojson": b" " * INLINE_BYTES + b"{}"}, zipfile.ZIP_DEFLATED),
    "members": ({f"{number}.txt": b"" for number in range(100)}, zipfile.ZIP_STORED),
    "table of contents": ({f"{'x' * 200}{number}": b"" for number in range(60)}, zipfile.ZIP_STORED),
    "large steps": ({"a.geojson": b"{}"}, zipfile.ZIP_BZIP2),
    "documents in an archive within": ({"a.kmz": packed({"doc.kml": b" " * INLINE_BYTES + b"x"})}, zipfile.ZIP_STORED),
}


@pytest.mark.parametrize("reason", LITTLE_TOO_MUCH)
def test_an_archive_of_more_than_little_is_told_before_it_is_unpacked(tmp_path: Path, reason: str) -> None:
    """Unpacking it would hold up the event loop."""
    members, method = LITTLE_TOO_MUCH[reason]
    path = tmp_path / "upload"
    path.write_bytes(packed(members, method))
    with pytest.raises(TooMuch):
        detect(path, "a.zip", tmp_path / "unpacked", LITTLE)


BOMB_BYTES = 24 * MIB
BZIP2_BOMB = bz2.compress(b" " * BOMB_BYTES)
"""Some 40 bytes."""


@pytest.mark.parametrize("names", [("a.geojson",), ("a.gpkg", "a.gpkg-journal")])
def test_a_bomb_of_bzip2_is_unpacked_in_pieces(tmp_path: Path, names: tuple[str, ...]) -> None:
    """A ZIP of 100 bytes took the memory of all that it holds, and one of a megabyte would have ended the service."""
    path = tmp_path / "upload"
    bomb = [Entry(name.encode(), BZIP2_BOMB, method=12, size=BOMB_BYTES) for name in names]
    path.write_bytes(assembled(reversed(bomb)))
    tracemalloc.start()
    try:
        with suppress(Rejection):
            detect(path, "a.zip", tmp_path / "unpacked")
        assert tracemalloc.get_traced_memory()[1] < 8 * MIB
    finally:
        tracemalloc.stop()


BZIP2_CONTENT = b"x,y\n" + random.Random(2).randbytes(1_000_000).hex().encode()


def test_a_member_packed_by_bzip2_is_read_whole(tmp_path: Path) -> None:
    """Its content is of several blocks, of which the last one is not full."""
    path = tmp_path / "upload"
    path.write_bytes(packed({"a.csv": BZIP2_CONTENT}, zipfile.ZIP_BZIP2))
    assert detect(path, "a.zip", tmp_path / "unpacked").path.read_bytes() == BZIP2_CONTENT


BZIP2_DAMAGE: Mapping[str, Callable[[bytes], Entry]] = {
    "cut off": lambda data: Entry(b"a.csv", data[:-9], method=12, size=len(BZIP2_CONTENT), crc=crc32(BZIP2_CONTENT)),
    "longer than said": lambda data: Entry(
        b"a.csv", data, method=12, size=len(BZIP2_CONTENT) - 1, crc=crc32(BZIP2_CONTENT)
    ),
    "other content": lambda data: Entry(b"a.csv", data, method=12, size=len(BZIP2_CONTENT), crc=1),
    "no bzip2": lambda data: Entry(b"a.csv", b"?" + data, method=12, size=len(BZIP2_CONTENT), crc=1),
}


@pytest.mark.parametrize("damage", BZIP2_DAMAGE)
def test_damage_of_a_member_packed_by_bzip2_is_found(tmp_path: Path, damage: str) -> None:
    """Its checksum and its size are checked, as with every other method."""
    path = tmp_path / "upload"
    path.write_bytes(assembled([BZIP2_DAMAGE[damage](bz2.compress(BZIP2_CONTENT))]))
    with pytest.raises(Rejection, match=r"'a\.csv' in the ZIP is damaged"):
        detect(path, "a.zip", tmp_path / "unpacked")


def test_a_member_may_be_larger_than_a_table_of_contents(tmp_path: Path) -> None:
    """The bound on the one does not apply to the other."""
    content = random.Random(1).randbytes(LITTLE.contents_bytes * 4)
    path = tmp_path / "upload"
    path.write_bytes(packed({"a.csv": content}, zipfile.ZIP_STORED))
    assert detect(path, "a.zip", tmp_path / "unpacked", LITTLE).path.read_bytes() == content


def test_a_huge_table_of_contents_is_not_read(tmp_path: Path) -> None:
    """Parsing the central directory takes bounded memory, whatever it claims."""
    with zipfile.ZipFile(tmp_path / "upload", "w") as archive:
        archive.comment = b""
        for number in range(80):
            archive.writestr(f"{number:060000}", b"")
    with pytest.raises(Rejection, match="table of contents"):
        detect(tmp_path / "upload", "a.zip", tmp_path / "unpacked")


@pytest.mark.parametrize("content", [b"PK\x03\x04 nothing", b"not a zip", b"PK\x05\x06" + bytes(18)])
def test_what_is_no_zip_is_refused(tmp_path: Path, content: bytes) -> None:
    """Damage is reported as such; an empty ZIP contains nothing."""
    (tmp_path / "upload").write_bytes(content)
    with pytest.raises(Rejection, match="ZIP"):
        detect(tmp_path / "upload", "a.zip", tmp_path / "unpacked")


@pytest.mark.parametrize(
    ("name", "content", "is_sequence"),
    [
        ("a.geojsonl", b'{"type":"Feature"}\n{"type":"Feature"}\n', True),
        ("a.geojsonl", b'\xef\xbb\xbf{"geometry":null,"type":"Feature"}\n{"type":"Feature"}\n', True),
        ("a.geojsonl", b'\x1e{"type":"Feature"}\n', True),
        ("a.geojsonl", b'{\n"type":"FeatureCollection",\n"features":[]}', False),
        ("a.geojsonl", b'{"type":"FeatureCollection","features":[]}', False),
        ("a.geojsonl", b'{"type":"Feature","geometry":null,"properties":{}}', True),
        ("a.json", b'{"type":"Feature"}\n{"type":"Feature"}\n', True),
        ("a.json", b'{"type":"Feature"}', False),
        ("a.geojson", b'{"type":"FeatureCollection",\n"features":[\n{}]}', False),
    ],
)
def test_sequences_are_told_from_documents(tmp_path: Path, name: str, content: bytes, is_sequence: bool) -> None:
    """By content, since drivers do not distinguish them."""
    (tmp_path / "upload").write_bytes(content)
    assert bool(detect(tmp_path / "upload", name, tmp_path).prefix) is is_sequence


def gunzipped(tmp_path: Path, content: bytes, name: str = "a.geojson.gz", bounds: Bounds | None = None) -> Source:
    (tmp_path / "upload").write_bytes(content)
    return detect(tmp_path / "upload", name, tmp_path / "unpacked", bounds)


def test_a_gz_is_unpacked_whole(tmp_path: Path) -> None:
    """Whatever its number of members, and with zeros at its end."""
    noise = random.Random(1)
    parts = [noise.randbytes(number * 10) for number in range(500)]
    source = gunzipped(tmp_path, b"".join(map(gzip.compress, parts)) + b"\0" * 300_000)
    assert source.path.read_bytes() == b"".join(parts)


@pytest.mark.parametrize("size", [0, 1, 3, 17, 70_000])
def test_a_gz_that_is_cut_off_anywhere_is_refused(tmp_path: Path, size: int) -> None:
    """Even within its checksum, after all of the data."""
    whole = gzip.compress(bytes(range(256)) * 1000 + b"x" * 70_000, compresslevel=0)
    with pytest.raises(Rejection, match="cut off"):
        gunzipped(tmp_path, whole[: len(whole) - 1 - size])


def test_a_gz_is_held_to_the_bounds_of_a_zip(tmp_path: Path) -> None:
    """Bytes are counted as they are unpacked."""
    bomb = gzip.compress(b"0" * 3_000_000)
    with pytest.raises(Rejection, match="gz unpacks to more than 1 MiB"):
        gunzipped(tmp_path, bomb, bounds=Bounds(unpacked_bytes=1 << 20))
    assert (tmp_path / "unpacked" / "in.geojson").stat().st_size <= 1 << 20
    (tmp_path / "unpacked" / "in.geojson").unlink()
    with pytest.raises(Rejection, match="200 times"):
        gunzipped(tmp_path, bomb, bounds=Bounds(ratio_from_bytes=1 << 20))


@pytest.mark.parametrize("name", ["a.gz", "a.tar.gz", "a.zip.gz", "a.kmz.gz", ".gz"])
def test_a_gz_of_what_cannot_be_in_it_is_refused(tmp_path: Path, name: str) -> None:
    """Its name has to tell the content's format."""
    with pytest.raises(Rejection, match=r"cities\.csv\.gz|extension"):
        gunzipped(tmp_path, gzip.compress(b"x"), name)


@pytest.mark.parametrize(
    ("name", "needed"), [("a.tab", ".tab and .dat"), ("a.dbf", ".shp, .shx and .dbf"), ("a.MIF", ".mif")]
)
def test_a_part_of_a_dataset_says_what_else_is_needed(tmp_path: Path, name: str, needed: str) -> None:
    """It is useless alone."""
    with pytest.raises(Rejection, match=f"Put {needed}"):
        gunzipped(tmp_path, b"x", name)


def test_an_incomplete_bundle_beside_a_whole_one_of_its_name_is_none(tmp_path: Path) -> None:
    """Some programs put a .tab beside a shapefile."""
    assert received(tmp_path, {**SHAPE, "roads.tab": b"x"}).format.token == "shapefile"  # noqa: S105 -- a format's short name


def test_a_folder_of_a_geodatabase_takes_only_what_belongs_to_it(tmp_path: Path) -> None:
    """Other names are neither read nor written."""
    members = {
        f"x/Roads.gdb/{name}": b"x" for name in ("a00000001.gdbtable", "gdb", "a00000009.spx", "läufer.txt", "a.dat")
    }
    source = received(tmp_path, members)
    assert (source.format.token, source.stem, source.parts[0].extension) == ("openfilegdb", "Roads", ".gdb")
    assert {file.name for file in source.path.iterdir()} == {"a00000001.gdbtable", "gdb", "a00000009.spx"}
    assert source.size_bytes == 3


@pytest.mark.parametrize("unit", [b'\\"', b'a\\"', b"\\\\"])
def test_a_text_that_does_not_end_is_one_token(unit: bytes) -> None:
    """Otherwise its end would be searched for from each quotation mark in it."""
    assert len(list(TOKEN.finditer(b'{"' + 1000 * unit))) == 2
    assert len(list(TOKEN.finditer(b'{"' + 1000 * unit + b"\\"))) == 2


def test_geojson_whose_type_comes_last_is_no_other_json(tmp_path: Path) -> None:
    """Members of other formats may precede features that fill everything that is examined."""
    features = ", ".join(['{"type": "Feature", "properties": {}, "geometry": null}'] * 2000)
    path = tmp_path / "a.json"
    path.write_text(f'{{"displayFieldName": "a", "features": [{features}], "type": "FeatureCollection"}}')
    assert detect(path, "a.json", tmp_path / "unpacked").format is GEOJSON


@pytest.mark.parametrize(
    "document",
    [
        b'{"type": "Topology", "objects": {"places": {"type": "Point", "coordinates": [1, 2]}}, "arcs": []}',
        b'{"objects": {"type": "FeatureCollection"}, "type": "Topology", "arcs": []}',
    ],
)
@pytest.mark.parametrize("rest", [b"", b"\n", b" trailing"])
def test_the_kind_of_a_document_does_not_depend_on_what_follows(tmp_path: Path, document: bytes, rest: bytes) -> None:
    """A whole document is decoded, any other is searched for its outermost members: both find the same."""
    (tmp_path / "map.json").write_bytes(document + rest)
    assert detect(tmp_path / "map.json", "map.json", tmp_path / "unpacked").format is by_token("topojson")


@pytest.mark.parametrize(
    ("beginning", "repeated", "kind"),
    [
        ('{"type": "Topology", "arcs": [', "[[1, 2], [3, 4]]", "topojson"),
        ('{"arcs": [[[1, 2]]], "type": "Topology", "objects": {"a": {"geometries": [', '{"arcs": [0]}', "topojson"),
        ('{"fieldAliases": {"type": 1}, "features": [', '{"attributes": {"type": "Feature "}}', "esrijson"),
        ('{"type": "FeatureCollection", "features": [', '{"type": "Topology", "geometryType": [[1]]}', "geojson"),
        ('{"features": [', '{"geometryType": "Topology", "type": "Feature"}', "geojson"),
    ],
)
def test_values_that_go_on_beyond_what_is_examined_hide_their_members(
    tmp_path: Path, beginning: str, repeated: str, kind: str
) -> None:
    """Only members of the outermost object tell the formats apart, wherever the examined part ends."""
    for spaces in range(len(repeated)):
        (tmp_path / "map.json").write_text(beginning + " " * spaces + ", ".join([repeated] * 6000))
        assert detect(tmp_path / "map.json", "map.json", tmp_path / "unpacked").format is by_token(kind)


@pytest.mark.parametrize(
    ("repeated", "end", "kind"),
    [
        ('{"attributes": {"a": 1}}', '], "geometryType": "esriGeometryPoint"}', "esrijson"),
        ('{"attributes": {"type": "x"}}', '], "spatialReference" : {"wkid": 4326}}', "esrijson"),
        (
            '{"geometry": null, "properties": {"type": 1}}',
            '], "spatialReference": {}, "type": "FeatureCollection"}',
            "geojson",
        ),
        ('{"type": "Feature"}', '], "geometryType": "esriGeometryPoint"}', "geojson"),
        ("[[1, 2]]", '], "type":"Topology"}', "topojson"),
    ],
)
def test_members_behind_the_features_tell_the_formats_apart(tmp_path: Path, repeated: str, end: str, kind: str) -> None:
    """Where they are beyond what is examined of the beginning."""
    (tmp_path / "map.json").write_text('{"features": [' + ", ".join([repeated] * 9000) + end)
    assert detect(tmp_path / "map.json", "map.json", tmp_path / "unpacked").format is by_token(kind)


def test_a_document_of_brackets_alone_is_not_a_defect(tmp_path: Path) -> None:
    """Deeper nesting than a decoder follows leaves the format to the extension."""
    (tmp_path / "map.json").write_bytes(b'{"a":' * 10_000)
    assert detect(tmp_path / "map.json", "map.json", tmp_path / "unpacked").format is GEOJSON
