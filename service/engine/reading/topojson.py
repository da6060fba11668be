"""Reads TopoJSON by way of GeoJSON, which a program in the sandbox makes of it."""

from collections.abc import Iterator

from service.engine.diagnostics import find_changes
from service.engine.jailed import topojson
from service.engine.jailed.topojson import DOCUMENT, FoundDocuments
from service.engine.reading.work_file import LISTED, WorkFile, add_table, told_of
from service.engine.session_loading import Opening, hold
from service.engine.workspace import Workplace, staged_names
from service.errors import Rejection
from service.formats.facts import FormerType
from service.formats.format import reading_of
from service.formats.names import listed, shown
from service.formats.source import Source
from service.geojson.warnings import reading_warnings

_LEFT_OUT = {
    "unread": "Geometries ({count}) were left out, because they are not valid TopoJSON: they have no known type, or no "
    "coordinates or arcs of this type. Their features were kept.",
    "inner": "Properties or ids of geometries within collections, or of whole objects ({count}), were left out. Give "
    "them to features to keep them.",
    "ids": "Ids ({count}) were left out, because other ids of the features were kept: that of their properties, or the "
    "name of the object.",
    "nans": "Numbers that are NaN ({count}) became missing.",
}


async def read_topojson(place: Workplace, source: Source) -> WorkFile:
    """Make GeoJSON of each object, and read that."""
    found = await place.call(topojson.__name__, FoundDocuments, staged_names(source)[0])
    if not found.layers:
        raise Rejection("The TopoJSON holds no objects, so there is nothing to convert.")
    reading = reading_of(source.format)
    openings = [
        Opening(DOCUMENT.format(number), reading.text_options if scan.dates_are_texts else reading.options)
        for number, (_, scan) in enumerate(found.layers)
    ]
    facts = await hold(place, reading, openings)
    messages = []
    for number, opening in enumerate(openings if facts is None else ()):
        messages.append((await add_table(place, reading, number, opening))[0])
    names = {f"t{number}": name for number, (name, _) in enumerate(found.layers)}
    system = found.layers[0][1]  # all documents have that of the topology
    is_known = found.has_system and system.crs_epsg is not None
    told = (
        *_warnings(found, rounds=place.host.is_of(reading.rounds_long_negatives)),
        *find_changes("\n".join(messages)),
    )
    nested = {field.name: FormerType.LIST for _, scan in found.layers for field in scan.fields if field.nested}
    return WorkFile(
        told, names, facts, system=system.crs_name, was=nested, assumes_system=not is_known, tells_parts=True
    )


def _warnings(found: FoundDocuments, *, rounds: bool) -> Iterator[str]:
    """What the documents do not hold, and what is lost when they are read; `rounds` as of `reading_warnings`."""
    yield from told_of(found, _LEFT_OUT)
    if found.foreign:
        names = listed([shown(name) for name in found.foreign], LISTED)
        yield f"Members that are not part of TopoJSON are not kept: {names}. Put them into properties to keep them."
    yield from dict.fromkeys(told for _, scan in found.layers for told in reading_warnings(scan, rounds=rounds))
