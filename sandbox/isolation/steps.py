"""What a layer does, written down: system calls in order, for whichever process is to be put behind it.

The spawner writes the steps of a run, layer by layer. A process that is Python takes them by `take`; a fork of ogr2ogr
takes the same bytes by `take_steps` in forkserver.c. So both do the same, and neither knows one layer from another.

Each layer's part is a head, its steps, and the data that they point to; a step is a call with up to six arguments.
"""

import ctypes
import errno
import struct
from collections.abc import Sequence
from enum import IntEnum
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
    """What an argument stands for; as `enum kind` in forkserver.c."""

    VALUE = 0
    """Itself."""
    ADDRESS = 1
    """Where the data of this part has this offset."""
    RESULT = 2
    """What the step of this number in this part has returned."""
    DESCRIPTOR = 3
    """The descriptor of this number among those that come with the steps."""


class Argument(NamedTuple):
    """An argument whose value only the process that takes the step knows."""

    kind: _Kind
    value: int


def descriptor(place: int) -> Argument:
    """A descriptor by its place among those that come with the steps."""
    return Argument(_Kind.DESCRIPTOR, place)


class Steps:
    """The steps of one layer while they are written."""

    def __init__(self, layer: str) -> None:
        self._layer = layer.encode()
        self._steps: list[bytes] = []
        self._data = bytearray()

    def data(self, content: bytes) -> Argument:
        """The address of `content`, with a zero byte after it."""
        offset = len(self._data)
        self._data += content + bytes(_WORD - len(content) % _WORD)
        return Argument(_Kind.ADDRESS, offset)

    def call(self, name: str, *arguments: int | bytes | Argument, expected: int = _ANY, tolerated: int = 0) -> Argument:
        """Make a system call; returns its result, for later steps.

        It fails the run unless it returns `expected`, or anything where nothing is, or fails with `tolerated`.

        Raises:
            OSError: the calls of this machine are not known.
        """
        return self._add(number_of(name), arguments, expected, tolerated)

    def store(self, area: Argument, offset: int, value: Argument, size: int) -> None:
        """Write the first `size` bytes of a value into data that was given."""
        self._add(_STORE, (area._replace(value=area.value + offset), value, size), _ANY, 0)

    def _add(self, number: int, arguments: Sequence[int | bytes | Argument], expected: int, tolerated: int) -> Argument:
        told = [self._argument(argument) for argument in (*arguments, *[0] * (_ARGUMENTS - len(arguments)))]
        values, kinds = [each.value for each in told], [each.kind for each in told]
        self._steps.append(_STEP.pack(number, *values, expected, tolerated, 0, *kinds))
        return Argument(_Kind.RESULT, len(self._steps) - 1)

    def _argument(self, given: int | bytes | Argument) -> Argument:
        if isinstance(given, Argument):
            return given
        return self.data(given) if isinstance(given, bytes) else Argument(_Kind.VALUE, given)

    def packed(self) -> bytes:
        """This layer's part of the steps of a run."""
        head = _PART.pack(self._layer, len(self._steps), len(self._data))
        return b"".join((head, *self._steps, self._data))


def take(steps: bytes, descriptors: Sequence[int] = ()) -> None:
    """Take the steps of all parts in this process, for good.

    Raises:
        OSError: one of them failed; the message names its layer. The process must not go on.
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
        told = zip(fields[-_ARGUMENTS:], fields[:_ARGUMENTS], strict=True)
        values = [_value(kind, value, data, results, descriptors) for kind, value in told]
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
