"""Decides how a shapefile is read, and reports what its driver changes without a warning."""

import re
from collections.abc import Mapping
from functools import partial
from pathlib import PurePath
from typing import NamedTuple

from service.engine.reading.work_file import TAKEN_FOR_WINDOWS
from service.engine.shape_records import has_index
from service.engine.workspace import Workplace
from service.formats.cpg import declared_encoding, impossible_encoding
from service.formats.dbf_columns import LOGICAL, dbf_columns, deleted_records, filled_foreign
from service.formats.dbf_encoding import NO_UNICODE, UTF8, guess_encoding, looks_like_utf8
from service.formats.dbf_texts import cut_texts
from service.formats.dbf_values import odd_values
from service.formats.format import Reading
from service.formats.mid_values import logical_columns
from service.formats.names import listed, quotes, shown
from service.formats.opened import opened
from service.formats.source import Part

WHOLE_NUMBERS = "ADJUST_TYPE=YES"
"""Integers of more than 18 digits are read with 64 bits if they fit; otherwise they lose digits."""
INDEX_ANEW: Mapping[str, str] = {"SHAPE_RESTORE_SHX": "YES"}
"""The driver rebuilds the .shx, even if there is one. It takes the shapes in the order in which they are in the .shp,
also those that a program has replaced and left there, so that records would get the shapes of others."""


MOST_PRJ_BYTES = 1 << 16
SYSTEM = re.compile(
    rb"(?:\xef\xbb\xbf)?+\s*+(?P<kind>\w{4,20}+)\s*+\[\s*+(?:\"(?P<name>[\w:. /+()-]{1,60}+)\")?+", re.ASCII
)
"""How a .prj begins."""
KINDS: Mapping[bytes, str] = {b"GEOCCS": "geocentric ", b"LOCAL_CS": "local ", b"ENGCRS": "local "}
"""What is told of kinds of systems that have no maps."""
FORMER: Mapping[bytes, str] = {
    **dict.fromkeys((b"PROJCRS", b"PROJECTEDCRS"), "PROJCS"),
    **dict.fromkeys((b"GEOGCRS", b"GEOGRAPHICCRS", b"GEODCRS", b"GEODETICCRS"), "GEOGCS"),
    b"COMPOUNDCRS": "COMPD_CS",
}
"""What systems are called in a newer form of WKT, which pyproj writes unless told otherwise, and in the former one. The
driver reads nothing that begins so, although PROJ reads all the rest, whatever the word."""
ELLIPSOIDAL = re.compile(rb"\bCS\s*+\[\s*+ellipsoidal\s*+,[\s\d]*+\]\s*+,", re.IGNORECASE)
"""The kind of the axes of a system in degrees, of which newer releases of the driver leave out the axes only."""
GEOCENTRIC = re.compile(rb"\bCS\s*+\[\s*+Cartesian", re.IGNORECASE)
"""The axes of a system without a map that begins as one in degrees."""
NO_UNIT = re.compile(rb'\bPARAMETER\s*+\[\s*+"[^"]*+"\s*+,[^],]*+\]')
"""A parameter in the unit of the system, which PROJ takes for degrees or meters."""
OTHER_UNIT = re.compile(rb'UNIT\s*+\[\s*+"(?!metre"|degree"|unity")')
"""A unit for which that is wrong."""
CODE = re.compile(rb'\bID\s*+\[\s*+"EPSG"\s*+,\s*+(?P<code>\d{4,6}+)\s*+\]\s*+\]\s*+\Z')
"""How a system ends there that has a code: those of its parts are not the last."""
CODE_BYTES = 200


class Way(NamedTuple):
    """How to read a file of a source: the options and the environment, and warnings about it."""

    options: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()
    environment: Mapping[str, str] = {}
    logical: tuple[int, ...] = ()
    """The positions of its logical columns, which some releases of the driver report as texts."""
    system: str = ""
    """What its .prj calls its system."""
    srid: int | None = None
    """The EPSG code of its system, if its driver does not read how the .prj describes it."""


class _System(NamedTuple):
    name: str = ""
    """What a .prj calls the system that it describes, if that is a plain name."""
    srid: int | None = None
    """As in `Way`."""
    prj: str = ""
    """What the driver reads instead of the .prj, if not nothing."""


