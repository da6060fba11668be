"""Mends KML of which the driver would read less than it says: undeclared typed data, odd rings, models."""

import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from service.formats.kml_schemas import CHARACTERS, COMMENT, declared_in_folders, respelled_in, undeclared_in
from service.formats.left_out import PIECE, chunks, has_match, written
from service.formats.names import listed, quotes

SIMPLE = re.compile(rb"<SimpleData\s")
SCHEMA = re.compile(rb"<Schema[\s/>]")
DOCUMENT = re.compile(rb"<Document[\s>]")
ODD_RING = re.compile(rb"</LinearRing>\s*+<(?!/(?:outer|inner)BoundaryIs\b)[^<>]*+>")
"""The end of a ring that is not alone in a boundary of an area, as it should be."""
MODEL = re.compile(rb"<Model[\s/>]")
_ATTRIBUTES = rb"\s(?:[^<>\"']++|\"[^<\"]*+\"|'[^<']*+')*+"
TAG = re.compile(
    rb"(?=<[!/DSLMio])(?:" + COMMENT + rb"(?P<comment>\Z)?+|" + CHARACTERS + rb"(?P<characters>\Z)?+"
    rb"|<(?:(?P<document>Document(?=[\s>])[^<>]*+(?<!/)>)"
    rb"|(?P<declares>Schema\s(?>[^<>]*?\bid\s*=\s*(?:\"(?P<id>[^\"<>]*)\"|'(?P<other_id>[^'<>]*)'))[^<>]*+>)"
    rb"|(?P<schema>/?SchemaData(?=[\s>])[^<>]*+>)"
    rb"|(?P<data>SimpleData(?P<rest>" + _ATTRIBUTES + rb"(?P<empty>(?<=/))?+>))|(?P<end>/SimpleData\s*+>)"
    rb"|(?P<boundary>/?(?:outer|inner)BoundaryIs)\s*+>|(?P<ring>/?)LinearRing\b|(?P<model>/?)Model(?=[\s/>])))"
)
"""What may be mended, and comments and the like, in which nothing is a tag: with an empty group if they do not end."""
NAME = re.compile(rb"(?P<before>\sname\s*=\s*[\"'])(?P<name>[^\"'<>]*+)")
HOLE = b"innerBoundaryIs"
LONGEST_TAG = 16 << 10
LONGEST_END = len("-->")
NO_MODEL = b"NoModel"
"""What models are called, which the driver does not know."""
UNTYPED = "Typed data was read as texts, because the Document has no Schema for it."
UNDECLARED = "Typed data that no Schema of the file declares ({}) was read as texts."
FIELD = b'<SimpleField name="%b" type="string"/>'


def mended(path: Path, target: Path, text: Path | None = None) -> tuple[Path, str]:
    """The file to read in place of the KML at `path`, and a warning or "". Blocking.

    It is `path` if nothing has to be mended; otherwise `target`, a new file whose directory is created if needed.
    SimpleData that no Schema declares would be left out: what is in the first MiB is declared, or gets the name that
    is declared in another case. So would be what a Schema declares within a Folder, as GDAL 1 wrote it: the Document
    gets a copy. Of several rings in one innerBoundaryIs, all but the last would be. Rings that bound no area become
    lines: the driver makes geometries of them that most formats lack. Models, which have none, get an unknown name:
    the driver crashes on one among several geometries. `text` is where to look for all this, if not in
    the file itself.
    """
    text = text or path
    is_typed = has_match(text, SIMPLE)
    lacks_schema = is_typed and not has_match(text, SCHEMA)
    moved = declared_in_folders(text) if is_typed and not lacks_schema else b""
    lacks_schema |= bool(moved) and not has_match(text, DOCUMENT)
    start = next(chunks(text), b"") if is_typed else b""
    missing, respelled = undeclared_in(start), respelled_in(start)
    if not (lacks_schema or moved or missing or respelled or has_match(text, ODD_RING) or has_match(text, MODEL)):
        return path, ""
    names = [name.decode("utf-8", "replace") for names in missing.values() for name in names]
    mender = _Mender(missing, moved, respelled, lacks_schema=lacks_schema)
    told = UNTYPED if lacks_schema else UNDECLARED.format(listed(quotes(names))) if names else ""
    return written(target, map(mender.mend, _pieces(path))), told


class _Mender:
    """Replaces the tags of one file in turn."""

    def __init__(
        self,
        missing: Mapping[bytes, Sequence[bytes]],
        moved: bytes,
        respelled: Mapping[bytes, bytes],
        *,
        lacks_schema: bool,
    ) -> None:
        self._missing = dict(missing)
        self._moved = moved
        self._respelled = respelled
        self._lacks_schema = lacks_schema
        self._boundary = b""
        self._has_ring = False
        self._inside = b""
        """What ends the comment or the like in which the piece before ended."""

    def mend(self, text: bytes) -> bytes:
        """What to write in place of the next piece."""
        passed = b""
        if self._inside:
            before, end, text = text.partition(self._inside)
            passed = before + end
            self._inside = b"" if end else self._inside
        return passed + TAG.sub(self._mend, text)

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
            mended = tag[0] + TAG.sub(self._mend, moved)
        elif tag["declares"]:
            mended = self._declare(tag)
        elif self._lacks_schema and (tag["schema"] or tag["data"] or tag["end"]):
            mended = self._as_data(tag)
        elif self._respelled and tag["data"]:
            mended = NAME.sub(self._respell, tag[0])
        return mended

    def _ring(self, tag: re.Match[bytes]) -> bytes:
        """A ring in a boundary of its own, or a line outside of one."""
        if not self._boundary:
            return b"<%bLineString" % tag["ring"]
        is_next = self._has_ring and not tag["ring"] and self._boundary == HOLE
        self._has_ring = True
        return b"</%b><%b>%b" % (HOLE, HOLE, tag[0]) if is_next else tag[0]

    def _declare(self, schema: re.Match[bytes]) -> bytes:
        """The start of a Schema, the first of its id with what it lacks: a crafted file may repeat it a lot."""
        names = self._missing.pop(schema["id"] or schema["other_id"] or b"", ())
        fields = b"".join(FIELD % name.replace(b'"', b"&quot;") for name in names)
        if fields and schema[0].endswith(b"/>"):
            return schema[0].removesuffix(b"/>") + b">" + fields + b"</Schema>"
        return schema[0] + fields

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


def _pieces(path: Path) -> Iterator[bytes]:
    """The content of the file at `path`, of which no piece ends within a tag, unless the tag is too long."""
    rest = b""
    for chunk in chunks(path, PIECE):
        text = rest + chunk
        start = text.rfind(b"<")
        end = start if len(text) - start <= LONGEST_TAG else len(text) - LONGEST_END
        yield text[:end]
        rest = text[end:]
    yield rest
