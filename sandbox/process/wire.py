"""The messages between a service and its spawner: msgpack behind a length of four bytes."""

import struct
from collections.abc import Iterator
from pathlib import Path
from typing import TypeVar

import msgspec

from sandbox.command import Command
from sandbox.config import Config, LauncherName
from sandbox.report import Report
from sandbox.verdict import Verdict

_LENGTH = struct.Struct("!I")


class Configure(msgspec.Struct, frozen=True, tag=True):
    """The first message to the spawner."""

    config: Config


class Start(msgspec.Struct, frozen=True, tag=True):
    """Run a command in a slot; no other command runs in that slot until its verdict.

    With a `launcher` it is started by that one or not at all.
    """

    run: int
    slot: int
    command: Command
    launcher: LauncherName | None = None


class Stop(msgspec.Struct, frozen=True, tag=True):
    """End a run; its verdict follows as for any other."""

    run: int


class Suspend(msgspec.Struct, frozen=True, tag=True):
    """Hold what runs in a slot, now or later, until it is resumed."""

    slot: int


class Resume(msgspec.Struct, frozen=True, tag=True):
    """Let what runs in a slot go on."""

    slot: int


class Use(msgspec.Struct, frozen=True, tag=True):
    """Start commands by these launchers from now on."""

    launchers: tuple[LauncherName, ...]


class Ready(msgspec.Struct, frozen=True, tag=True):
    """The spawner takes commands; this is what it found."""

    report: Report


class Finished(msgspec.Struct, frozen=True, tag=True):
    """A run has ended and nothing of it is left."""

    run: int
    verdict: Verdict


Message = TypeVar("Message", bound=msgspec.Struct)

ToSpawner = Configure | Start | Stop | Suspend | Resume | Use
FromSpawner = Ready | Finished


def _plain(value: object) -> object:
    if isinstance(value, Path):
        return str(value)
    raise NotImplementedError(type(value))


def _typed(kind: type, value: object) -> object:
    if kind is Path and isinstance(value, str):
        return Path(value)
    raise NotImplementedError(kind)


_encoder = msgspec.msgpack.Encoder(enc_hook=_plain)
_to_spawner: msgspec.msgpack.Decoder[ToSpawner] = msgspec.msgpack.Decoder(ToSpawner, dec_hook=_typed)
_from_spawner: msgspec.msgpack.Decoder[FromSpawner] = msgspec.msgpack.Decoder(FromSpawner, dec_hook=_typed)


def encode(message: ToSpawner | FromSpawner) -> bytes:
    """One framed message."""
    body = _encoder.encode(message)
    return _LENGTH.pack(len(body)) + body


class Frames:
    """Cuts a byte stream into the bodies of its messages."""

    def __init__(self) -> None:
        self._buffer = bytearray()

    def feed(self, data: bytes) -> Iterator[bytes]:
        """Add received bytes; yields every body that is now complete."""
        self._buffer += data
        while len(self._buffer) >= _LENGTH.size:
            (length,) = _LENGTH.unpack_from(self._buffer)
            end = _LENGTH.size + length
            if len(self._buffer) < end:
                return
            body = bytes(self._buffer[_LENGTH.size : end])
            del self._buffer[:end]
            yield body


def pack(message: msgspec.Struct) -> bytes:
    """A message that needs no frame."""
    return _encoder.encode(message)


def unpack(body: bytes, kind: type[Message]) -> Message:
    """Read a message that was packed."""
    return msgspec.msgpack.decode(body, type=kind, dec_hook=_typed)


def decode_for_spawner(body: bytes) -> ToSpawner:
    """Read a message that the service sent."""
    return _to_spawner.decode(body)


def decode_from_spawner(body: bytes) -> FromSpawner:
    """Read a message that the spawner sent."""
    return _from_spawner.decode(body)
