"""Renames data of KML that its driver would confuse with elements. Runs in the sandbox.

`python -m …kml_names KML RENAMED_KML NAMES_FILE`. Data called `name`, in any case, would replace the element `name` of
its feature, and the like. Uses only the standard library.
"""

import html
import json
import re
import sys
from collections.abc import Mapping
from pathlib import Path


def _up_to(tag: bytes) -> bytes:
    """A regular expression of what an element holds: up to the next tag of its kind, so that no byte is read twice."""
    return rb"(?:[^<]++|<(?!/?" + tag + rb"\b))*+"


_NAME = rb"\bname\s*=\s*[\"'](?P<name>[^\"'<>]*)[\"']"
DATA = re.compile(
    rb"<(?P<tag>Data|SimpleData)\b[^<>]*?"
    + _NAME
    + rb"[^<>]*+(?<!/)>(?P<value>"
    + _up_to(rb"(?P=tag)")
    + rb")</(?P=tag)>"
)
NAMED = re.compile(rb"<(?:Data|SimpleData|SimpleField)\b[^<>]*?" + _NAME)
FEATURE = re.compile(rb"<Placemark\b" + _up_to(b"Placemark") + rb"</Placemark>")
VALUE = re.compile(rb"<value>(" + _up_to(b"value") + rb")</value>")
CHARACTERS = re.compile(r"<!\[CDATA\[(.*?)\]\]>", re.DOTALL)
DATE = re.compile(r"\d{4}([-/])\d\d\1\d\d([T ].*)?", re.ASCII)
WHOLE = re.compile(r"[+-]?\d{1,9}", re.ASCII)
TEXTS = {name: re.compile(rb"<%b>(%b)</%b>" % (name, _up_to(name), name)) for name in (b"name", b"description")}
"""The elements that hold texts."""
TYPED = {
    **dict.fromkeys((b"timestamp", b"begin", b"end"), DATE),
    **dict.fromkeys((b"visibility", b"tessellate", b"extrude", b"draworder"), WHOLE),
}
"""The columns that the driver makes of other elements, and what their values look like."""


def main(kml: str, renamed_kml: str, names_file: str) -> None:
    """Write `kml` to `renamed_kml` without data that would clash, and a map of old to new names to `names_file`."""
    content = Path(kml).read_bytes()
    clashing: set[bytes] = set()
    for feature in FEATURE.finditer(content):
        clashing |= _clashing(feature[0])
    names = _new_names(content, clashing)
    Path(renamed_kml).write_bytes(NAMED.sub(lambda found: _renamed(found, names), content) if names else b"")
    shown = {old.decode("utf-8", "replace"): new.decode("utf-8", "replace") for old, new in names.items()}
    Path(names_file).write_text(json.dumps(shown), encoding="utf-8")


def _clashing(feature: bytes) -> set[bytes]:
    """The names of data in `feature` whose values differ from the element of that name, or are not of its type."""
    found = set()
    own = {name: _text(held[1]) for name, element in TEXTS.items() if (held := element.search(feature))}
    for data in DATA.finditer(feature):
        name = data["name"].lower()
        value = _value(data)
        replaces = own.get(name, "") not in {"", value}
        if replaces or (value and name in TYPED and TYPED[name].fullmatch(value) is None):
            found.add(data["name"])
    return found


def _value(data: re.Match[bytes]) -> str:
    inner = VALUE.search(data["value"]) if data["tag"] == b"Data" else None
    return _text(data["value"] if inner is None else inner[1])


def _text(content: bytes) -> str:
    """The text of an element, without blanks around it."""
    text = content.decode("utf-8", "replace")
    inner = CHARACTERS.fullmatch(text.strip())
    return (html.unescape(text) if inner is None else inner[1]).strip()


def _new_names(content: bytes, clashing: set[bytes]) -> dict[bytes, bytes]:
    """A name that is free for each of `clashing`."""
    taken = {found["name"].lower() for found in NAMED.finditer(content)} if clashing else set()
    names = {}
    for old in sorted(clashing):
        number = 2
        while (new := b"%b%d" % (old, number)).lower() in taken:
            number += 1
        taken.add(new.lower())
        names[old] = new
    return names


def _renamed(found: re.Match[bytes], names: Mapping[bytes, bytes]) -> bytes:
    start, end = found.start("name") - found.start(), found.end("name") - found.start()
    return found[0][:start] + names.get(found["name"], found["name"]) + found[0][end:]


if __name__ == "__main__":
    main(*sys.argv[1:4])
