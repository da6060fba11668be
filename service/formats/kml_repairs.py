"""Mends KML of which the driver would read less than it says: undeclared typed data, odd rings, models, tracks."""

import re
from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from pathlib import Path

from service.errors import Rejection
from service.formats.cutting import cut
from service.formats.kml_positions import ODD_POSITIONS, spaced
from service.formats.kml_schemas import (
    CHARACTERS,
    COMMENT,
    QUOTED,
    declared_in_folders,
    has_stray_data,
    referred,
    respelled_in,
    schema_ids,
    undeclared_in,
)
from service.formats.kml_tracks import lack_times
from service.formats.left_out import PIECE, chunks, has_match, written
from service.formats.names import listed, quotes

SIMPLE = re.compile(rb"<SimpleData\s")
SCHEMA = re.compile(rb"<Schema[\s/>]")
DOCUMENT = re.compile(rb"<Document[\s>]")
ODD: Sequence[tuple[re.Pattern[bytes], bytes]] = (
    (re.compile(rb"</LinearRing>\s*+<(?!/(?:outer|inner)BoundaryIs\b)[^<>]*+>"), b"</LinearRing>"),
    (re.compile(rb"<Model[\s/>]"), b"<Model"),
    (re.compile(ODD_POSITIONS), b"<gx:coord"),
    (re.compile(rb"<(?:Multi)?+Track[\s/>]"), b"Track"),
)
"""What is mended wherever it is, each with what it contains: the end of a ring that is not alone in a boundary of an
area, as it should be, models, positions of tracks, and tracks of KML 2.3."""
UNPREFIXED = re.compile(rb"(</?)(?=(?:(?:Multi)?+Track|coord|angles)\b)")
"""The beginning of a tag of a track as KML 2.3 has it; the driver knows only those of the extension gx."""
_ATTRIBUTES = rb"\s(?:[^<>\"']++|\"[^<\"]*+\"|'[^<']*+')*+"
TAG = re.compile(
    rb"(?=<[!/DSLMTacgiow])(?:" + COMMENT + rb"(?P<comment>\Z)?+|" + CHARACTERS + rb"(?P<characters>\Z)?+"
    rb"|<(?:(?P<document>Document(?=[\s>])[^<>]*+(?<!/)>)"
    rb"|(?P<declares>Schema\s(?>[^<>]*?\bid\s*=\s*(?:\"(?P<id>[^\"<>]*)\"|'(?P<other_id>[^'<>]*)')"
    rb"|[^<>]*?\bname\s*=\s*(?:\"(?P<called>[^\"<>]*)\"|'(?P<other_called>[^'<>]*)'))[^<>]*+>)"
    rb"|(?P<schema>/?SchemaData(?=[\s>])[^<>]*+>)"
    rb"|(?P<data>SimpleData(?P<rest>" + _ATTRIBUTES + rb"(?P<empty>(?<=/))?+>))|(?P<end>/SimpleData\s*+>)"
    rb"|(?P<track>/?(?:gx:)?+(?:Multi)?+Track\b)|(?P<time>when\b)|(?P<angles>/?angles\b)"
    rb"|(?P<position>(?P<coord>(?:gx:)?+coord)\s*+(?:/>|>(?P<numbers>[^<]*+)</(?P=coord)\s*+>))"
    rb"|(?P<boundary>/?(?:outer|inner)BoundaryIs)\s*+>|(?P<ring>/?)LinearRing\b|(?P<model>/?)Model(?=[\s/>])))"
)
"""What may be mended, and comments and the like, in which nothing is a tag: with an empty group if they do not end."""
NAME = re.compile(rb"(?P<before>\sname\s*=\s*[\"'])(?P<name>[^\"'<>]*+)")
URL = re.compile(rb"\sschemaUrl\s*=\s*(?:\"([^\"<>]*+)\"|'([^'<>]*+)')")
HOLE = b"innerBoundaryIs"
LONGEST_TAG = 16 << 10
LONGEST_END = len("-->")
MOST_EMPTY, LONGEST_POSITION = 100_000, 100
"""How many empty positions of tracks, and how many bytes of others, are taken: a crafted file would become GiBs."""
LONGEST_TARGET, SLACK = 3, 64 << 10
"""How many times as long a document may become, and by how much more: a crafted file would become TiBs."""
NO_MODEL = b"NoModel"
"""What models are called, which the driver does not know."""
UNTYPED = "Typed data was read as texts, because the Document has no Schema for it."
UNDECLARED = "Typed data that no Schema of the file declares ({}) was read as texts."
TOO_LONG = (
    "The file lacks so many required parts, such as the id of a Schema in each SchemaData or a boundary around each "
    "ring, that adding them would make it several times as long. Shorten the ids, or add what is missing, and send the "
    "file again."
)
NO_TIME = b"<when/>"
EMPTY = "Empty positions of tracks ({count:,}) became those before them, or the first one of the track."
BOOLEAN = re.compile(rb"<SimpleField(?=[^<>]*?\stype\s*=\s*[\"'](?i:bool(?:ean)?)[\"'])[^<>]*?\sname" + QUOTED)
TRUTH = re.compile(
    rb"(<SimpleData\s(?>(?:[^<>]*?\s)??name\s*=\s*([\"'])([^\"'<>]*+)\2)[^<>]*+>\s*+)(?:(true)|false)(?=\s*+</SimpleData)",
    re.IGNORECASE,
)
"""Typed data that is true or false, as words. Its name is its first one: none is looked for again behind it."""
FIELD = b'<SimpleField name="%b" type="string"/>'


