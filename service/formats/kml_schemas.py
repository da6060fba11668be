"""Finds typed data of KML that the driver leaves out: what no Schema declares, or one within a Folder.

It writes such data itself: of dates, it declares none, and GDAL 1 put each Schema into a Folder. For the driver, as
here, ASCII letters are the same as their capitals.
"""

import html
import re
from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from itertools import islice
from pathlib import Path

from service.formats.left_out import pieces
from service.formats.names import listed, quotes
from service.formats.xml_columns import Room

QUOTED = rb"\s*=\s*(?:\"([^\"<]*)\"|'([^'<]*)')"
NAMED = re.compile(rb"<Simple(Field|Data)\s[^<>]*?\bname" + QUOTED)
"""What declares data, or is some."""
_ATTRIBUTE = rb"(?>[^<>]*?\b%b" + QUOTED + rb")"
_ID = rb"(?:" + _ATTRIBUTE % b"id" + rb"|" + _ATTRIBUTE % b"name" + rb")"
"""The id of a Schema, or else its name, by which some programs refer to it."""
SCHEMA_ID = re.compile(rb"<Schema\s" + _ID)
SCHEMA_URL = re.compile(rb"<SchemaData(?=[\s>])(?:" + _ATTRIBUTE % b"schemaUrl" + rb")?+")
SCHEMA_OR_NAMED = re.compile(
    rb"<Schema(?:(Data)(?=[\s>])(?:" + _ATTRIBUTE % b"schemaUrl" + rb")?+|\s" + _ID + rb")|" + NAMED.pattern
)
COMMENT = rb"<!--[^-]*+(?:-(?!->)[^-]*+)*+"
CHARACTERS = rb"<!\[CDATA\[[^\]]*+(?:\](?!\]>)[^\]]*+)*+"
"""A comment and the like, in which nothing is a tag, without its end. No byte is read twice."""
NO_MARKUP = re.compile(COMMENT + rb"|" + CHARACTERS)
IN_FOLDER = re.compile(
    rb"<Folder[\s>][^<]*+(?:<(?!/?(?:Folder|Document|Placemark|Schema)\b)[^<]*+)*+"
    rb"((?:<Schema\s[^<]*+(?:<(?!/?Schema\b)[^<]*+)*+</Schema>\s*+)++)"
)
LONGEST_TAG = 16 << 10
MOST_MOVED = 1 << 20
MOST_SCHEMAS = 10_000
LISTED = 20


class UndeclaredData:
    """Finds the names of typed data that are not declared, in the text of a KML."""

    def __init__(self) -> None:
        self._declared: dict[bytes, bytes] = {}
        self._used: dict[bytes, bytes] = {}
        self._room = Room()
        self._rest = b""

    def add(self, text: bytes) -> None:
        """Look at the next piece of the text.

        Raises:
            Rejection: there are too many names.
        """
        text = self._rest + text
        for element, *names in set(NAMED.findall(NO_MARKUP.sub(b"", text))):
            name = b"".join(names).strip()
            key, kept = _key(name), self._declared if element == b"Field" else self._used
            if key not in kept:
                self._room.take(key, name)
                kept[key] = name
        self._rest = text[max(text.rfind(b"<"), len(text) - LONGEST_TAG) :]

    def told(self) -> list[str]:
        """What to tell of the text, which has ended."""
        names = sorted(name for key, name in self._used.items() if key not in self._declared)
        if not names:
            return []
        shown = listed(quotes(name.decode("utf-8", "replace") for name in names), LISTED)
        return [f"Typed data that no Schema of the file declares ({shown}) was left out."]


def referred(url: bytes, ids: Collection[bytes]) -> bytes:
    """Which of the Schemas with `ids` typed data with a `schemaUrl` is of: the first one if it names none of them.

    The driver leaves out data in a Folder that names none.
    """
    name = url.rpartition(b"#")[2]
    return name if name in ids else next(iter(ids), name)


def has_stray_data(text: bytes) -> bool:
    """Whether a text has a Schema without an id, or typed data that does not name a Schema of the text by its id."""
    bare = NO_MARKUP.sub(b"", text)
    ids = {double or single for double, single, *_ in SCHEMA_ID.findall(bare)}
    urls = {b"".join(found) for found in SCHEMA_URL.findall(bare)}
    return b"" in ids or any(url.removeprefix(b"#") not in ids for url in urls)


def schema_ids(path: Path) -> Mapping[bytes, None]:
    """The ids of the Schemas of the KML at `path`, or their names if they have none, in their order. Blocking.

    None of too many.
    """
    texts = (NO_MARKUP.sub(b"", text) for text in pieces(path))
    found = (b"".join(names) for text in texts for names in SCHEMA_ID.findall(text))
    ids = dict.fromkeys(filter(None, islice(found, MOST_SCHEMAS)))
    return {} if len(ids) == MOST_SCHEMAS else ids


def undeclared_in(text: bytes, ids: Collection[bytes]) -> Mapping[bytes, Sequence[bytes]]:
    """By the id of each Schema in a text: the names of data there that refers to it, but that it does not declare.

    `ids` are those of all Schemas.
    """
    declared: defaultdict[bytes, set[bytes]] = defaultdict(set)
    used: defaultdict[bytes, dict[bytes, bytes]] = defaultdict(dict)
    schema = referred(b"", ids)
    for kind, *named, element, double, single in SCHEMA_OR_NAMED.findall(NO_MARKUP.sub(b"", text)):
        name = (double or single).strip()
        if kind == b"Data":
            schema = referred(b"".join(named), ids)
        elif not element:
            schema = b"".join(named)
            declared[schema].update()
        elif element == b"Field":
            declared[schema].add(_key(name))
        elif name:
            used[schema].setdefault(_key(name), name)
    missing = {
        schema: [used[schema][key] for key in used[schema] if key not in declared[schema]] for schema in declared
    }
    return {schema: names for schema, names in missing.items() if names}


def respelled_in(text: bytes) -> Mapping[bytes, bytes]:
    """Names of typed data that a text declares in another case alone, each as it is declared.

    Since GDAL 3.12, the driver tells names apart that differ in case.
    """
    declared: set[bytes] = set()
    used: set[bytes] = set()
    for element, *names in set(NAMED.findall(NO_MARKUP.sub(b"", text))):
        (declared if element == b"Field" else used).add(b"".join(names).strip())
    spelled = {name.lower(): name for name in declared}
    return {name: spelled[name.lower()] for name in used - declared if name.lower() in spelled}


def declared_in_folders(path: Path) -> bytes:
    """What Schemas there are at the beginning of Folders of the KML at `path`, up to some length. Blocking."""
    found: dict[bytes, None] = {}
    for text in pieces(path):
        found.update(dict.fromkeys(IN_FOLDER.findall(text)))
        if sum(map(len, found)) > MOST_MOVED:
            break
    return b"".join(found)


def _key(name: bytes) -> bytes:
    """The same for all names that are one for the driver."""
    if b"&" in name:
        name = html.unescape(name.decode("utf-8", "surrogateescape")).encode("utf-8", "surrogatepass")
    return name.lower()
