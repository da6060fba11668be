"""The files of the page and of `/docs` that others wrote, and the Python packages that carry them.

They are not part of the source. The set-up installs the packages of `requirements/page.lock`, which are pinned with
their checksums, into a directory of their own, and runs this file as a program to take from them what is listed here:

    python service/http/page/vendored.py DIRECTORY

The program uses the standard library only, because it runs before the service is installed.
"""

import json
import shutil
import struct
import sys
from collections.abc import Iterator, Mapping
from itertools import pairwise
from pathlib import Path

DIRECTORY = Path(__file__).parent / "vendor"
OUTLINE = "world.json"
_LEAFLET = "leaflet/static/leaflet"
_SWAGGER = "drf_spectacular_sidecar/static/drf_spectacular_sidecar/swagger-ui-dist"
COPIES: Mapping[str, str] = {
    "leaflet.js": f"{_LEAFLET}/leaflet.js",
    "leaflet.css": f"{_LEAFLET}/leaflet.css",
    "swagger-ui.js": f"{_SWAGGER}/swagger-ui-bundle.js",
    "swagger-ui.css": f"{_SWAGGER}/swagger-ui.css",
    "swagger-ui.LICENSE.txt": f"{_SWAGGER}/LICENSE",
}
"""Each file by its name here, and where its package has it."""
COUNTRIES = "pyogrio/tests/fixtures/naturalearth_lowres/naturalearth_lowres.shp"
"""The countries of Natural Earth at 1:110 million, which are in the public domain."""
FILES = frozenset({*COPIES, OUTLINE})

HEADER_BYTES = 100
POLYGON = 5
PARTS_AT = 44
"""Where the offsets of the rings begin in a polygon: after its type, its extent and two counts."""
DIGITS = 1
"""Decimals of a degree: at most a pixel where the whole world is as wide as a screen."""


def main(packages: Path) -> None:
    """Take the files from `packages`, the directory in which the packages are installed."""
    draft = DIRECTORY.with_name("vendor.new")
    shutil.rmtree(draft, ignore_errors=True)
    draft.mkdir()
    for name, origin in COPIES.items():
        shutil.copyfile(packages / origin, draft / name)
    rings = list(_rings((packages / COUNTRIES).read_bytes()))
    (draft / OUTLINE).write_text(json.dumps(rings, separators=(",", ":")), encoding="ascii")
    shutil.rmtree(DIRECTORY, ignore_errors=True)
    draft.rename(DIRECTORY)


def _rings(shapefile: bytes) -> Iterator[list[list[float]]]:
    """Return the rings of all polygons as lists of longitude and latitude, without repeated points."""
    at = HEADER_BYTES
    while at < len(shapefile):
        (words,) = struct.unpack_from(">i", shapefile, at + 4)
        record = shapefile[at + 8 : at + 8 + 2 * words]
        at += 8 + 2 * words
        kind, *_, parts, points = struct.unpack_from("<i4d2i", record)
        if kind != POLYGON:
            continue
        starts = [*struct.unpack_from(f"<{parts}i", record, PARTS_AT), points]
        numbers = struct.unpack_from(f"<{2 * points}d", record, PARTS_AT + 4 * parts)
        positions = list(zip(numbers[::2], numbers[1::2], strict=True))
        for first, end in pairwise(starts):
            ring = [[round(x, DIGITS), round(y, DIGITS)] for x, y in positions[first:end]]
            yield [point for point, before in zip(ring, [None, *ring], strict=False) if point != before]


if __name__ == "__main__":
    main(Path(sys.argv[1]))
