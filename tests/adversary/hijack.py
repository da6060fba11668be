"""Builds a copy of the real ogr2ogr with the adversary linked in, and gives it its orders."""

import json
import os
import re
import shutil
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

SOURCE = Path(__file__).with_name("adversary.c")
_NEEDED = re.compile(rb"libgdal\.so\.\d+\0")
_LINKED = re.compile(r"libgdal\.so\.\d+ => (?P<path>/\S+)")
_SHORT_PLACE = Path("/tmp")  # noqa: S108 -- the name of the library has to fit where the name of GDAL's stands


@contextmanager
def hijacked_ogr2ogr(directory: Path) -> Iterator[Path]:
    """The path of a program that behaves like ogr2ogr, except with files that contain orders.

    Its entry for GDAL's library names the adversary's, which is linked with GDAL's in turn.
    """
    genuine, compiler = shutil.which("ogr2ogr"), shutil.which("cc")
    assert genuine, "the adversary takes an ogr2ogr"
    assert compiler, "the adversary takes a C compiler"
    listing = subprocess.run(["ldd", genuine], capture_output=True, text=True, check=True).stdout
    linked = _LINKED.search(listing)
    program = Path(genuine).read_bytes()
    needed = _NEEDED.search(program)
    assert linked, "this ogr2ogr finds no library of GDAL"
    assert needed, "this ogr2ogr is not linked with GDAL's library"
    library, hijacked = directory / "adversary.so", directory / "ogr2ogr"
    flags = ("-O1", "-shared", "-fPIC", "-Wall", "-Wl,--no-as-needed", "-pthread")
    subprocess.run([compiler, *flags, "-o", library, SOURCE, linked["path"], "-ldl"], check=True)
    library.chmod(0o755)
    alias = _SHORT_PLACE / f"g{os.getpid() % 10000:04}.so"
    replacement = os.fsencode(alias).ljust(len(needed[0]), b"\0")
    assert len(replacement) == len(needed[0]), "the name does not fit"
    hijacked.write_bytes(program.replace(needed[0], replacement))
    hijacked.chmod(0o755)
    alias.unlink(missing_ok=True)
    alias.symlink_to(library)
    try:
        yield hijacked
    finally:
        alias.unlink()


def orders(wanted: Mapping[str, list[str]]) -> bytes:
    """A GeoJSON file with one point that tells the adversary what to try; arguments by verb."""
    text = "".join(f"{verb}={argument};" for verb, arguments in wanted.items() for argument in arguments)
    point = {"type": "Point", "coordinates": [14.45, 50.08]}
    feature = {"type": "Feature", "properties": {"note": f"ADVERSARY:{text}END"}, "geometry": point}
    return json.dumps({"type": "FeatureCollection", "features": [feature]}).encode()


def loot(result: bytes) -> dict[str, str]:
    """What the adversary reported in the output for each order, `verb=argument`."""
    found = re.search(r"LOOT:(.*?)END", result.decode())
    assert found, result[:500]
    told = [entry.rpartition("=") for entry in found[1].split(";") if entry]
    return {order: answer for order, _, answer in told}


def taken(result: bytes) -> dict[str, str]:
    """The orders that succeeded, with their results."""
    return {order: answer for order, answer in loot(result).items() if answer != "held"}
