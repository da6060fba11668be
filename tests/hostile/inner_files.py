"""Packed files other than one file in a ZIP: .gz, MapInfo and File Geodatabases, and other JSON formats."""

import gzip
import json
import stat
import struct
import zlib
from collections.abc import Callable

from tests.hostile.bait import Bait
from tests.hostile.case import Case, constant, filled, made, text
from tests.hostile.packing import MIB, Entry, assembled, blanks, deflated, packed
from tests.support.data import lakes

JSON = lakes()
GZ_HEAD = b"\x1f\x8b\x08"
NAMED = 8
"""The flag of a .gz whose head has the name of the file."""
NOISE = bytes(range(256)) * 8
OUTSIDE = "not a valid path inside"
SYMLINK = stat.S_IFLNK | 0o777
TABLE = (
    "!table\n!version 300\n!charset WindowsLatin1\n\nDefinition Table\n  {type}\n  Fields 1\n    secret Char (50) ;\n"
)
DBASE = 'Type DBF Charset "WindowsLatin1"'
VIEW = """!table
!version 100

Open Table "{path}" Hide
Open Table "{path}" Hide
Create View a As
Select secret From a, b Where a.id = b.id
"""
SEAMLESS = """!table
!version 300

Definition Table
  Type NATIVE Charset "WindowsLatin1"
  Fields 1
    Table Char (200) ;
begin_metadata
"\\IsSeamless" = "TRUE"
end_metadata
"""
ARCS = {"type": "Topology", "objects": {"a": {"type": "LineString", "arcs": [2**31]}}, "arcs": [[[0, 0], [1, 1]]]}
ESRI = {"geometryType": "esriGeometryPolygon", "spatialReference": {"wkt": "{url}"}, "features": []}


def _bomb(size_mib: int) -> bytes:
    data, size, crc = blanks(size_mib, b'{"type": "FeatureCollection", "features": [', b"]}")
    return GZ_HEAD + bytes(7) + data + struct.pack("<II", crc, size)


def _headed(name: bytes) -> bytes:
    whole = gzip.compress(JSON, mtime=0)
    return whole[:3] + bytes([NAMED]) + whole[4:10] + name + b"\0" + whole[10:]


def _tab(template: str, **named: str) -> Callable[[Bait], bytes]:
    """A ZIP with a .tab that names a file of the host."""

    def build(bait: Bait) -> bytes:
        content = template.replace("{path}", filled("{csv}", bait))
        for name, value in named.items():
            content = content.replace(f"{{{name}}}", filled(value, bait))
        return packed({"a.tab": content.encode(), "a.dat": b"\x03" + bytes(200)})

    return build


def _geodatabase(**links: str) -> Callable[[Bait], bytes]:
    """A ZIP with a File Geodatabase in which some files are links."""

    def build(bait: Bait) -> bytes:
        members = [Entry(b"a.gdb/gdb", deflated(b"x"), size=1, crc=zlib.crc32(b"x"))]
        for name, target in links.items():
            content = filled(target, bait).encode()
            crc = zlib.crc32(content)
            path = f"a.gdb/a0000000{name}.gdbtable".encode()
            members.append(Entry(path, deflated(content), size=len(content), crc=crc, mode=SYMLINK))
        return assembled(members)

    return build


CASES = {
    "a .gz of 900 MiB": Case("a.geojson.gz", made(lambda: _bomb(900)), "times its size|more than .* MiB"),
    "a .gz that is cut off": Case("a.geojson.gz", constant(gzip.compress(JSON)[:-9]), "cut off"),
    "a .gz with another checksum": Case(
        "a.geojson.gz", constant(gzip.compress(JSON)[:-8] + struct.pack("<II", 1, len(JSON))), "damaged"
    ),
    "a .gz with noise behind": Case("a.geojson.gz", constant(gzip.compress(JSON) + b"noise"), "damaged"),
    "a .gz of its head only": Case("a.geojson.gz", constant(GZ_HEAD), "cut off"),
    "a .gz that is none": Case("a.geojson.gz", constant(JSON), "damaged"),
    "a .gz of nothing": Case("a.geojson.gz", constant(gzip.compress(b"")), "empty"),
    "a .gz of 400,000 parts": Case("a.geojson.gz", made(lambda: gzip.compress(b"") * 400_000), "parts"),
    "a .gz whose head names a file of the host": Case(
        "a.geojson.gz", lambda bait: _headed(f"../../{bait.marker}.geojson".encode()), ""
    ),
    "a .gz whose head is long": Case("a.geojson.gz", made(lambda: _headed(b"x" * (20 * MIB))), ""),
    "a .gz of a .gz": Case("a.geojson.gz.gz", constant(gzip.compress(gzip.compress(JSON))), "one file in it"),
    "a .gz of a ZIP": Case("a.zip.gz", constant(gzip.compress(packed({"a.geojson": JSON}))), "one file in it"),
    "a .gz of no name": Case(".gz", constant(gzip.compress(JSON)), "one file in it|extension"),
    "a MapInfo view of another file": Case("a.zip", _tab(VIEW)),
    "a MapInfo table of many that are elsewhere": Case("a.zip", _tab(SEAMLESS)),
    "a MapInfo table of dBASE": Case("a.zip", _tab(TABLE, type=DBASE)),
    "a MapInfo table without an end": Case(
        "a.zip", constant(packed({"a.tab": b"Fields 1\n" * 200_000, "a.dat": b"x"}))
    ),
    "a MapInfo interchange file of a billion columns": Case(
        "a.zip", constant(packed({"a.mif": b"Version 300\nColumns 1000000000\nData\n"}))
    ),
    "a File Geodatabase with a link": Case("a.zip", _geodatabase(**{"1": "{txt}"}), "link"),
    "a File Geodatabase with a link upwards": Case("a.zip", _geodatabase(**{"9": "../../../../etc/passwd"}), "link"),
    "a File Geodatabase of a long name": Case(
        "a.zip", constant(packed({"a.gdb/a00000001.gdbtable": NOISE, f"a.gdb/a00000002.{'x' * 5000}": NOISE})), "."
    ),
    "a File Geodatabase of noise": Case(
        "a.zip",
        constant(packed({f"a.gdb/a0000000{number}.gdbtable": NOISE for number in range(1, 9)})),
        ".",
    ),
    "a File Geodatabase that leads upwards": Case(
        "a.zip",
        lambda bait: packed({"a.gdb/a00000001.gdbtable": b"x", f"a.gdb/../../{bait.marker}": b"x"}),
        OUTSIDE,
    ),
    "a topology of arcs that are not there": Case("a.json", constant(json.dumps(ARCS))),
    "a topology of nothing": Case("a.json", constant('{"type": "Topology", "objects": {}, "arcs": []}')),
    "Esri JSON whose system is an address": Case("a.json", text(json.dumps(ESRI)), fields={"outputFormat": "Csv"}),
    "JSON of braces before its type": Case("a.json", constant('{"a":' * 5_000 + "1" + "}" * 5_000)),
}
