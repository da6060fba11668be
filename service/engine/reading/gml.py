"""Reads GML, in which each geometry may name its coordinate system, and of which the driver gives a layer one."""

import re
from bisect import bisect
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Annotated

import msgspec
from msgspec import Meta

from service.engine.diagnostics import MAX_FOUND, told_of_renamed
from service.engine.jailed import gml_systems
from service.engine.jailed.gml_systems import CODE, HIGH, MOST_SYSTEMS, MOST_TYPES, NO_SYSTEM, PAIR, UNUSUAL, system_of
from service.engine.reading.files import read_single, reading_with_options
from service.engine.reading.work_file import WorkFile, read_layers
from service.engine.session import Session
from service.engine.session_loading import in_open_run
from service.engine.workspace import INPUT, Workplace, staged_names
from service.errors import Rejection
from service.formats.crs import CrsCatalogue, catalogue_of
from service.formats.facts import Count, Layer, Name
from service.formats.format import Reader, Reading, reading_of
from service.formats.gml_radii import IN_METERS
from service.formats.left_out import has_match, pieces
from service.formats.names import counted, listed, shown
from service.formats.source import Part, Source
from service.formats.xml_columns import GML_ENDS, GML_NAMES, require_few_columns

SRS_NAME, SRS_DIMENSION = b"srsName", b"srsDimension"
NAME = re.compile(SRS_NAME + rb"(?<!\wsrsName)\s*=\s*[\"']([^\"'<>]*)[\"']")
_INNER = rb"(?:\w{1,20}:)?(?:\w{0,12}[mM]embers?|(?:ex|in)terior|(?:outer|inner)BoundaryIs|patches|segments|base\w+)\b"
_NAMELESS = (
    rb"<(?:\w{1,20}+:)?+(?:Multi)?+(?:Point|LineString|Polygon|Curve|Surface|Solid|Geometry)(?=[\s>])"
    rb"(?![^<>]*?\bsrsName\b)"
)
NAMELESS = re.compile(_NAMELESS)
"""A geometry that does not name its system itself; this is found in a third of the time of the next one."""
UNNAMED = re.compile(rb"<(?=[\w:.-]++(?:\s[^<>]*+)?>\s*+" + _NAMELESS + rb"[^<>]*+>)(?!" + _INNER + rb")")
"""One in an element that is no part of another one."""
NAMED_INSIDE = re.compile(rb"<(?![\w:.-]*?Envelope\s)[\w:.-]++\s[^<>]*?\bsrsName\b")
MEMBER = re.compile(rb"<[\w:.-]*?[mM]embers?\b")
ENVELOPE = re.compile(rb"<[\w:.-]*?Envelope\s[^<>]*?\bsrsName\b")
UNKNOWN_TO_DRIVER = b"https:"
"""Names that begin with this are known to us, but not to all releases of the driver."""
HIGH_AROUND = re.compile(rb"<[\w:.-]*?(?:Envelope|Box|Collection)\s[^<>]*?\bsrsDimension\s*=\s*[\"']%d[\"']" % HIGH)
LISTS = re.compile(rb"<(?:[\w.-]++:)?+posList(?=[\s>])(?![^<>]*?\bsrsDimension\b)")
"""Lists of positions that do not say how many dimensions they have; of other coordinates, the driver sees it."""
NAMED_FILE = "named.gml"
SHORTER_FILE, ITS_SCHEMA, SCHEMA = "shorter.gml", "shorter.gfs", f"{INPUT}0.gfs"
OF_ONE_FILE = re.compile(r"<(Width|FeatureCount|Extent[XY]M(?:in|ax))>[^<]*</\1>")
"""What a schema says of the values in a file, in place of the names and types of columns."""
COORDINATES = re.compile(rb"<(?:[\w.-]++:)?+coordinates[\s>]")
"""Coordinates that themselves tell whether there are elevations, in texts that are alike otherwise."""
FEW = 2
ADDED = "_"
"""What the driver adds to the name of a column that another one has, ignoring case."""
RADII_IN_METERS = (
    "Radii of circles and arcs in meters were read as numbers in the unit of the coordinates, which is not the meter "
    "in {}. Write them in that unit."
)
LOCAL_NAMES = re.compile(rb"<(?:[\w.-]++:)?+([^\s<>/:!?]++)")
AND = " and "
COMPOUND = re.compile(r"/def/crs-compound\b|:crs,crs:|EPSG:\d+\+")
"""What names of two systems have, one of positions and one of heights."""
Found = Annotated[
    dict[Name, Annotated[dict[Name, tuple[Count, Count]], Meta(max_length=MOST_SYSTEMS)]], Meta(max_length=MOST_TYPES)
]


