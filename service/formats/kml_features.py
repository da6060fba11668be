"""Puts the features of a KML file into a document if there are several directly in its outermost element.

KML allows one feature there; of several, the driver reads the last without a warning.
"""

import re
from collections.abc import Iterator
from pathlib import Path
from shutil import copyfileobj

from service.formats.left_out import PIECE, has_match
from service.formats.opened import created, opened

LONGEST_TAG = 16 << 10
ROOT = re.compile(rb"(?P<tag><kml(?:\s[^<>]*+)?(?<!/)>)(?P<document>\s*+<Document[\s>])?+")
ROOT_END = re.compile(rb"</kml\s*+>\s*+\Z")
NOT_LAST = re.compile(rb"</Document>\s*+(?!</kml)")
TOKEN = re.compile(
    rb"<(?:(?P<opens>!--|!\[CDATA\[)"
    rb"|(?P<ends>/?)(?P<container>Document|Folder|NetworkLinkControl)(?=[\s/>])[^<>]*+>"
    rb"|(?P<single>Placemark|(?:Ground|Screen|Photo)Overlay|NetworkLink|gx:Tour)[\s/>])"
    rb"|(?P<closes>--|\]\])>"
)
CLOSES = {b"!--": b"--", b"![CDATA[": b"]]"}
"""What ends that in which tags are none."""


def in_one_document(path: Path, target: Path, text: Path | None = None) -> tuple[Path, str]:
    """As `Mend`; a file that is not understood stays as it is."""
    with opened(path) as file:
        root = ROOT.search(file.read(LONGEST_TAG))
        file.seek(max(0, path.stat().st_size - LONGEST_TAG))
        last = file.read()
    end = ROOT_END.match(last, last.rfind(b"</kml"))
    if root is None or end is None:
        return path, ""
    has_document = root["document"] and last[: end.start()].rstrip().endswith(b"</Document>")
    is_usual = has_document and not has_match(text or path, NOT_LAST)  # seen in a tenth of the time
    features = 1 if is_usual else _count(path, root.end("tag"))
    if features <= 1:
        return path, ""
    with opened(path) as file, created(target) as whole:
        whole.write(file.read(root.end("tag")) + b"<Document>")
        copyfileobj(file, whole)
        whole.seek(-len(end[0]), 2)
        whole.write(b"</Document>" + end[0])
    return target, (
        f"The outermost element holds {features:,} features, where KML allows one; they were read as if they were in "
        "a Document."
    )


def _count(path: Path, start: int) -> int:
    """How many features are directly in the outermost element, which begins at `start`; 0 if tags do not match."""
    features = depth = 0
    inside = b""
    for token in _tokens(path, start):
        if inside or token["closes"]:
            inside = b"" if token["closes"] == inside else inside
        elif token["opens"]:
            inside = CLOSES[token["opens"]]
        elif token["ends"]:
            depth -= 1
        else:
            features += not depth and token["container"] != b"NetworkLinkControl"
            depth += bool(token["container"]) and not token[0].endswith(b"/>")
    return 0 if depth else features


def _tokens(path: Path, start: int) -> Iterator[re.Match[bytes]]:
    """The tags and the like in the file at `path`, from byte `start` on."""
    text = b""
    with opened(path) as file:
        file.seek(start)
        while chunk := file.read(PIECE):
            text += chunk
            end = max(text.rfind(b"<"), text.rfind(b">") + 1, len(text) - LONGEST_TAG)
            yield from TOKEN.finditer(text, 0, end)
            text = text[end:]
        yield from TOKEN.finditer(text)