def mended(path: Path, target: Path, text: Path | None = None) -> tuple[Path, str]:
    """As `Mend`.

    SimpleData that no Schema declares would be left out: what is in the first MiB is declared, or gets the name that
    is declared in another case. So would be what a Schema declares within a Folder, as GDAL 1 wrote it: the Document
    gets a copy. Of several rings in one innerBoundaryIs, all but the last would be. Rings that bound no area become
    lines: the driver makes geometries of them that most formats lack. Positions of tracks get single blanks between
    their numbers, since it takes others for 0, and empty ones, which it takes for 0, 0, repeat another. Data that names
    no Schema of the file is of the first one. Models, which have none, get an unknown name: the driver crashes on one
    among several geometries. Tracks of KML 2.3 become those of its extension gx, which it knows. Of data that the first
    MiB declares as Boolean, true and false become 1 and 0, for it takes words for 0.

    Raises:
        Rejection: very many positions of tracks are empty, too much is missing, or a track lacks some of its times.
    """
    text = text or path
    is_timeless = lack_times(text)
    is_typed = has_match(text, SIMPLE)
    lacks_schema = is_typed and not has_match(text, SCHEMA)
    moved = declared_in_folders(text) if is_typed and not lacks_schema else b""
    lacks_schema |= bool(moved) and not has_match(text, DOCUMENT)
    start = next(chunks(text), b"") if is_typed else b""
    ids = schema_ids(text) if not lacks_schema and has_stray_data(start) else {}
    missing, respelled = undeclared_in(start, ids), respelled_in(start)
    booleans = _booleans_in(start)
    is_mended = lacks_schema or moved or ids or missing or respelled or is_timeless or booleans
    if not (is_mended or any(has_match(text, *odd) for odd in ODD)):
        return path, ""
    names = [name.decode("utf-8", "replace") for names in missing.values() for name in names]
    room = (LONGEST_TARGET - 1) * path.stat().st_size + SLACK + len(moved)
    mender = _Mender(missing, moved, respelled, ids, booleans, lacks_schema=lacks_schema, room=room)
    told = UNTYPED if lacks_schema else UNDECLARED.format(listed(quotes(names))) if names else ""
    new = written(target, map(mender.mend, cut(chunks(path, PIECE), _end_in)))
    empty = EMPTY.format(count=mender.empty_positions) if mender.empty_positions else ""
    return new, " ".join(filter(None, (told, empty)))


