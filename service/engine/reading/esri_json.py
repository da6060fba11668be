"""Reads Esri JSON, of which the driver takes attributes, systems and measures for others, or for none."""

from collections.abc import Iterator
from functools import partial
from pathlib import PurePath

import msgspec

from service.engine.jailed import esri_attributes
from service.engine.jailed.esri_attributes import FoundAttributes
from service.engine.reading.work_file import INTO_WORK_FILE, NO_SYSTEM, WORK_DRIVER, WorkFile, hold_or_read
from service.engine.workspace import WORK_FILE, Workplace, staged_names
from service.formats.esri_codes import esri_code, has_measures_alone
from service.formats.format import reading_of
from service.formats.into_utf8 import require_utf8
from service.formats.names import counted, values_of
from service.formats.source import Source

COPY = "attributes.json"
MEASURES_LEFT_OUT = (
    "Measures (M) were left out: Esri JSON is read with them only beside elevations, and not for points."
)


async def read_esri_json(place: Workplace, source: Source) -> WorkFile:
    """Read a document whose driver takes Esri's codes for EPSG's, and measures without elevations for elevations."""
    await place.look(partial(require_utf8, source.path, source.format.title))
    code = await place.look(partial(esri_code, source.path))
    is_measured = await place.look(partial(has_measures_alone, source.path))
    name = staged_names(source)[0]
    found = await place.call(esri_attributes.__name__, FoundAttributes, name, COPY)
    if await place.has(COPY):
        name = COPY
    names = {PurePath(COPY).stem: source.parts[0].layer}
    warnings = tuple(_warnings(found, is_measured=is_measured))
    reading = reading_of(source.format)
    if not code and not is_measured:
        read = await hold_or_read(place, reading, name)
        return msgspec.structs.replace(read, warnings=(*warnings, *read.warnings), names=names)
    system = f"ESRI:{code}" if code else ""
    without_measures = ("-dim", "XY") if is_measured else ()

    async def read_in(*system: str) -> str:
        arguments = [*INTO_WORK_FILE, *system, *without_measures, WORK_FILE, name]
        return await place.ogr2ogr(arguments, (*reading.drivers, WORK_DRIVER), tolerated=NO_SYSTEM)

    if not NO_SYSTEM.search(await read_in(*(("-a_srs", system) if system else ()))):
        return WorkFile(warnings, names)
    await place.discard(WORK_FILE)
    await read_in()
    return WorkFile(warnings, names, system=system)


def _warnings(found: FoundAttributes, *, is_measured: bool) -> Iterator[str]:
    """What is lost when the file is read; `is_measured`: its geometries have measures and no elevations."""
    if is_measured or found.measured_points:
        yield MEASURES_LEFT_OUT
    if found.mistyped:
        yield (
            "Columns with values of other types than the file declares, or integers beyond 53 bits "
            f"({values_of(found.mistyped)}), became columns of texts with all their values."
        )
    if found.cut_at_nul:
        yield f"Texts with a NUL character ({values_of(found.cut_at_nul)}) were cut off there."
    if found.own_systems:
        yield (
            f"{counted(found.own_systems, 'feature')} with another coordinate system (spatialReference) in the "
            "geometry than that of the file: it is not read, and the coordinates are read as those of the file's "
            f"system. Split the file by system. The first is feature {found.first_own_system:,}."
        )
