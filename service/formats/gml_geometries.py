"""Finds geometries of GML features that the driver leaves out, in the text: of those of a feature, it reads the last.

They may be anywhere in a feature, such as the volumes of an airspace. What a feature has in boundedBy beside its
extent, as the walls of a building in CityGML, the driver does not read at all.
"""

import re
from collections.abc import Generator

from service.formats.left_out import PIECE

GEOMETRIES = frozenset(
    {
        *("Point", "LineString", "Curve", "Polygon", "PolygonPatch", "Surface", "Triangle", "Tin", "Solid"),
        *("MultiPoint", "MultiLineString", "MultiCurve", "MultiPolygon", "MultiSurface", "MultiGeometry"),
        "GeometryCollection",
        *("CompositeCurve", "CompositeSurface", "PolyhedralSurface", "TriangulatedSurface", "TopoCurve", "TopoSurface"),
        *("SimplePolygon", "SimpleRectangle", "SimpleTriangle", "SimpleMultiPoint", "BoundingBox"),
    }
)
"""The elements that the driver takes for geometries, whatever their prefix."""
OF_AIXM = frozenset({"ElevatedPoint", "ElevatedSurface"})
"""Those that it takes for geometries in AIXM."""
COLLECTION = b"FeatureCollection"
LONGEST_TAG = 16 << 10
MOST_PATTERNS = 64
"""For how many elements there are expressions of their own; to make one takes as long as to read a thousand tags."""

_NAME = rb"[\w:.-]++"
_PREFIX = rb"(?:[\w.-]++:)?+"
_ENDS = rb"(?=[\s/>])"
_PLACES = rb"(?:" + "|".join(sorted(GEOMETRIES | OF_AIXM)).encode() + rb")"
_PLACE = rb"(?P<place>" + _PREFIX + rb"(?=[A-Z])" + _PLACES + rb")"
_BOUNDS = rb"(?P<bounds>" + _PREFIX + rb"boundedBy)"
_SELF = rb"(?P<end>/)?+(?P<name>%b)"
_COMMENT = rb"(?P<comment>!--(?:[^-]*+(?:-(?!->)[^-]*+)*+-->[^<]*+<!--)*+)"
"""The start of a comment, or of the last one of those that follow one another without a tag between them."""
_REST = rb")" + _ENDS + rb"[^<>]*+(?P<empty>(?<=/))?+>|" + _COMMENT + rb"|!\[CDATA\[)"
_TAG = rb"<(?=[\w:./!-])"
"""Where a tag may begin: what cannot be one, such as a crafted text of `<`, is passed in half of the time."""
IN_PLACE = _TAG + rb"(?:(?:" + _SELF + _REST
IN_BOUNDS = _TAG + rb"(?:(?:" + _PLACE + rb"|" + _SELF + _REST
IN_FEATURE = _TAG + rb"(?:(?:" + _PLACE + rb"|" + _BOUNDS + rb"|" + _SELF + _REST
"""What is looked for in an element: its end, its kind within itself, and what has a meaning there."""
MEMBER = re.compile(IN_PLACE % (_PREFIX + rb"\w*+(?<=[mM]ember|embers)"))
TAG = re.compile(IN_PLACE % _NAME)
EXTENT = re.compile(rb"</|<" + _PREFIX + rb"(?:Envelope|EnvelopeWithTimePeriod|Box|[nN]ull)" + _ENDS)
"""What begins, or ends, what most features have in boundedBy."""
NOTED = re.compile(
    rb"<(?!/)(?:!|(?P<place>"
    + _PREFIX
    + rb"(?=[A-Zb])(?:"
    + _PLACES
    + _ENDS
    + rb"|(?P<bounds>boundedBy)"
    + _ENDS
    + rb"[^<>]*+>(?!\s*+(?:"
    + EXTENT.pattern
    + rb")))))"
)
"""What a feature of which nothing is told has once at most."""


