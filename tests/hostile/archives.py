"""ZIP and KMZ: bombs, names that leave the archive, false headers, members that are not files."""

import stat
import zipfile
import zlib
from collections.abc import Callable

from tests.hostile.bait import Bait
from tests.hostile.case import REFUSED, Case, constant, filled, made
from tests.hostile.packing import Entry, assembled, bomb, deflated, packed, packed_as
from tests.support.data import lakes

DENSE = "times its size|more than .* MiB"
OUTSIDE = "not a valid path inside"
SHAPES = ("a.shp", "a.shx", "a.dbf")
JSON = lakes()
SYMLINK = stat.S_IFLNK | 0o777
KML_HEAD = b'<kml xmlns="http://www.opengis.net/kml/2.2"><Document><Placemark><Point><coordinates>1,2'
KML_TAIL = b"</coordinates></Point></Placemark></Document></kml>"


def _entry(name: str, content: bytes = JSON, *, size: int | None = None, flags: int = 0, mode: int = 0) -> Entry:
    crc = zlib.crc32(content)
    return Entry(
        name.encode(), deflated(content), size=len(content) if size is None else size, crc=crc, flags=flags, mode=mode
    )


def _named(name: str) -> Callable[[Bait], bytes]:
    return lambda bait: assembled([_entry(filled(name, bait))])


def _lzma(dictionary_bytes: int) -> bytes:
    """A member compressed with LZMA that asks for a window of that size."""
    info = zipfile.ZipInfo("a.geojson")
    info.compress_type = zipfile.ZIP_LZMA
    whole = bytearray(packed_as(info, JSON))
    at = whole.index(b"\x09\x04\x05\x00") + 5
    whole[at : at + 4] = dictionary_bytes.to_bytes(4, "little")
    return bytes(whole)


def _many(count: int) -> bytes:
    return packed({f"folder/file{n}.txt": b"" for n in range(count)} | {"a.geojson": JSON}, zipfile.ZIP_STORED)


SLIPS = {
    "upwards": "../../../{slip}.geojson",
    "upwards from a folder": "a/../../../{slip}.geojson",
    "upwards with back-slashes": "..\\..\\{slip}.geojson",
    "to an absolute path": "{directory}/{slip}.geojson",
    "to a drive": "C:\\{slip}.geojson",
    "to another host": "\\\\127.0.0.1\\{slip}.geojson",
    "past NUL": "a.geojson\0/../{slip}",
    "over lines": "a\r\n{slip}.geojson",
}
LIES = {
    "a size that is too small": assembled([_entry("a.geojson", size=10)]),
    "a size that is too large": assembled([_entry("a.geojson", size=0xFFFFFFF0)]),
    "another checksum": assembled([Entry(b"a.geojson", deflated(JSON), size=len(JSON), crc=1)]),
    "data that is cut off": assembled(
        [Entry(b"a.geojson", deflated(JSON)[:-40], size=len(JSON), crc=zlib.crc32(JSON))]
    ),
    "data that is noise": assembled([Entry(b"a.geojson", bytes(range(256)), size=len(JSON), crc=zlib.crc32(JSON))]),
}

