"""Finds the coordinate system of each feature of GML, and writes it to where the driver looks. Runs in the sandbox.

A geometry may name its system itself, in its parts, or
nowhere if the collection or the envelope around all features does. The driver knows the first way; it prefers an
envelope's system to what features say, and newer releases also prefer its dimension. Before GDAL 3.12.1, it takes lists
that do not say their dimension for ones of two, also in a system of three.
"""

import re
from collections import Counter, defaultdict
from collections.abc import Collection
from pathlib import Path
from typing import NamedTuple
from xml.parsers import expat

CODE = re.compile(
    r"(?:urn:(?:x-)?ogc:def:crs:EPSG:[\d.]*:|urn:EPSG:geographicCRS:|EPSG:{1,2}|https?://(?:www\.)?opengis\.net/def/crs/EPSG/[\d.]+/"
    r"|https?://www\.opengis\.net/gml/srs/epsg\.xml#)(\d{1,9})",
    re.IGNORECASE | re.ASCII,
)
_ADDRESS = r"https?://(?:www\.)?opengis\.net/def/crs"
PAIR = re.compile(
    r"urn:(?:x-)?ogc:def:crs,crs:EPSG:[\d.]*:(\d{1,9}),crs:EPSG:[\d.]*:(\d{1,9})|EPSG:(\d{1,9})\+(\d{1,9})"
    rf"|{_ADDRESS}-compound\?1={_ADDRESS}/EPSG/[\d.]+/(\d{{1,9}})&2={_ADDRESS}/EPSG/[\d.]+/(\d{{1,9}})",
    re.IGNORECASE | re.ASCII,
)
"""Names of a system of positions and one of heights."""
HEIGHTS = {"12": 7699, "85": 5784, "92": 5783, "2016": 7837}
_OF_SURVEYS = (
    rf"urn:adv:crs:(?:ETRS89_UTM(?P<zone>3[1-3])(?:\*DE_DHHN(?P<heights>{'|'.join(HEIGHTS)})_NHN?)?"
    r"|DE_DHDN_3GK(?P<strip>[2-5]))"
)
"""What the surveys of Germany call their systems: eastings are first in all of them."""
OF_SURVEYS = re.compile(_OF_SURVEYS)
UNUSUAL = re.compile(
    r"urn:(?:x-)?ogc:def:crs,|urn:EPSG:|https?://[\w.]+/def/crs-compound\?|https:.*#|(?-i:" + _OF_SURVEYS + r"\Z)",
    re.IGNORECASE,
)
"""How names begin that some releases of the driver do not know, or take for those of axes in another order."""
CRS84 = re.compile(r"(?:urn:ogc:def:crs:OGC:[\d.]*:|https?://(?:www\.)?opengis\.net/def/crs/OGC/[\d.]+/)CRS84")
MEMBERS = re.compile(r"\w*[mM]embers?")
COLLECTION = "FeatureCollection"
GEOMETRIES = frozenset(
    {f"{kind}{name}" for kind in ("", "Multi") for name in ("Point", "LineString", "Polygon", "Curve", "Surface")}
    | {f"{kind}{name}" for kind in ("Composite", "Orientable") for name in ("Curve", "Surface")}
    | {"Solid", "CompositeSolid", "MultiSolid", "MultiGeometry", "GeometricComplex", "PolyhedralSurface"}
    | {"TriangulatedSurface", "Tin", "LinearRing", "Ring"}
)
COORDINATES = frozenset({"pos", "posList", "coordinates", "coord"})
BOUNDS = "boundedBy"
TAG_NAME = re.compile(rb"<[^\s/>]++")
NAME = re.compile(rb"\bsrsName\s*=\s*(?:\"[^\"]*\"|'[^']*')")
NAMES = re.compile(rb"\s+srs(?:Name|Dimension)\s*=\s*(?:\"[^\"]*\"|'[^']*')")
POSITIONS = re.compile(rb"posList\b[^<>]*>([^<>]*)<")
ESCAPED = str.maketrans({"&": "&amp;", "<": "&lt;", '"': "&quot;", "\t": "&#9;", "\n": "&#10;", "\r": "&#13;"})
"""The standard library's own way imports its client for HTTP, which all forks of the server for Python would carry."""
HIGH = 3
NO_SYSTEM = ""
WGS84 = "EPSG:4326"
MOST_SYSTEMS = 100
"""How many systems of one type of features are told apart."""
MOST_TYPES = 1000
LONGEST_NAME = 1000


