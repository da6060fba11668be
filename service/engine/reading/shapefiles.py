"""Decides how the .dbf of a shapefile is read, and tells what its driver makes of it without a word."""

from functools import partial

from service.blocking import run_blocking
from service.engine.reading.work_file import TAKEN_FOR_WINDOWS
from service.engine.workspace import Workplace
from service.formats.cpg import declared_encoding
from service.formats.dbf_columns import dbf_columns, filled_foreign
from service.formats.dbf_encoding import NO_UNICODE, guess_encoding, looks_like_utf8
from service.formats.detect import Part
from service.formats.names import listed, quotes, shown

WHOLE_NUMBERS = "ADJUST_TYPE=YES"
"""Integers of more than 18 digits become such of 64 bits where they fit; otherwise they lose digits."""


async def how_to_read(place: Workplace, part: Part) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The options with which to open a shapefile, and warnings about it; neither for other files."""
    return await run_blocking(partial(_how_to_read, part), inline=place.is_small)


def _how_to_read(part: Part) -> tuple[tuple[str, ...], tuple[str, ...]]:
    dbf, cpg = part.files.get(".dbf"), part.files.get(".cpg")
    if dbf is None:
        return (), ()
    columns, layer = dbf_columns(dbf), repr(shown(part.layer))
    encoding = guess_encoding(dbf) if cpg is None else declared_encoding(cpg)
    options = [f"ENCODING={encoding}"] if encoding else []
    options += [WHOLE_NUMBERS] if any(column.may_hold_long_integers for column in columns) else []
    told = []
    if cpg is None and encoding == NO_UNICODE:
        told.append(TAKEN_FOR_WINDOWS.format(what=layer, remedy="Send a .cpg with the name of its encoding"))
    elif looks_like_utf8(dbf, encoding):
        told.append(
            f"The encoding that {layer} declares, as which its texts were read, is not UTF-8, but they look like it: "
            "letters such as ü became others. Send a .cpg with UTF-8 if letters are wrong."
        )
    if foreign := filled_foreign(dbf, columns):
        told.append(
            f"The types of {listed(quotes(foreign))} are none of shapefiles, such as memos or binary numbers; their "
            "values in the result mean nothing. Save them as texts, numbers or dates, and send the file again."
        )
    return tuple(options), tuple(told)
