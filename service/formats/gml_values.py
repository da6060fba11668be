"""Renames values of GML that have the name of a geometry, such as <ogr:Surface>gravel</ogr:Surface>.

The driver takes such an element for a geometry, whatever its prefix, and leaves its text out. Results have such columns
under the same new names.
"""

import re
from collections.abc import Iterable, Iterator
from pathlib import Path

from service.formats.gml_geometries import GEOMETRIES
from service.formats.left_out import has_match, pieces_to, written
from service.formats.names import listed, shown

NOT_READ = GEOMETRIES | {"boundedBy"}
"""The names of elements whose text the driver does not read."""
END, LONGEST = b"</", 1 << 20
_NAME = rb"<(?!gml:)(?P<name>(?:[\w.-]++:)?+(?=[A-Zb])(?:" + "|".join(sorted(NOT_READ)).encode() + rb"))"
_TAG = _NAME + rb"(?:(?P<rest>(?:\s[^<>]*+)?+(?<!/)>"
_NIL = rb"|(?P<nil>\s[^<>]{0,200}?\bnil\s?=\s?[\"'](?:true|1)[\"'][^<>]{0,200}+(?<=/)>))"
TEXT = re.compile(_TAG + rb"\s*+[^<\s][^<]*+</)" + _NIL)
"""An element with a text and nothing else, or one that says that it has none."""
WHOLE = re.compile(_TAG + rb"[^<]*+</)(?P<end>(?P=name)(?=[\s>])|\Z)" + _NIL)
"""The same, or one with nothing in it, to the name in its end tag, which may be in the next piece."""
NAME = re.compile(rb"[\w:.-]++")
TOLD = "Values in elements named like geometries of GML were read into columns with a _ behind the name: {}."


def with_readable_names(path: Path, target: Path, text: Path | None = None) -> tuple[Path, str]:
    """As `Mend`."""
    if not has_match(text or path, TEXT):
        return path, ""
    names: set[bytes] = set()
    made = written(target, _renamed(pieces_to(path, END, LONGEST), names))
    local = sorted({name.rpartition(b":")[2].decode() for name in names})
    return made, TOLD.format(listed([repr(shown(f"{name}_")) for name in local]))


def _renamed(pieces: Iterable[bytes], names: set[bytes]) -> Iterator[bytes]:
    """The `pieces` with new names for such values, whose former `names` are added to the set."""

    def renamed(value: re.Match[bytes]) -> bytes:
        names.add(value["name"])
        if value["nil"]:
            return b"<%b_%b" % (value["name"], value["nil"])
        return b"<%b_%b%b" % (value["name"], value["rest"], value["end"] and value["end"] + b"_")

    is_within = False
    for piece in filter(None, pieces):
        text = NAME.sub(rb"\g<0>_", piece, count=1) if is_within else piece
        last = WHOLE.match(text, max(text.rfind(b"<", 0, -len(END)), 0))
        is_within = last is not None and last["end"] == b""
        yield WHOLE.sub(renamed, text)
