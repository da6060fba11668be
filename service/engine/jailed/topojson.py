"""Makes GeoJSON of TopoJSON. Runs in the sandbox.

Each object that is a collection becomes a document, `t0.geojson` and so on; all others share one. The documents are
scanned as GeoJSON of clients is.
"""

import gc
import sys
from codecs import BOM_UTF8
from collections.abc import Iterable, Iterator
from math import isfinite, isnan
from pathlib import Path
from typing import Annotated, Any, ClassVar

import msgspec
from msgspec import Meta, Raw

from service.engine.jailed.exits import Exit
from service.engine.jailed.topology import COLLECTION, Damaged, Members, Topology, members_of
from service.formats.facts import MAX_LAYERS, MOST_COMMAS, Count
from service.geojson.cursor import text_of
from service.geojson.features import lenient_decode
from service.geojson.findings import Name, Scan
from service.geojson.normalize import KEEP, normalize
from service.geojson.refusals import MAX_NAME_CHARACTERS, Reason, Unreadable
from service.geojson.scan import scan
from service.geojson.surrogates import replace_lone

DOCUMENT = "t{}.geojson"
SINGLES = "TopoJSON"
"""The name of the layer of objects that are not collections."""
OWN = frozenset({"type", "objects", "arcs", "transform", "bbox", "crs"})
OWN_OF_GEOMETRIES = frozenset({"type", "id", "properties", "coordinates", "arcs", "geometries", "bbox"})
SPARE_BYTES = 64 << 20
MOST_REPEATED = 100
"""The documents take at most this many times the bytes of the topology, and the spare ones: some arcs are in a few
objects, each twice, and a position takes up to five times the bytes of its whole numbers."""
MOST_FOREIGN = 50
PADDING = b"\0"
"""What some programs fill the end of a file with."""
_EXITS = {Reason.NOT_UTF8: Exit.NOT_UTF8, Reason.TOO_MANY_FIELDS: Exit.TOO_MANY_COLUMNS}
_MEMBERS = msgspec.json.Decoder(Members)
_OBJECTS = msgspec.json.Decoder(list[Raw])
_NULL = Raw(b"null")
_INFINITE = (Raw(b"-1e999"), Raw(b"1e999"))
_EMPTY = Raw(b"[]")


class FoundDocuments(msgspec.Struct):
    """The names and scans of the documents, and what of the topology is not in them."""

    most_commas: ClassVar[int] = MOST_COMMAS
    layers: Annotated[list[tuple[Name, Scan]], Meta(max_length=MAX_LAYERS)] = []
    has_system: bool = False
    unread: Count = 0
    """Geometries that are none."""
    inner: Count = 0
    """Properties and ids within collections, and of collections that are objects."""
    ids: Count = 0
    """Ids of features with another one."""
    nans: Count = 0
    """Numbers that are NaN, for which JSON has no notation."""
    foreign: Annotated[dict[Name, None], Meta(max_length=MOST_FOREIGN)] = {}
    """The names of members that are not part of TopoJSON."""


