"""Takes the values of GPX extensions out of the elements around them, in which its driver reads none.

Receivers record heart rates, cadences and temperatures so: `<extensions><x:TrackPointExtension><x:hr>80</x:hr>…`.
"""

import re
from functools import partial
from pathlib import Path

from service.formats.mending import Mending
from service.formats.xml_columns import Room

_VALUE = rb"<([\w.:-]++)>[^<>]*+</\%d>\s*+"
_SPACES = rb"(?:\s++xmlns(?::[\w.-]++)?+\s*+=\s*+\"[^\"<>]*+\")*+"
_HOLDER = rb"<([\w.:-]++)" + _SPACES + rb">\s*+((?:" + _VALUE + rb")++)</\%d>\s*+"
HOLDER = re.compile(_HOLDER % (3, 1))
"""An element that holds values alone: no attributes, no elements within them."""
ONLY_VALUES = re.compile(rb"\s*+(?:" + _VALUE % 1 + rb"|" + _HOLDER % (4, 2) + rb")*+")
NAME = re.compile(rb"<([\w.:-]++)>")
END = b"</extensions>"
EXTENSIONS = re.compile(rb"<extensions>([^<]*+(?:<(?!/?extensions\b)[^<]*+)*+)" + END)
HELD = re.compile(rb"<extensions>\s*+(?:" + _VALUE % 1 + rb")*+<[^<>]++(?<!/)>\s*+<(?!/)")


def with_values_alone(path: Path, target: Path, text: Path | None = None) -> tuple[Path, str]:
    """As `Mend`.

    Raises:
        Rejection: there are too many names of values.
    """
    take_out = partial(_taken_out, {}, Room())
    return Mending(HELD, take_out, end=END, replaced=EXTENSIONS)(path, target, text)


def _taken_out(holders: dict[bytes, bytes], room: Room, extensions: re.Match[bytes]) -> bytes:
    """The extensions without the elements around values, unless something else, or two of a name, would be lost.

    `holders` are the elements that have been around the values of each name: if others are, it means something else.
    """
    if ONLY_VALUES.fullmatch(extensions[1]) is None:
        return extensions[0]
    values = HOLDER.sub(rb"\2", extensions[1])
    names = NAME.findall(values)
    around = {name: holder[1] for holder in HOLDER.finditer(extensions[1]) for name in NAME.findall(holder[2])}
    for name, holder in around.items():
        if name not in holders:
            room.take(name, holder)
    if len(set(names)) < len(names) or any(holders.setdefault(name, around[name]) != around[name] for name in around):
        return extensions[0]
    return b"<extensions>" + values + END