async def read_gml(place: Workplace, source: Source) -> WorkFile:
    """Read the file, each geometry in the system that it, its parts, the collection or the envelope around all names.

    Raises:
        Rejection: the features of a layer are in several systems, or the file has too many columns.
    """
    few = partial(require_few_columns, source.parts[0].text, GML_ENDS, GML_NAMES)
    await place.look(few)
    names = await place.look(partial(_names, source.parts[0].text))
    high = sorted(_high(names, catalogue_of(place.host.proj_database)))
    if not await place.look(partial(_misleads, source.parts[0].text, names, is_high=bool(high))):
        await _describe(place, reading_with_options(source), source.parts[0])
        return msgspec.structs.replace(await read_single(place, source), system=_shown(names))
    file = staged_names(source)[0]
    found = await place.call(gml_systems.__name__, Found, file, NAMED_FILE, *high)
    warnings = tuple(told for layer, systems in found.items() for told in _require_one_system(layer, systems))
    await place.discard(file)
    await place.rename(NAMED_FILE, file)
    (only, *others) = {system for systems in found.values() for system in systems} or {NO_SYSTEM}
    pair = PAIR.fullmatch(only)
    if (pair or CODE.fullmatch(only)) and not others:
        system = f"EPSG:{pair[1]}" if pair else only
        layers = await read_layers(place, reading_with_options(source), file, system=system)
        return msgspec.structs.replace(layers, system=only)
    read = await read_single(place, source)
    named = AND.join(sorted({only, *others} - {NO_SYSTEM})) + " or none" * bool(warnings)
    return msgspec.structs.replace(read, system=named, warnings=(*read.warnings, *warnings))


def heights_warnings(named: str, layers: Iterable[Layer], catalogue: CrsCatalogue) -> Iterator[str]:
    """What is told of elevations if the systems that a file names, `named`, say what these are and were not read."""
    if all(not layer.has_z or catalogue.is_compound(layer.crs.epsg or 0) for layer in layers):
        return
    for name in named.split(AND):
        code = CODE.fullmatch(name)
        if COMPOUND.search(name) or (code and catalogue.is_compound(int(code[1]))):
            yield (
                f"Elevations are in a vertical coordinate system that {shown(name)!r} names beside that of positions. "
                "It was not read, so elevations were kept unchanged."
            )


async def radii_warnings(
    place: Workplace, source: Source, layers: Iterable[Layer], catalogue: CrsCatalogue
) -> list[str]:
    """What is told of radii in meters beside coordinates in another unit: the driver takes them for numbers in that.

    Raises:
        Rejection: to look for them takes longer than a run may.
    """
    others = [layer.name for layer in layers if catalogue.has_other_lengths(layer.crs.epsg or 0)]
    if reading_of(source.format).reader is not Reader.GML or not others:
        return []
    found = await place.look(partial(has_match, source.parts[0].text, IN_METERS, b"radius"))
    return [RADII_IN_METERS.format(listed([repr(shown(name)) for name in others]))] * found


async def renamed_warnings(place: Workplace, source: Source, layers: Iterable[Layer]) -> list[str]:
    """What is told of columns of GML that the driver renamed, by a `_` behind the name, because others differ in case.

    Raises:
        Rejection: to look for their names takes longer than a run may.
    """
    names = dict.fromkeys(field.name for layer in layers for field in layer.fields if field.name.endswith(ADDED))
    if reading_of(source.format).reader is not Reader.GML or not names:
        return []
    bare = {name.rstrip(ADDED) for name in names}
    elements = await place.look(partial(_elements, source.parts[0].text, bare))
    found = ((_former(name, elements), name) for name in names)
    return list(islice((told_of_renamed(old, new) for old, new in found if old != new), MAX_FOUND))


def _elements(path: Path, bare: Collection[str]) -> dict[str, list[int]]:
    """How long the names of elements of the file are that consist of a `bare` name and any number of `_`. Blocking.

    Their lengths are in ascending order: a name of thousands of `_` begins with thousands of others, too many to list.
    """
    names = {name.encode(): name for name in bare}
    found: dict[str, set[int]] = {name: set() for name in bare}
    for text in pieces(path):
        for element in LOCAL_NAMES.findall(text):
            name = names.get(element.rstrip(ADDED.encode()))
            if name is not None:
                found[name].add(len(name) + len(element) - len(name.encode()))
    return {name: sorted(lengths) for name, lengths in found.items()}


