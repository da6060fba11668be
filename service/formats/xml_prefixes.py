"""Gives the elements of XML the prefixes that drivers and checks know, whichever a program declared for the namespaces.

Libraries that make XML from objects call the namespaces of KML and GPX `ns2` and the like. The driver of GPX knows no
such names, that of KML knows tracks as `gx:Track` alone, and what else is left out is found by the names of elements.
"""

import re
from collections.abc import Iterator, Mapping
from functools import partial
from itertools import chain, zip_longest
from pathlib import Path

from service.formats.cutting import cut
from service.formats.left_out import chunks, pieces
from service.formats.opened import created, removed
from service.formats.xml_root import HEAD_BYTES, ROOT

KML_PREFIXES: Mapping[bytes, bytes] = {
    rb"http://(?:www\.opengis\.net|earth\.google\.com)/kml/2\.\d": b"",
    rb"http://www\.google\.com/kml/ext/2\.\d": b"gx",
    rb"http://www\.w3\.org/2005/Atom": b"atom",
}
GPX_PREFIXES: Mapping[bytes, bytes] = {rb"http://www\.topografix\.com/GPX/1/[01]": b""}
"""The usual prefix of each namespace, which is a regular expression; "" stands for none."""

DECLARATION = re.compile(rb"\sxmlns(?::([\w.-]{1,40}))?+\s*+=\s*+(?:\"([^\"<>]*+)\"|'([^'<>]*+)')")
HIDDEN = re.compile(rb"<!--(?:.*?-->|.*+\Z)|<!\[CDATA\[(?:.*?\]\]>|.*+\Z)", re.DOTALL)
"""A comment or the like, in which nothing is a tag, perhaps without its end."""
STAND_IN = b"\0"
"""What stands for it while tags change, which takes as long for each text as for a long one. No XML has this byte."""
COMMENT, COMMENT_END, CHARACTERS_END = b"<!--", b"-->", b"]]>"
MOST_DECLARED = 20
"""How many prefixes a document may declare: each takes time for every piece of it. Programs declare about a dozen."""
LONGEST_TARGET = 2
"""How many times as long a document may become; tags are longer than the prefixes that they get."""
LONGEST = 1 << 20
"""How long a text without tags may be and not be read in pieces."""


def with_usual_prefixes(
    usual: Mapping[bytes, bytes], path: Path, target: Path, _text: Path | None = None
) -> tuple[Path, str]:
    """As `Mend`: a file in which one of the `usual` prefixes stands for something else stays as it is."""
    head = next(chunks(path), b"")
    root = ROOT.match(head[:HEAD_BYTES])
    end = head.find(b">", root.end() - 1) if root else -1
    if root is None or end < 0:
        return path, ""
    tag = head[root.start() : end]
    declared = {prefix: one or other for prefix, one, other in DECLARATION.findall(tag)}
    named = {prefix: found for prefix, space in declared.items() if (found := _usual(space, usual)) is not None}
    moved = {prefix: found for prefix, found in named.items() if prefix != found}
    stands_for_others = any(found in declared and found not in named for found in moved.values())
    starts = [b"<%b:" % prefix if prefix else b"<" for prefix in moved]
    if (
        stands_for_others
        or len(declared) > MOST_DECLARED
        or not any(start in text for text in pieces(path) for start in starts)
    ):
        return path, ""
    renamer = _Renamer(moved, declared)
    with created(target) as file:
        file.write(head[: root.start()] + _declaring(renamer.rename(tag), declared, moved))
        for piece in cut(_behind(path, end), _end_in):
            file.write(renamer.rename(piece))
            if file.tell() > LONGEST_TARGET * (path.stat().st_size + HEAD_BYTES):
                break
        else:
            return target, ""
    removed(target)
    return path, ""


def _usual(space: bytes, usual: Mapping[bytes, bytes]) -> bytes | None:
    """The usual prefix of a namespace, or None if it has none."""
    return next((prefix for pattern, prefix in usual.items() if re.fullmatch(pattern, space)), None)


def _declaring(tag: bytes, declared: Mapping[bytes, bytes], moved: Mapping[bytes, bytes]) -> bytes:
    """The outermost tag, without its end, with the declarations of the prefixes that elements have now."""
    spaces = {found: declared[prefix] for prefix, found in moved.items()}
    for old in reversed(list(DECLARATION.finditer(tag))):
        if (old[1] or b"") in spaces:
            tag = tag[: old.start()] + tag[old.end() :]
    return tag + b"".join(b' xmlns%b="%b"' % (b":" + found if found else b"", spaces[found]) for found in spaces)


with_kml_prefixes = partial(with_usual_prefixes, KML_PREFIXES)
with_gpx_prefixes = partial(with_usual_prefixes, GPX_PREFIXES)


class _Renamer:
    """Gives tags other prefixes, in the pieces of one document in turn.

    It replaces bytes, which takes half a second for 80 MB; expressions take forty times as long.
    """

    def __init__(self, moved: Mapping[bytes, bytes], declared: Mapping[bytes, bytes]) -> None:
        self._changes: list[tuple[bytes, bytes]] = []
        if b"" in moved:  # first, so that they are not mistaken for those that lose their prefix
            new = moved[b""] + b":"
            others = [b"!", b"?", *(prefix + b":" for prefix in {*declared, *moved.values(), b"xsi"} if prefix)]
            self._changes += [(b"<", b"<" + new), (b"<" + new + b"/", b"</" + new)]
            self._changes += [(start + new + other, start + other) for other in others for start in (b"<", b"</")]
        for prefix, found in moved.items():
            new = found + b":" if found else b""
            self._changes += [(start + prefix + b":", start + new) for start in (b"<", b"</") if prefix]
        self._inside = b""
        """What ends the comment or the like in which the piece before ended."""

    def rename(self, text: bytes) -> bytes:
        """The next piece with other prefixes."""
        passed = b""
        if self._inside:
            before, end, text = text.partition(self._inside)
            passed = before + end
            self._inside = b"" if end else self._inside
        hidden = HIDDEN.findall(text) if b"<!" in text and STAND_IN not in text else []
        visible = HIDDEN.sub(STAND_IN, text) if hidden else text
        if hidden and visible.endswith(STAND_IN):
            end = COMMENT_END if hidden[-1].startswith(COMMENT) else CHARACTERS_END
            self._inside = b"" if hidden[-1].endswith(end) else end
        for old, new in self._changes:
            visible = visible.replace(old, new)
        if hidden:
            visible = b"".join(chain(*zip_longest(visible.split(STAND_IN), hidden, fillvalue=b"")))
        return passed + visible


def _end_in(text: bytes) -> int:
    """Where the last tag of a text begins, unless that is far from the end."""
    last = text.rfind(b"<")
    return max(last if last >= len(text) - LONGEST else len(text) - len(CHARACTERS_END), 0)


def _behind(path: Path, start: int) -> Iterator[bytes]:
    """The content of the file at `path` from `start` on, within the first chunk."""
    content = chunks(path)
    yield next(content)[start:]
    yield from content
