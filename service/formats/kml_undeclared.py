"""Finds typed data of KML that no Schema of its file declares, which the driver leaves out.

For the driver, as here, ASCII letters are the same as their capitals.
"""

import re

from service.formats.names import listed, quotes

NAMED = re.compile(
    rb"<Simple(?:(?P<field>Field)|Data)\s[^<>]*?\bname\s*=\s*(?:\"(?P<name>[^\"<>]*)\"|'(?P<other>[^'<>]*)')"
)
"""What declares data, or is some."""
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
        for field, *names in set(NAMED.findall(text)):
            name = b"".join(names).strip()
            if field:
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