def _former(name: str, elements: Mapping[str, Sequence[int]]) -> str:
    """The longest name of an element that a column's `name` begins with and differs from in `_` alone; else itself."""
    lengths = elements[name.rstrip(ADDED)]
    place = bisect(lengths, len(name))
    return name[: lengths[place - 1]] if place else name


async def _describe(place: Workplace, reading: Reading, part: Part) -> None:
    """Put the schema of the file beside it, where the driver looks before it reads the whole file for that.

    It is what the driver finds in a shorter one with all kinds of tags, if there is one of which it reads everything.
    """
    shorter = part.shorter
    if shorter is None or await place.look(partial(has_match, shorter, COORDINATES)):
        return
    await place.bring(shorter, SHORTER_FILE)

    async def describe(session: Session) -> bool | None:
        opened = await session.open(SHORTER_FILE, reading.drivers, ("WRITE_GFS=YES",))
        return (opened.ok and not opened.messages) or None

    if await in_open_run(place, reading, describe) and await place.has(ITS_SCHEMA):
        await place.write_text(SCHEMA, OF_ONE_FILE.sub("", await place.read_text(ITS_SCHEMA)))


def _names(path: Path) -> set[bytes]:
    """A few of the names of systems in the file. Blocking."""
    names: set[bytes] = set()
    for text in pieces(path):
        if not _has_only(text, names):
            names.update(NAME.findall(text))
        if len(names) >= FEW:
            break
    return names


def _has_only(text: bytes, names: set[bytes]) -> bool:
    """Whether it is certain, from counts that take little time, that no others than `names` are in `text`."""
    known = sum(text.count(b'%b="%b"' % (SRS_NAME, name)) for name in names)
    return known == text.count(SRS_NAME)


def _high(names: Iterable[bytes], catalogue: CrsCatalogue) -> set[str]:
    """Those of the systems, as `gml_systems.system_of` calls them, whose positions have heights."""
    systems = {system_of(name.decode("utf-8", "replace").strip()) for name in names}
    codes = {system: CODE.fullmatch(system) for system in systems}
    return {
        system
        for system, code in codes.items()
        if PAIR.fullmatch(system) or (code and catalogue.has_heights(int(code[1])))
    }


def _misleads(path: Path, names: set[bytes], *, is_high: bool) -> bool:
    """Whether the driver may take coordinates for those of another system, or three axes for two. Blocking.

    `is_high`: one of `names` is that of a system whose positions have heights.
    """
    if len(names) >= FEW or any(UNUSUAL.match(name.decode("utf-8", "replace").strip()) for name in names):
        return True
    if names and _has_unnamed(path) and not _is_around_all(path, *names):
        return True
    return (is_high or has_match(path, HIGH_AROUND, SRS_DIMENSION)) and has_match(path, LISTS)


def _has_unnamed(path: Path) -> bool:
    return any(NAMELESS.search(text) and UNNAMED.search(text) for text in pieces(path))


def _is_around_all(path: Path, name: bytes) -> bool:
    """Whether only the envelope around all features names a system, in which the driver then reads them. Blocking."""
    if name.startswith(UNKNOWN_TO_DRIVER) or has_match(path, NAMED_INSIDE, SRS_NAME):
        return False
    start = next(pieces(path))
    member = MEMBER.search(start)
    return ENVELOPE.search(start, 0, member.start() if member else len(start)) is not None


def _shown(names: set[bytes]) -> str:
    return names.pop().decode("utf-8", "replace") if names else ""


def _require_one_system(layer: str, systems: Mapping[str, tuple[int, int]]) -> Iterator[str]:
    """A warning if some features of a layer name no system, which are read only if sourceEpsg was sent.

    Raises:
        Rejection: they name several.
    """
    named = systems.keys() - {NO_SYSTEM}
    if named and len(systems) == FEW > len(named):
        count, first = systems[NO_SYSTEM]
        yield (
            f"{counted(count, 'feature')} of {shown(layer)!r}, first feature {first:,}, named no coordinate system, "
            f"the others {shown(*named)}; sourceEpsg was used for all of them."
        )
    if len(named) < FEW:
        return
    told = listed(
        [
            f"{shown(system) or 'no system'} ({counted(count, 'feature')}, first feature {first:,})"
            for system, (count, first) in systems.items()
        ]
    )
    raise Rejection(
        f"The features of {shown(layer)!r} are in several coordinate systems: {told}. A layer has one. Put the "
        "features of each system into a file of its own, and convert these."
    )
