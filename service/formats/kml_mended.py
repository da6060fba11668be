"""Mends KML of which the driver would read less than it says: typed data without a Schema, and rings in odd places."""

import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from service.formats.kml_undeclared import undeclared_in
from service.formats.left_out import chunks, has_match
from service.formats.names import listed, quotes

SIMPLE = re.compile(rb"<SimpleData\s")
SCHEMA = re.compile(rb"<Schema[\s/>]")
ODD_RING = re.compile(rb"</LinearRing>\s*+<(?!/(?:outer|inner)BoundaryIs\b)")
"""The end of a ring that is not alone in a boundary of an area, as it should be."""
TAG = re.compile(
    rb"<(?:Schema\s[^<>]*?\bid\s*=\s*(?:\"(?P<id>[^\"<>]*)\"|'(?P<other_id>[^'<>]*)')|(?P<declared>/Schema)\s*+>"
    rb"|(?P<schema>/?SchemaData(?=[\s>])[^<>]*+>)"
    rb"|(?P<data>SimpleData(?P<rest>\s[^<>]*+(?P<empty>(?<=/))?+>))|(?P<end>/SimpleData\s*+>)"
    rb"|(?P<boundary>/?(?:outer|inner)BoundaryIs)\s*+>|(?P<ring>/?)LinearRing\b)"
)
HOLE = b"innerBoundaryIs"
LONGEST_TAG = 16 << 10
UNTYPED = "Typed data without a Schema, which the file lacks, was read as texts."
UNDECLARED = "Typed data that no Schema of the file declares ({}) was read as texts."
FIELD = b'<SimpleField name="%b" type="string"/>'


def mended(path: Path, target: Path) -> tuple[Path, str]:
    """The file to read in place of the KML at `path`, and a warning or "". Blocking.

    It is `path` if nothing has to be mended; otherwise `target`, a new file whose directory is created if needed.
    SimpleData that no Schema declares would be left out: what is in the first MiB is declared. Of several rings in one
    innerBoundaryIs, all but the last would be. Rings that bound no area become lines: the driver makes geometries of
    them that most formats lack.
    """
    is_typed = has_match(path, SIMPLE)
    lacks_schema = is_typed and not has_match(path, SCHEMA)
    missing = undeclared_in(next(chunks(path), b"")) if is_typed else {}
    if not lacks_schema and not missing and not has_match(path, ODD_RING):
        return path, ""
    target.parent.mkdir(exist_ok=True)
    mender = _Mender(missing, lacks_schema=lacks_schema)
    with target.open("xb") as file:
        for text in _pieces(path):
            file.write(TAG.sub(mender.mend, text))
    names = [name.decode("utf-8", "replace") for names in missing.values() for name in names]
    return target, UNTYPED if lacks_schema else UNDECLARED.format(listed(quotes(names))) if names else ""


class _Mender:
    """Replaces the tags of one file in turn."""

    def __init__(self, missing: Mapping[bytes, Sequence[bytes]], *, lacks_schema: bool) -> None:
        self._missing = missing
        self._lacks_schema = lacks_schema
        self._schema = b""
        self._boundary = b""
        self._has_ring = False

    def mend(self, tag: re.Match[bytes]) -> bytes:
        """What to write in place of a tag."""
        if tag["boundary"]:
            self._boundary = b"" if tag["boundary"].startswith(b"/") else tag["boundary"]
            self._has_ring = False
        elif tag["ring"] is not None:
            return self._ring(tag)
        elif tag["declared"]:
            return b"".join(FIELD % name for name in self._missing.get(self._schema, ())) + tag[0]
        elif tag["id"] is not None or tag["other_id"] is not None:
            self._schema = tag["id"] or tag["other_id"]
        elif self._lacks_schema:
            return self._as_data(tag)
        return tag[0]

    def _ring(self, tag: re.Match[bytes]) -> bytes:
        """A ring in a boundary of its own, or a line outside of one."""
        if not self._boundary:
            return b"<%bLineString" % tag["ring"]
        is_next = self._has_ring and not tag["ring"] and self._boundary == HOLE
        self._has_ring = True
        return b"</%b><%b>%b" % (HOLE, HOLE, tag[0]) if is_next else tag[0]

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
    for chunk in chunks(path):
        text = rest + chunk
        end = max(text.rfind(b"<"), len(text) - LONGEST_TAG)
        yield text[:end]
        rest = text[end:]
    yield rest
