"""What a layer does, as data: an ordered list of system calls for the process to be confined.

The spawner writes the steps of a run, layer by layer. A Python process takes them with `take`; a fork of ogr2ogr takes
the same bytes with `take_steps` in forkserver.c. Both therefore do the same, and neither knows any layer.

A layer's part consists of a header, its steps, and the data that they point to; a step is a call with up to six
arguments.
"""

import ctypes
import errno
import struct
from collections.abc import Iterable, Sequence
from enum import IntEnum
from functools import lru_cache
from typing import Final, NamedTuple

from sandbox import syscalls
from sandbox.isolation.system_calls import number_of

# As `struct part`, `struct step` and `STORE` in forkserver.c.
_PART: Final = struct.Struct("=32sII")
_STEP: Final = struct.Struct("=10q6B2x")
_STORE: Final = -1
_ARGUMENTS: Final = 6
_ANY: Final = -(1 << 63)
_WORD: Final = 8

_call: Final = syscalls.typed(*[ctypes.c_long] * _ARGUMENTS)


class _Kind(IntEnum):
    """The kind of an argument; as `enum kind` in forkserver.c."""

    VALUE = 0
    """The value itself."""
    ADDRESS = 1
    """The address at this offset in the data of this part."""
    RESULT = 2
    """The result of the step with this number in this part."""
    DESCRIPTOR = 3
    """The descriptor with this number among those that accompany the steps."""


_NO_KINDS = (_Kind.VALUE,) * _ARGUMENTS
_NO_VALUES = (0,) * _ARGUMENTS


class Argument(NamedTuple):
    """An argument whose value is known only to the process that takes the step."""

    kind: _Kind
    value: int


def descriptor(place: int) -> Argument:
    """A descriptor by its position among those that accompany the steps."""
    return Argument(_Kind.DESCRIPTOR, place)


class Template(NamedTuple):
    """A layer's part of the steps of any run, which differ in texts alone, and not in the lengths of these."""

    before: bytes
    after: bytes

    def filled(self, texts: Iterable[bytes]) -> bytes:
        """The part of a run with these texts; their lengths must be those that were reserved."""
        return b"".join((self.before, *map(_terminated, texts), self.after))


class Steps:
    """Builds the steps of one layer."""

    def __init__(self, layer: str) -> None:
        self._layer = layer.encode()
        self._steps: list[bytes] = []
        self._data = bytearray()
        self._reserved = 0

    def data(self, content: bytes) -> Argument:
        """The address of `content`, with a zero byte after it."""
        offset = len(self._data)
        self._data += _terminated(content)
        return Argument(_Kind.ADDRESS, offset)

    def reserve(self, lengths: Iterable[int]) -> list[Argument]:
        """The addresses of texts of these lengths, which a template is filled with; before any other data."""
        addresses = [self.data(bytes(length)) for length in lengths]
        self._reserved = len(self._data)
        return addresses

    def call(self, name: str, *arguments: int | bytes | Argument, expected: int = _ANY, tolerated: int = 0) -> Argument:
        """Add a system call; returns its result as an argument for later steps.

        The run fails unless the call returns `expected` (by default, any result) or fails with `tolerated`.

        Raises:
            OSError: this machine's system calls are not known.
        """
        return self._add(number_of(name), arguments, expected, tolerated)

    def store(self, area: Argument, offset: int, value: Argument, size: int) -> None:
        """Add a step that writes the first `size` bytes of a value into the data at `area`."""
        self._add(_STORE, (area._replace(value=area.value + offset), value, size), _ANY, 0)

    def _add(self, number: int, arguments: Sequence[int | bytes | Argument], expected: int, tolerated: int) -> Argument:
        kinds, values = list(_NO_KINDS), list(_NO_VALUES)
        for place, argument in enumerate(arguments):  # plainly written, because each run takes this dozens of times
            if isinstance(argument, int):
                values[place] = argument
            else:
                kinds[place], values[place] = self.data(argument) if isinstance(argument, bytes) else argument
        self._steps.append(_STEP.pack(number, *values, expected, tolerated, 0, *kinds))
        return Argument(_Kind.RESULT, len(self._steps) - 1)

    def packed(self) -> bytes:
        """This layer's part of the steps of a run."""
        if self._reserved:
            raise ValueError("the reserved texts are missing: fill the template")
        return b"".join(self.template())

    def template(self) -> Template:
        """This layer's part of the steps of every run with texts of the reserved lengths."""
        head = _PART.pack(self._layer, len(self._steps), len(self._data))
        return Template(b"".join((head, *self._steps)), bytes(self._data[self._reserved :]))


@lru_cache
def plain_steps(layer: str, *calls: tuple[str, *tuple[int | bytes | Argument, ...]]) -> bytes:
    """The part of a layer that makes these calls and nothing else: each is a name and its arguments."""
    steps = Steps(layer)
    for name, *arguments in calls:
        steps.call(name, *arguments)
    return steps.packed()


def _terminated(text: bytes) -> bytes:
    """A text with a zero byte after it, up to the end of a word."""
    return text + bytes(_WORD - len(text) % _WORD)


def take(steps: bytes, descriptors: Sequence[int] = ()) -> None:
    """Take the steps of all parts in this process, irrevocably.

    Raises:
        OSError: a step failed; the message names its layer. The process must not continue.
    """
    memory = ctypes.create_string_buffer(steps, len(steps))
    place = 0
    while place < len(steps):
        layer, count, data_bytes = _PART.unpack_from(steps, place)
        first = place + _PART.size
        data = first + count * _STEP.size
        try:
            _take_part(memory.raw[first:data], ctypes.addressof(memory) + data, descriptors)
        except OSError as error:
            raise OSError(error.errno, f"{layer.rstrip(bytes(1)).decode()}: {error.strerror}") from error
        place = data + data_bytes


def _take_part(steps: bytes, data: int, descriptors: Sequence[int]) -> None:
    results: list[int] = []
    for number, *fields in _STEP.iter_unpack(steps):
        expected, tolerated = fields[_ARGUMENTS : _ARGUMENTS + 2]
        arguments = zip(fields[-_ARGUMENTS:], fields[:_ARGUMENTS], strict=True)
        values = [_value(kind, value, data, results, descriptors) for kind, value in arguments]
        results.append(_take_step(number, values, tolerated))
        if expected not in {_ANY, results[-1]}:
            raise OSError(errno.ESRCH, "an unexpected answer")


def _value(kind: int, value: int, data: int, results: Sequence[int], descriptors: Sequence[int]) -> int:
    match kind:
        case _Kind.ADDRESS:
            return data + value
        case _Kind.RESULT:
            return results[value]
        case _Kind.DESCRIPTOR:
            return descriptors[value]
    return value


def _take_step(number: int, values: Sequence[int], tolerated: int) -> int:
    if number == _STORE:
        where, value, size, *_ = values
        ctypes.memmove(where, struct.pack("=q", value), size)
        return 0
    try:
        return _call(number, *values)
    except OSError as error:
        if error.errno != tolerated:
            raise
        return -1