async def how_to_read(place: Workplace, part: Part, reading: Reading, name: str) -> Way:
    """How to read a shapefile, or a table of MapInfo, which may have logical columns, too; raises as `has_index`.

    A converter opens it as `name`.
    """
    if ".shp" not in part.files:
        return Way(logical=await place.look(partial(logical_columns, part.path)))
    environment = {} if await has_index(place, part, name) else INDEX_ANEW
    columns = partial(_how_to_read_columns, part, reads_logical=place.host.is_of(reading.reads_logical))
    options, told, logical = await place.look(columns)
    system = await place.look(partial(_system, part))
    if system.prj:
        prj = str(PurePath(name).with_suffix(".prj"))
        await place.discard(prj)
        await place.write_text(prj, system.prj)
    return Way(options, told, environment, logical, system.name, system.srid)


def _system(part: Part) -> _System:
    """What a .prj says. Blocking."""
    prj = part.files.get(".prj")
    if prj is None:
        return _System()
    with opened(prj) as file:
        text = file.read(MOST_PRJ_BYTES)
    if not (found := SYSTEM.match(text)):
        return _System()
    kind = found["kind"].upper()
    if kind in {b"GEODCRS", b"GEODETICCRS"} and GEOCENTRIC.search(text):
        kind = b"GEOCCS"
    name = f"{KINDS.get(kind, '')}{found['name'].decode('ascii')}" if found["name"] else ""
    if kind not in FORMER:
        return _System(name)
    if code := CODE.search(text[-CODE_BYTES:]):
        return _System(name, int(code["code"]))
    if NO_UNIT.search(text) and OTHER_UNIT.search(text):
        return _System(name)
    described = text[found.end("kind") :]
    if FORMER[kind] == "GEOGCS":
        described = ELLIPSOIDAL.sub(b"", described)
    return _System(name, prj=FORMER[kind] + described.decode("utf-8", "replace"))


def _how_to_read_columns(
    part: Part, *, reads_logical: bool
) -> tuple[tuple[str, ...], tuple[str, ...], tuple[int, ...]]:
    dbf, cpg = part.files.get(".dbf"), part.files.get(".cpg")
    if dbf is None:
        return (), (), ()
    columns, layer = dbf_columns(dbf), repr(shown(part.layer))
    impossible = "" if cpg is None else impossible_encoding(cpg)
    if impossible:
        encoding = guess_encoding(dbf, trusted=()) or UTF8
    else:
        encoding = guess_encoding(dbf) if cpg is None else declared_encoding(cpg)
    options = [f"ENCODING={encoding}"] if encoding else []
    options += [WHOLE_NUMBERS] if any(column.may_hold_long_integers for column in columns) else []
    told = []
    if impossible:
        told.append(
            f"The .cpg of {layer} names {shown(impossible)!r}, which no .dbf can have: its texts were read as "
            f"{encoding}. Correct the .cpg, and send the file again if letters are wrong."
        )
    elif cpg is None and encoding == NO_UNICODE:
        told.append(TAKEN_FOR_WINDOWS.format(what=layer, remedy="Send a .cpg with the name of its encoding"))
    elif looks_like_utf8(dbf, encoding):
        told.append(
            f"The texts of {layer} were read in the encoding that it declares, but look like UTF-8: "
            "letters such as ü became others. Send a .cpg with UTF-8 if letters are wrong."
        )
    if foreign := filled_foreign(dbf, columns):
        told.append(
            "Columns of types that shapefiles do not define, such as memos or binary numbers "
            f"({listed(quotes(foreign))}), have values in the result that mean nothing. Save them as texts, numbers or "
            "dates, and send the file again."
        )
    if deleted := deleted_records(dbf):
        told.append(f"Records of {layer} that are marked as deleted ({deleted:,}) were left out, with their shapes.")
    told += odd_values(dbf, columns, part.layer, reads_logical=reads_logical)
    told += cut_texts(dbf, columns, part.layer)
    return tuple(options), tuple(told), tuple(at for at, column in enumerate(columns) if column.kind == LOGICAL)