CASES = {
    **{f"a ZIP that leads {where}": Case("a.zip", _named(name), OUTSIDE) for where, name in SLIPS.items()},
    "a KMZ that leads upwards": Case(
        "a.kmz", lambda bait: packed({filled("../../{slip}.kml", bait): b"<kml/>"}), OUTSIDE
    ),
    **{
        f"a ZIP with {lie}": Case("a.zip", constant(content), "" if lie == "a size that is too large" else "damaged")
        for lie, content in LIES.items()
    },
    "a ZIP with a link": Case(
        "a.zip",
        lambda bait: assembled([_entry("a.geojson", str(bait.file(".geojson")).encode(), mode=SYMLINK)]),
        "link",
    ),
    "a ZIP with a link beside": Case(
        "a.zip",
        lambda bait: assembled([*map(_entry, SHAPES), _entry("a.prj", str(bait.file(".txt")).encode(), mode=SYMLINK)]),
        "link",
    ),
    "a ZIP with a device": Case(
        "a.zip", constant(assembled([_entry("a.geojson", b"", mode=stat.S_IFCHR | 0o666)])), "special"
    ),
    "a ZIP with a pipe": Case(
        "a.zip", constant(assembled([_entry("a.geojson", b"", mode=stat.S_IFIFO | 0o666)])), "special"
    ),
    "a ZIP that is encrypted": Case("a.zip", constant(assembled([_entry("a.geojson", flags=1)])), "encrypted"),
    "a ZIP in a ZIP": Case("a.zip", constant(packed({"b.zip": packed({"a.geojson": JSON})})), "itself an archive"),
    "a ZIP with a name twice": Case(
        "a.zip", constant(assembled([_entry("a.geojson"), _entry("a.geojson", b"{}")])), "several"
    ),
    "a ZIP with a name in two cases": Case(
        "a.zip", constant(assembled([_entry("a.geojson"), _entry("A.GEOJSON")])), "several"
    ),
    "a ZIP with parts in two cases": Case(
        "a.zip", constant(assembled([_entry(name, b"x") for name in (*SHAPES, "A.SHP", "a.Dbf")])), REFUSED
    ),
    "a ZIP with a file that is a folder too": Case(
        "a.zip", constant(assembled([_entry("a.geojson"), _entry("a.geojson/b.txt")])), ""
    ),
    "a ZIP of a long name": Case("a.zip", constant(assembled([_entry("x" * 60_000 + ".geojson")]))),
    "a ZIP of 6,000 members": Case("a.zip", made(lambda: _many(6_000)), "at most"),
    "a ZIP of 60,000 members": Case("a.zip", made(lambda: _many(60_000)), "at most|too large"),
    "a ZIP of overlapping members": Case(
        "a.zip",
        made(lambda: assembled([bomb("a.shp", 300), *(_entry(name) for name in ("a.shx", "a.dbf"))], overlapping=True)),
        REFUSED,
    ),
    "a ZIP of 900 MiB": Case("a.zip", made(lambda: assembled([bomb("a.geojson", 900)])), DENSE),
    "a ZIP of 900 MiB behind a small shapefile": Case(
        "a.zip", made(lambda: assembled([_entry("a.shp", b"x"), _entry("a.shx", b"x"), bomb("a.dbf", 900)])), DENSE
    ),
    "a KMZ of 900 MiB": Case("a.kmz", made(lambda: assembled([bomb("doc.kml", 900, KML_HEAD, KML_TAIL)])), DENSE),
    "a KMZ of two documents": Case(
        "a.kmz",
        made(lambda: assembled([bomb("doc.kml", 300, KML_HEAD, KML_TAIL), _entry("b.kml", KML_HEAD + KML_TAIL)])),
        REFUSED,
    ),
    "a KMZ of nothing": Case("a.kmz", constant(packed({})), REFUSED),
    "a ZIP of bzip2": Case("a.zip", made(lambda: packed({"a.geojson": b" " * (100 << 20)}, zipfile.ZIP_BZIP2)), DENSE),
    "a ZIP that wants four gigabytes to unpack": Case("a.zip", constant(_lzma(0xFFFFFFFF)), "unsupported method"),
    "a ZIP of deflate64": Case(
        "a.zip", constant(assembled([Entry(b"a.geojson", b"x" * 50, method=9, size=50)])), "unsupported method"
    ),
    "a ZIP of its end only": Case("a.zip", constant(assembled([])), "holds no file"),
    "a ZIP with a huge comment": Case(
        "a.zip", constant(packed({"a.geojson": JSON})[:-2] + b"\xff\xff" + b"x" * 65_535), ""
    ),
    "a ZIP whose table of contents is elsewhere": Case(
        "a.zip", constant(packed({"a.geojson": JSON})[:-6] + b"\xff\xff\xff\x7f\0\0"), REFUSED
    ),
}