class _Mender:
    """Replaces the tags of one file in turn."""

    def __init__(
        self,
        missing: Mapping[bytes, Sequence[bytes]],
        moved: bytes,
        respelled: Mapping[bytes, bytes],
        ids: Mapping[bytes, None],
        booleans: AbstractSet[bytes],
        *,
        lacks_schema: bool,
        room: int,
    ) -> None:
        """`room` is by how many bytes the file may become longer."""
        self._missing = dict(missing)
        self._moved = moved
        self._respelled = respelled
        self._ids = ids
        self._booleans = booleans
        self._lacks_schema = lacks_schema
        self._room = room
        self._boundary = b""
        self._has_ring = False
        self._position = b""
        self._awaited = 0
        """How many empty positions of a track come before its first one."""
        self._positions = self._times = 0
        self.empty_positions = 0
        self._inside = b""
        """What ends the comment or the like in which the piece before ended."""

    def mend(self, text: bytes) -> bytes:
        """What to write in place of the next piece."""
        passed = b""
        if self._inside:
            before, end, text = text.partition(self._inside)
            passed = before + end
            self._inside = b"" if end else self._inside
        mended = TAG.sub(self._mend_within_room, text)
        return passed + (TRUTH.sub(self._as_number, mended) if self._booleans else mended)

    def _as_number(self, data: re.Match[bytes]) -> bytes:
        """True or false as the driver reads it, if its column is declared so."""
        number = b"0" if data[4] is None else b"1"
        return data[1] + number if data[3].strip().lower() in self._booleans else data[0]

    def _mend_within_room(self, tag: re.Match[bytes]) -> bytes:
        mended = self._mend(tag)
        self._room -= len(mended) - len(tag[0])
        if self._room < 0:  # before all of the piece is in memory
            raise Rejection(TOO_LONG)
        return mended

    def _mend(self, tag: re.Match[bytes]) -> bytes:
        mended = tag[0]
        if tag["comment"] is not None or tag["characters"] is not None:
            self._inside = b"]]>" if tag["comment"] is None else b"-->"
        elif tag["boundary"]:
            self._boundary = b"" if tag["boundary"].startswith(b"/") else tag["boundary"]
            self._has_ring = False
        elif tag["ring"] is not None:
            mended = self._ring(tag)
        elif tag["model"] is not None:
            mended = b"<%b%b" % (tag["model"], NO_MODEL)
        elif tag["document"]:
            moved, self._moved = self._moved, b""
            mended = tag[0] + TAG.sub(self._mend_within_room, moved)
        elif tag["declares"]:
            mended = self._declare(tag)
        elif tag["schema"] or tag["data"] or tag["end"]:
            mended = self._typed(tag)
        elif tag["track"] or tag["time"] or tag["position"] or tag["angles"]:
            mended = UNPREFIXED.sub(rb"\1gx:", self._of_track(tag))
        return mended

    def _of_track(self, tag: re.Match[bytes]) -> bytes:
        """A part of a track, before the end of which its positions get empty times if it has none."""
        if tag["position"]:
            self._positions += 1
            return self._place(tag)
        if tag["time"]:
            self._times += 1
        if not tag["track"]:
            return tag[0]
        times = 0 if self._times or not tag["track"].startswith(b"/") else self._positions
        self._position, self._awaited, self._positions, self._times = b"", 0, 0, 0
        return NO_TIME * times + tag[0]

    def _place(self, tag: re.Match[bytes]) -> bytes:
        """A position of a track: in place of an empty one, that before it, or else the first that is not."""
        numbers = (tag["numbers"] or b"").strip()
        if not numbers:
            self.empty_positions += 1
            if self.empty_positions > MOST_EMPTY:
                raise Rejection(
                    f"More than {MOST_EMPTY:,} positions of tracks (gx:coord) are empty. Leave them out, with their "
                    "times, and send the file again."
                )
            self._awaited += not self._position
            return self._position
        if len(numbers) > LONGEST_POSITION:
            return tag[0]
        times, self._awaited = self._awaited + 1, 0
        self._position = spaced(numbers, tag[0])
        return times * self._position

    def _typed(self, tag: re.Match[bytes]) -> bytes:
        """Typed data, or what is around it, as the driver finds its Schema."""
        if self._lacks_schema:
            return self._as_data(tag)
        if tag["schema"]:
            return self._refer(tag[0]) if self._ids else tag[0]
        return NAME.sub(self._respell, tag[0]) if self._respelled and tag["data"] else tag[0]

    def _ring(self, tag: re.Match[bytes]) -> bytes:
        """A ring in a boundary of its own, or a line outside of one."""
        if not self._boundary:
            return b"<%bLineString" % tag["ring"]
        is_next = self._has_ring and not tag["ring"] and self._boundary == HOLE
        self._has_ring = True
        return b"</%b><%b>%b" % (HOLE, HOLE, tag[0]) if is_next else tag[0]

    def _declare(self, schema: re.Match[bytes]) -> bytes:
        """The start of a Schema, with its name as its id if it has none, and the first of its id with what it lacks.

        A crafted file may repeat it a lot.
        """
        own = schema["id"] or schema["other_id"]
        name = own or schema["called"] or schema["other_called"] or b""
        start = schema[0] if own else b'<Schema id="%b" %b' % (name, schema[0].removeprefix(b"<Schema").lstrip())
        names = self._missing.pop(name, ())
        fields = b"".join(FIELD % name.replace(b'"', b"&quot;") for name in names)
        if fields and start.endswith(b"/>"):
            return start.removesuffix(b"/>") + b">" + fields + b"</Schema>"
        return start + fields

    def _refer(self, data: bytes) -> bytes:
        """The start of typed data that names its Schema as the driver finds it; its end stays as it is."""
        if data.startswith(b"</"):
            return data
        url = URL.search(data)
        named = (url[1] or url[2] or b"") if url else b""
        if url and named.removeprefix(b"#") in self._ids:
            return data
        return b'<SchemaData schemaUrl="#%b"%b' % (
            referred(named, self._ids),
            URL.sub(b"", data, 1).removeprefix(b"<SchemaData"),
        )

    def _respell(self, name: re.Match[bytes]) -> bytes:
        """The name of typed data as a Schema declares it."""
        return name["before"] + self._respelled.get(name["name"].strip(), name["name"])

    def _as_data(self, tag: re.Match[bytes]) -> bytes:
        """Data without a type in place of typed data."""
        if tag["schema"]:
            return b""
        if tag["end"]:
            return b"</value></Data>"
        return b"<Data" + tag["rest"] + (b"" if tag["empty"] is not None else b"<value>")


def _booleans_in(text: bytes) -> set[bytes]:
    """The names of the typed data that a text declares as Boolean, in lower case."""
    return {(double or single).strip().lower() for double, single in BOOLEAN.findall(text)}


def _end_in(text: bytes) -> int:
    """Where to cut a text so that no piece ends within a tag, or an element with nothing but a text.

    Unless that is too long.
    """
    start = opening = text.rfind(b"<")
    while text[opening : opening + 2] in {b"</", b"<"} and len(text) - opening <= LONGEST_TAG:
        opening = text.rfind(b"<", 0, opening)
    start = opening if len(text) - opening <= LONGEST_TAG else start
    return start if len(text) - start <= LONGEST_TAG else len(text) - LONGEST_END