class FurtherGeometries:
    """Counts geometries of features beside the one of each that is read, and what is in boundedBy.

    Its methods that are generators wait wherever they need the next piece of the text.
    """

    def __init__(self) -> None:
        self._features = self._places = self._bounds = self._bounded_places = 0
        self._text, self._at = b"", 0
        self._patterns: dict[bytes, re.Pattern[bytes]] = {}
        self._bytes = self._bytes_in_vain = 0
        self._reading = self._read()
        next(self._reading)

    def add(self, text: bytes) -> None:
        """Look at the next piece of the text."""
        for start in range(0, len(text), PIECE):
            piece = text[start : start + PIECE]
            self._text, self._at = self._text[self._at :] + piece, 0
            self._bytes += len(piece)
            next(self._reading)

    def told(self) -> list[str]:
        """What to tell of the text; a feature that has not ended is none."""
        further = (
            f"Features with several geometries ({self._features:,}): one of each was read; the others "
            f"({self._places:,}) were left out."
        )
        bounded = (
            f"Content of boundedBy other than extents ({self._bounds:,}), such as walls and roofs of "
            f"buildings, was left out, with its geometries ({self._bounded_places:,})."
        )
        return [further] * (self._places > 0) + [bounded] * (self._bounds > 0)

    def _read(self) -> Generator[None, None, None]:
        while True:
            tag = self._find(MEMBER) or (yield from self._wait_for(MEMBER))
            if not tag["end"]:
                yield from self._read_members()

    def _read_members(self) -> Generator[None, None, None]:
        """Read on to the end of an element whose content are features."""
        while not (tag := self._find(TAG) or (yield from self._wait_for(TAG)))["end"]:
            name = tag["name"].rpartition(b":")[2]
            if name == COLLECTION:
                return
            is_feature = tag["empty"] is None and not name.endswith((b"ember", b"embers"))
            if is_feature and not self._pass_simple(tag["name"]):
                places = yield from self._count_in(tag["name"], IN_FEATURE)
                self._features += places > 1
                self._places += max(places - 1, 0)

    def _count_in(self, name: bytes, content: bytes) -> Generator[None, None, int]:
        """How many geometries there are to the end of an element, not counting those in others and in boundedBy."""
        places, depth, pattern = 0, 1, self._pattern(name, content)
        while depth:
            tag = self._find(pattern) or (yield from self._wait_for(pattern))
            if tag["empty"] is not None or tag["name"] not in {name, None}:
                continue
            if tag["name"]:
                depth += -1 if tag["end"] else 1
            elif tag["place"]:
                places += 1
                yield from self._count_in(tag["place"], IN_PLACE)
            else:
                yield from self._read_bounds(tag["bounds"])
        return places

    def _read_bounds(self, name: bytes) -> Generator[None, None, None]:
        first = self._find(TAG) or (yield from self._wait_for(TAG))
        self._at = first.start()
        is_extent = EXTENT.match(first[0])
        places = yield from self._count_in(name, IN_PLACE if is_extent else IN_BOUNDS)
        self._bounds += not is_extent
        self._bounded_places += places

    def _pass_simple(self, name: bytes) -> bool:
        """Go to the end of a feature that is in the text at hand, if it is certain that nothing is told of it.

        This takes a third of the time that it would otherwise take, and is no longer tried once more text has been
        looked at in vain than there is: ends of features may be far away, or missing.
        """
        if self._bytes_in_vain > self._bytes:
            return False
        end = self._end_of(name, self._at, len(self._text))
        if end >= 0 and self._is_simple(end):
            self._at = end + len(b"</%b>" % name)
            return True
        self._bytes_in_vain += (end if end >= 0 else len(self._text)) - self._at
        return False

    def _is_simple(self, end: int) -> bool:
        noted = NOTED.search(self._text, self._at, end)
        if noted and noted["place"] and not noted["bounds"]:
            behind = self._end_of(noted["place"], noted.end(), end)
            noted = NOTED.search(self._text, behind, end) if behind >= 0 else noted
        return noted is None

    def _end_of(self, name: bytes, start: int, limit: int) -> int:
        """Where the element ends that is open at `start`; -1 if it holds others of its kind, or `limit` comes first."""
        end = self._text.find(b"</%b>" % name, start, limit)
        return -1 if self._text.count(b"<%b" % name, start, max(end, start)) else end

    def _pattern(self, name: bytes, content: bytes) -> re.Pattern[bytes]:
        """What finds the tags of an element `name` and others of `content`; of many elements, the tags of all."""
        expression = content % re.escape(name)
        if expression not in self._patterns:
            if len(self._patterns) >= MOST_PATTERNS:
                return re.compile(content % _NAME)
            self._patterns[expression] = re.compile(expression)
        return self._patterns[expression]

    def _find(self, pattern: re.Pattern[bytes]) -> re.Match[bytes] | None:
        """The next tag that `pattern` finds, unless this takes longer; that takes no generator."""
        found = pattern.search(self._text, self._at)
        if found is None or found[0].startswith(b"<!"):
            return None
        self._at = found.end()
        return found

    def _wait_for(self, pattern: re.Pattern[bytes]) -> Generator[None, None, re.Match[bytes]]:
        """The next tag that `pattern` finds outside of comments and the like."""
        while True:
            found = pattern.search(self._text, self._at)
            if found is None:
                last = self._text.rfind(b"<", max(self._at, len(self._text) - LONGEST_TAG))
                self._at = len(self._text) if last < 0 else last
                yield
            elif found[0].startswith(b"<!"):
                self._at = found.end()
                yield from self._wait_behind(b"-->" if found["comment"] else b"]]>")
            else:
                self._at = found.end()
                return found

    def _wait_behind(self, end: bytes) -> Generator[None, None, None]:
        while (at := self._text.find(end, self._at)) < 0:
            self._at = max(self._at, len(self._text) - len(end) + 1)
            yield
        self._at = at + len(end)
