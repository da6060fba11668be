"""Tells data of KML from the elements of features that have its name. Runs in the sandbox.

Drivers let data called `name` or `description`, in any case, replace the
element of its feature, or give it a column of another name. Here, data with other content than the element is renamed,
and all other data becomes the element.
"""

import html
import re
from collections.abc import Callable, Collection, Iterator, Mapping
from functools import partial
from pathlib import Path

_SKIPPED = rb"<!--[^-]*+(?:-(?!->)[^-]*+)*+|<!\[CDATA\[[^\]]*+(?:\](?!\]>)[^\]]*+)*+"
"""A comment and the like, in which nothing is a tag, without its end. No byte is read twice."""


def _up_to(tag: bytes) -> bytes:
    """A regular expression of what an element holds: up to the next tag of its kind, so that no byte is read twice."""
    return rb"(?:[^<]++|<(?!/?" + tag + rb"\b))*+"


def _outside(pattern: bytes) -> re.Pattern[bytes]:
    """Finds what is skipped, and outside of it `pattern`, as `wanted`."""
    return re.compile(_SKIPPED + rb"|(?P<wanted>" + pattern + rb")")


_NAME = rb"\bname\s*=\s*[\"'](?P<name>[^\"'<>]*)[\"']"
DATA = _outside(
    rb"<(?P<tag>Data|SimpleData)\b[^<>]*?"
    + _NAME
    + rb"[^<>]*+(?<!/)>(?P<value>"
    + _up_to(rb"(?P=tag)")
    + rb")</(?P=tag)>"
)
FIELD = _outside(
    rb"<SimpleField\b[^<>]*?" + _NAME + rb"[^<>]*+(?:(?<=/)>|>" + _up_to(b"SimpleField") + rb"</SimpleField>)"
)
"""What declares data."""
NAMED = re.compile(rb"<(?:Data|SimpleData|SimpleField)\b[^<>]*?" + _NAME)
FEATURE_END = b"</Placemark>"
FEATURE = _outside(rb"<Placemark\b(?:[^<]++|" + _SKIPPED + rb"|<(?!/?Placemark\b))*+" + FEATURE_END)
VALUE = re.compile(rb"<value>(" + _up_to(b"value") + rb")</value>")
CHARACTERS = re.compile(r"<!\[CDATA\[(.*?)\]\]>", re.DOTALL)
ELEMENTS = {name: re.compile(rb"<%b>(%b)</%b>" % (name, _up_to(name), name)) for name in (b"name", b"description")}
"""The elements, which hold texts."""


def main(kml: str, new_kml: str) -> dict[str, str]:
    """Write `kml` without data that is called like an element to `new_kml`, if it has any.

    Returns the new names of data that was renamed, by the old ones.
    """
    content = Path(kml).read_bytes()
    clashing: set[bytes] = set()
    alike = {field["name"] for field in _found(FIELD, content) if field["name"].lower() in ELEMENTS}
    for feature in _found(FEATURE, content):
        for name, clashes in _like_elements(feature[0]):
            (clashing if clashes else alike).add(name)
    names = _new_names(content, clashing)
    if names:
        content = NAMED.sub(lambda found: _renamed(found, names), content)
    if alike := alike - clashing:
        content = _replaced(FEATURE, partial(_with_elements, alike=alike), content)
        content = _replaced(FIELD, lambda field: b"" if field["name"] in alike else field[0], content)
    if names or alike:
        Path(new_kml).write_bytes(content)
    return {old.decode("utf-8", "replace"): new.decode("utf-8", "replace") for old, new in names.items()}


def _found(pattern: re.Pattern[bytes], content: bytes) -> Iterator[re.Match[bytes]]:
    return (found for found in pattern.finditer(content) if found["wanted"] is not None)


def _replaced(pattern: re.Pattern[bytes], replacement: Callable[[re.Match[bytes]], bytes], content: bytes) -> bytes:
    return pattern.sub(lambda found: found[0] if found["wanted"] is None else replacement(found), content)


def _like_elements(feature: bytes) -> Iterator[tuple[bytes, bool]]:
    """The names of data in `feature` that are those of elements, and whether the content is another."""
    held = {name: _text(found[1]) for name, element in ELEMENTS.items() if (found := element.search(feature))}
    for data in _found(DATA, feature):
        if (name := data["name"].lower()) in ELEMENTS:
            value = _value(data)
            yield data["name"], bool(value and held.get(name)) and held[name] != value
            held[name] = held.get(name) or value


def _with_elements(feature: re.Match[bytes], alike: Collection[bytes]) -> bytes:
    """A feature with elements in place of the data that is called so."""
    elements: dict[bytes, bytes] = {}

    def moved(data: re.Match[bytes]) -> bytes:
        if data["name"] not in alike:
            return data[0]
        if _value(data):
            name = data["name"].lower()
            elements[name] = b"<%b>%b</%b>" % (name, _content(data), name)
        return b""

    content = _replaced(DATA, moved, feature[0]).removesuffix(FEATURE_END)
    return b"".join((content, *elements.values(), FEATURE_END))


def _content(data: re.Match[bytes]) -> bytes:
    inner = VALUE.search(data["value"]) if data["tag"] == b"Data" else None
    return data["value"] if inner is None else inner[1]


def _value(data: re.Match[bytes]) -> str:
    return _text(_content(data))


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