class Names(NamedTuple):
    """What an element says of the coordinates in it, or the elements around it."""

    system: str = NO_SYSTEM
    dimension: str = ""


class _Reader:
    """Follows the elements of one document."""

    def __init__(self, content: bytes, high: Collection[str]) -> None:
        self._high = high
        self.found: defaultdict[str, dict[str, list[int]]] = defaultdict(dict)
        """By type of features and system: how many features have it, and the number of the first."""
        self.changes: dict[int, tuple[int, bytes]] = {}
        """By position: where what has to be replaced ends, and by what."""
        self._content = content
        self._parser = expat.ParserCreate()
        self._parser.StartElementHandler = self._start
        self._parser.EndElementHandler = self._end
        self._open: list[str] = []
        self._around = Names()
        self._collections: list[tuple[int, Names]] = []
        """At which depths collections begin that are open, and what is said around each."""
        self._feature = self._bounds = 0
        """At which depth the feature and the bounds begin that are open, 0 for none."""
        self._geometry: list[Names] = []
        """What the open elements of a geometry say, from the outermost on."""
        self._lists: set[int] = set()
        """Where the attributes of geometries end whose lists may be of three dimensions, as envelope or system say."""
        self._is_flat = False
        """Whether some geometries show that this does not hold for all."""
        self._begin = 0
        self._used: set[Names] = set()
        self._type = ""
        self._numbers: Counter[str] = Counter()
        self._systems: set[str] = set()

    def read(self) -> None:
        self._parser.Parse(self._content, True)

    def _start(self, name: str, attributes: dict[str, str]) -> None:
        local = name.rpartition(":")[2]
        parent = self._open[-1] if self._open else ""
        self._open.append(local)
        written = attributes.get("srsName", NO_SYSTEM).strip()
        own = Names(usual(written), attributes.get("srsDimension", ""))
        if self._geometry:
            self._inside(local, own)
        elif not self._feature and local == COLLECTION:
            self._collections.append((len(self._open), self._around))
            self._of_all(own)
        elif not self._feature and MEMBERS.fullmatch(parent):
            self._feature, self._type, self._systems = len(self._open), local[:LONGEST_NAME], set()
        elif not self._feature:
            self._of_all(own)
        elif self._bounds or local == BOUNDS:
            self._bounds = self._bounds or len(self._open)
        elif local in GEOMETRIES:
            self._begin = self._parser.CurrentByteIndex
            self._used = set()
            self._inside(local, own)
        if self._geometry and _spelled(own.system) != written:
            self._respell(own.system)

    def _respell(self, system: str) -> None:
        """Have the element of a geometry that has just begun name its system so."""
        at = self._parser.CurrentByteIndex
        if found := NAME.search(self._content, at, self._content.index(b">", at)):
            self.changes[found.start()] = (found.end(), _naming(system))

    def _of_all(self, own: Names) -> None:
        """Note what the collection or its envelope says of all features; an envelope ceases to say it."""
        self._around = Names(own.system or self._around.system, own.dimension or self._around.dimension)
        if any(own):
            at = self._parser.CurrentByteIndex
            end = self._content.index(b">", at)
            self.changes[at] = (end, NAMES.sub(b"", self._content[at:end]))

    def _inside(self, local: str, own: Names) -> None:
        outer = self._geometry[-1] if self._geometry else Names()
        self._geometry.append(Names(own.system or outer.system, own.dimension or outer.dimension))
        if local in COORDINATES:
            self._used.add(self._geometry[-1])

    def _end(self, _: str) -> None:
        depth = len(self._open)
        self._open.pop()
        if self._geometry:
            outermost = self._geometry.pop()
            if not self._geometry:
                self._end_geometry(outermost)
        elif depth == self._bounds:
            self._bounds = 0
        elif depth == self._feature:
            self._feature = 0
            self._numbers[self._type] += 1
            self._count()
        elif self._collections and depth == self._collections[-1][0]:
            self._around = self._collections.pop()[1]

    def _end_geometry(self, outermost: Names) -> None:
        """Note the systems of a geometry, and have it name the one of all of its parts.

        Of several geometries of a feature, the driver reads the last.
        """
        systems = {names.system or self._around.system for names in self._used}
        systems |= {outermost.system} if outermost.system else set()
        self._systems = {system_of(name) for name in systems}
        is_high = bool(systems) and self._systems.issubset(self._high)
        found = TAG_NAME.match(self._content, self._begin)
        if found is None:
            return
        if not outermost.system and len(systems) == 1 and systems != {NO_SYSTEM}:
            self.changes[found.end()] = (found.end(), b" " + _naming(next(iter(systems))))
        if any(names.dimension for names in self._used):
            self._is_flat = True
        elif self._around.dimension == str(HIGH) or is_high:
            texts = POSITIONS.findall(self._content, self._begin, self._parser.CurrentByteIndex)
            self._is_flat |= any(len(text.split()) % HIGH for text in texts)
            self._lists |= {found.end()} if texts else set()

    def _count(self) -> None:
        if len(self.found) >= MOST_TYPES and self._type not in self.found:
            return
        for system in sorted(self._systems):
            systems = self.found[self._type]
            if system in systems or len(systems) < MOST_SYSTEMS:
                systems.setdefault(system, [0, self._numbers[self._type]])[0] += 1

    def named(self) -> bytes:
        """The document with its changes, unless it has no features, of which the driver may know others."""
        if not self._numbers:
            return self._content
        for position in () if self._is_flat else self._lists:
            _, text = self.changes.get(position, (position, b""))
            self.changes[position] = (position, text + b' srsDimension="%d"' % HIGH)
        at, pieces = 0, []
        for start, (end, text) in sorted(self.changes.items()):
            pieces += [self._content[at:start], text]
            at = end
        return b"".join([*pieces, self._content[at:]])


