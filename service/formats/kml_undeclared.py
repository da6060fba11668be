"""Finds typed data of KML that no Schema of its file declares, which the driver leaves out.

It writes such data itself: of dates, it declares none. For the driver, as here, ASCII letters are the same as their
capitals.
"""

import re
from collections import defaultdict
from collections.abc import Mapping, Sequence

from service.formats.names import listed, quotes

_QUOTED = rb"\s*=\s*(?:\"([^\"<>]*)\"|'([^'<>]*)')"
NAMED = re.compile(rb"<Simple(Field|Data)\s[^<>]*?\bname" + _QUOTED)
"""What declares data, or is some."""
SCHEMA_OR_NAMED = re.compile(rb"<Schema(Data\s[^<>]*?\bschemaUrl|\s[^<>]*?\bid)" + _QUOTED + rb"|" + NAMED.pattern)
LONGEST_TAG = 16 << 10
LISTED = 20


class UndeclaredData:
    """Finds the names of typed data that are not declared, in the text of a KML."""

    def __init__(self) -> None:
        self._declared: set[bytes] = set()
        self._used: dict[bytes, bytes] = {}
        self._rest = b""

    def add(self, text: bytes) -> None:
        """Look at the next piece of the text."""
        text = self._rest + text
        for element, *names in set(NAMED.findall(text)):
            name = b"".join(names).strip()
            if element == b"Field":
                self._declared.add(name.lower())
            else:
                self._used.setdefault(name.lower(), name)
        self._rest = text[max(text.rfind(b"<"), len(text) - LONGEST_TAG) :]

    @property
    def warnings(self) -> list[str]:
        """What to tell about them; nothing of a file without any Schema."""
        names = sorted(name for key, name in self._used.items() if key not in self._declared)
        if not names or not self._declared:
            return []
        shown = listed(quotes(name.decode("utf-8", "replace") for name in names), LISTED)
        return [f"Typed data that no Schema of the file declares ({shown}) was left out."]


def undeclared_in(text: bytes) -> Mapping[bytes, Sequence[bytes]]:
    """By the id of each Schema in a text: the names of data there that refers to it, but that it does not declare."""
    declared: defaultdict[bytes, set[bytes]] = defaultdict(set)
    used: defaultdict[bytes, dict[bytes, bytes]] = defaultdict(dict)
    schema = b""
    for kind, *ids, element, double, single in SCHEMA_OR_NAMED.findall(text):
        name = (double or single).strip()
        if kind:
            schema = b"".join(ids).rpartition(b"#")[2]
        elif element == b"Field":
            declared[schema].add(name.lower())
        elif name:
            used[schema].setdefault(name.lower(), name)
    missing = {
        schema: [used[schema][key] for key in used[schema] if key not in declared[schema]] for schema in declared
    }
    return {schema: names for schema, names in missing.items() if names}
