"""From an upload into the work file: a GeoPackage, whatever the input was.

Only the input's own driver and GeoPackage are registered while the untrusted file is read.
"""

from collections.abc import Awaitable, Callable, Mapping
from types import MappingProxyType

from service.engine.diagnostics import find_renames
from service.engine.gpkg import FID, GEOMETRY
from service.engine.workplace import WORK_FILE, Workplace, staged_names
from service.formats.detect import Source
from service.formats.format import Reader, Reading, reading_of

WORK_DRIVER = "GPKG"
TEXT_FOR_LISTS = "IntegerList=String,Integer64List=String,RealList=String,StringList=String"
INTO_WORK_FILE = (
    "-f",
    WORK_DRIVER,
    "-unsetFid",
    "-forceNullable",
    "-unsetDefault",
    "-gt",
    "unlimited",
    "-lco",
    "SPATIAL_INDEX=NO",
    "-lco",
    f"FID={FID}",
    "-lco",
    f"GEOMETRY_NAME={GEOMETRY}",
    "-mapFieldType",
    TEXT_FOR_LISTS,
)
ADD = ("-update",)


async def read_into_work_file(place: Workplace, source: Source) -> tuple[str, ...]:
    """Fill the work file with what `source` holds; returns warnings.

    Raises:
        Rejection: the file cannot be read.
    """
    messages = await _READERS[reading_of(source.format).reader](place, source)
    return tuple(find_renames(messages))


def open_options(reading: Reading) -> list[str]:
    """The driver's open options as arguments."""
    return [argument for option in reading.options for argument in ("-oo", option)]


async def _read_document(place: Workplace, source: Source) -> str:
    """One file, with the layers that its driver shows."""
    reading = reading_of(source.format)
    arguments = [*INTO_WORK_FILE, *open_options(reading), WORK_FILE, *staged_names(source)]
    return await place.ogr2ogr(arguments, (*reading.drivers, WORK_DRIVER), reading.environment)


async def _read_parts(place: Workplace, source: Source) -> str:
    """Several files, each a layer of its own."""
    reading = reading_of(source.format)
    messages = []
    for number, (name, part) in enumerate(zip(staged_names(source), source.parts, strict=True)):
        arguments = [*INTO_WORK_FILE, *(ADD if number else ()), *open_options(reading), WORK_FILE, name]
        messages.append(
            await place.ogr2ogr([*arguments, "-nln", part.layer], (*reading.drivers, WORK_DRIVER), reading.environment)
        )
    return "\n".join(messages)


_READERS: Mapping[Reader, Callable[[Workplace, Source], Awaitable[str]]] = MappingProxyType(
    {
        Reader.OGR: _read_document,
        Reader.LINES: _read_document,
        Reader.SHAPEFILE: _read_parts,
    }
)