def _naming(system: str) -> bytes:
    return f'srsName="{_spelled(system).translate(ESCAPED)}"'.encode("ascii", "xmlcharrefreplace")


def _spelled(name: str) -> str:
    """`name` as the driver is told it: of two systems that of positions, of which it knows the order of axes."""
    pair = PAIR.fullmatch(name)
    if pair is None or not UNUSUAL.match(name):
        return name
    return f"urn:ogc:def:crs:EPSG::{next(number for number in pair.groups() if number)}"


def usual(name: str) -> str:
    """`name` as all releases of the driver know it, with axes in the same order."""
    name = _by_code(name)
    code = CODE.fullmatch(name)
    if not UNUSUAL.match(name) or not (code or PAIR.fullmatch(name)):
        return name
    if code is None:
        return system_of(name)
    return f"EPSG:{code[1]}" if "#" in name else f"urn:ogc:def:crs:EPSG::{code[1]}"


def _by_code(name: str) -> str:
    """`name`, or the codes of EPSG for what a survey calls so."""
    found = OF_SURVEYS.fullmatch(name)
    if found is None:
        return name
    if found["strip"]:
        return f"EPSG:{31464 + int(found['strip'])}"
    return f"EPSG:258{found['zone']}" + (f"+{HEIGHTS[found['heights']]}" if found["heights"] else "")


def system_of(name: str) -> str:
    """The system that `name` stands for: `EPSG:n`, the URN of two, or `name` if it is no code of EPSG's."""
    name = _by_code(name)
    code, pair = CODE.fullmatch(name), PAIR.fullmatch(name)
    if code is not None:
        return f"EPSG:{int(code[1])}"
    if pair is not None:
        positions, heights = (int(number) for number in pair.groups() if number)
        return f"urn:ogc:def:crs,crs:EPSG::{positions},crs:EPSG::{heights}"
    return WGS84 if CRS84.fullmatch(name) else name[:LONGEST_NAME]


def main(gml: str, named_gml: str, *high: str) -> dict[str, dict[str, list[int]]]:
    """Write `gml` to `named_gml` with the system of each geometry, and return which there are.

    Positions in `high` systems, as `system_of` calls them, have heights.
    """
    content = Path(gml).read_bytes()
    reader = _Reader(content, high)
    try:
        reader.read()
        named = reader.named()
    except expat.ExpatError:
        named = content  # the driver tells what is wrong
    Path(named_gml).write_bytes(named)
    return reader.found