class TopologyWriter:
    """Writes the documents of one topology."""

    def __init__(self, content: bytes) -> None:
        self.found = FoundDocuments()
        self._members = self._read(content)
        self._topology = Topology(self._members.get("arcs", _NULL), self._members.get("transform", _NULL))
        self._left_bytes = SPARE_BYTES + MOST_REPEATED * len(content)
        self._note_foreign(self._members, OWN)

    def write(self) -> None:
        """Write all documents, and scan them.

        Raises:
            Damaged, msgspec.DecodeError: the document is no topology.
            Unreadable: it is not text, or has too many columns.
        """
        self.found.has_system = self._members.get("crs", _NULL) != _NULL
        objects = {name: members_of(text) for name, text in members_of(self._members["objects"]).items()}
        singles = {name: members for name, members in objects.items() if not _is_collection(members)}
        layers = [(name, self._features_of(objects[name])) for name in objects if name not in singles]
        if singles:
            layers.append((SINGLES, self._singles(singles)))
        if len(layers) > MAX_LAYERS:
            sys.exit(Exit.TOO_MANY_LAYERS)
        for number, (name, features) in enumerate(layers):
            path = Path(DOCUMENT.format(number))
            self._write(path, features)
            self.found.layers.append((name[:MAX_NAME_CHARACTERS], _scanned(path)))

    def _read(self, content: bytes) -> Members:
        """The members of the document; if it is not strict JSON, it is read like GeoJSON, with null for NaN.

        Raises:
            Unreadable, ValueError: it is no object.
        """
        try:
            return _MEMBERS.decode(content)
        except msgspec.DecodeError:
            text = text_of(replace_lone(content)).lstrip()
            value, end = lenient_decode(text)
            if text[end:].strip():
                raise Damaged from None
            return _MEMBERS.decode(msgspec.json.encode(self._strict(value)))

    def _strict(self, value: Any) -> Any:
        """`value` with numbers that strict JSON has, which are infinite as far as they are too large."""
        if isinstance(value, dict):
            return {name: self._strict(member) for name, member in value.items()}
        if isinstance(value, list):
            return list(map(self._strict, value))
        if not isinstance(value, float) or isfinite(value):
            return value
        self.found.nans += isnan(value)
        return _NULL if isnan(value) else _INFINITE[value > 0]

    def _write(self, path: Path, features: Iterable[Iterator[bytes]]) -> None:
        with path.open("wb") as document:
            crs = b'"crs":%b,' % bytes(self._members["crs"]) if self.found.has_system else b""
            document.write(b'{"type":"FeatureCollection",%b"features":[' % crs)
            comma = b"\n"
            for feature in features:
                document.write(comma)
                comma = b",\n"
                for piece in feature:
                    self._left_bytes -= document.write(piece)
                    if self._left_bytes < 0:
                        sys.exit(Exit.TOO_REPETITIVE)
            document.write(b"\n]}\n")

    def _features_of(self, collection: Members) -> Iterator[Iterator[bytes]]:
        self._note_foreign(collection, OWN_OF_GEOMETRIES)
        self.found.inner += _has_data(collection)
        for text in _OBJECTS.decode(collection["geometries"]):
            members = members_of(text)
            yield self._feature(members, members.get("id", _NULL))

    def _singles(self, objects: dict[str, Members]) -> Iterator[Iterator[bytes]]:
        for name, members in objects.items():
            own = members.get("id", _NULL)
            named = Raw(msgspec.json.encode(name))
            self.found.ids += own not in (_NULL, named)
            yield self._feature(members, named)

    def _feature(self, members: Members, identity: Raw) -> Iterator[bytes]:
        """The pieces of a feature, with its id as a property, unless it has such a property."""
        self._note_foreign(members, OWN_OF_GEOMETRIES)
        own = _properties(members)
        text = bytes(members["properties"]) if own else b"{}"
        if identity != _NULL and "id" in own:
            self.found.ids += own["id"] != identity
        elif identity != _NULL:
            text = b'{"id":%b%b%b' % (bytes(identity), b"," if own else b"", text[1:])
        yield b'{"type":"Feature","properties":%b,"geometry":' % text
        yield from self._geometry(members)
        yield b"}"

    def _geometry(self, members: Members) -> Iterator[bytes]:
        try:
            pieces = self._topology.geometry(members)
            self.found.inner += _inner_data(members)
        except (LookupError, ValueError, TypeError):
            self.found.unread += 1
            pieces = iter((b"null",))
        return pieces

    def _note_foreign(self, members: Members, own: frozenset[str]) -> None:
        for name in members:
            if name not in own and len(self.found.foreign) < MOST_FOREIGN:
                self.found.foreign[name[:MAX_NAME_CHARACTERS]] = None


def main(file: str) -> FoundDocuments:
    """Write the documents of the topology in `file`, and return what was found."""
    gc.disable()  # there are no cycles
    try:
        program = TopologyWriter(Path(file).read_bytes().removeprefix(BOM_UTF8).rstrip(PADDING))
        program.write()
    except Unreadable as refusal:
        sys.exit(_EXITS.get(refusal.reason, Exit.DAMAGED))
    except (Damaged, LookupError, ValueError, RecursionError):
        sys.exit(Exit.DAMAGED)
    return program.found


def _is_collection(members: Members) -> bool:
    return members.get("type", _NULL) == Raw(b'"%b"' % COLLECTION.encode())


def _has_data(members: Members) -> bool:
    return members.get("id", _NULL) != _NULL or bool(_properties(members))


def _properties(members: Members) -> Members:
    """The properties of a geometry; none if they are an empty list, which some languages write for an empty object."""
    properties = members.get("properties", _NULL)
    return {} if properties == _EMPTY else members_of(properties)


def _inner_data(members: Members) -> int:
    """How many geometries within a collection have data of their own, which features have instead."""
    if not _is_collection(members):
        return 0
    parts = [members_of(text) for text in _OBJECTS.decode(members["geometries"])]
    return sum(_has_data(part) + _inner_data(part) for part in parts)


def _scanned(path: Path) -> Scan:
    """The findings about a document, which is normalized if they require that."""
    found = scan(path).keeping_texts()
    if found.half_letters or found.is_beyond_64_bits:
        target = path.with_suffix(".normalized")
        normalize(path, target, KEEP)
        target.replace(path)
    return found
