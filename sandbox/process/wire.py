"""The messages between a service and its spawner: msgpack, prefixed with its length in four bytes."""

import struct
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TypeVar

import msgspec

from sandbox.command import Command
from sandbox.config import Config, LauncherName
from sandbox.report import SandboxReport
from sandbox.verdict import Verdict

SIGNALLED = 128
"""The exit code of a keeper whose spawner was killed is this plus the number of the signal, as in a shell."""

_LENGTH = struct.Struct("!I")


class Configure(msgspec.Struct, frozen=True, tag=True):
    """The first message to the spawner."""

    config: Config


class Start(msgspec.Struct, frozen=True, tag=True):
    """Run a command in a slot; no other command runs there until the verdict.

    With a `launcher`, only that launcher may start it.
    """

    run: int
    slot: int
    command: Command
    launcher: LauncherName | None = None


class Stop(msgspec.Struct, frozen=True, tag=True):
    """End a run; its verdict follows as usual."""

    run: int


class Suspend(msgspec.Struct, frozen=True, tag=True):
    """Suspend what runs in a slot, now or later, until it is resumed."""

    slot: int


class Resume(msgspec.Struct, frozen=True, tag=True):
    """Resume what runs in a slot."""

    slot: int


class Use(msgspec.Struct, frozen=True, tag=True):
    """Use only these launchers from now on."""

    launchers: tuple[LauncherName, ...]


class Ping(msgspec.Struct, frozen=True, tag=True):
    """Ask whether the spawner still works."""


class Ready(msgspec.Struct, frozen=True, tag=True):
    """The spawner accepts commands; contains its report."""

    report: SandboxReport


class Finished(msgspec.Struct, frozen=True, tag=True):
    """A run has ended and no process of it is left."""

    run: int
    verdict: Verdict


class Pong(msgspec.Struct, frozen=True, tag=True):
    """It does."""


Message = TypeVar("Message", bound=msgspec.Struct)

ToSpawner = Configure | Start | Stop | Suspend | Resume | Use | Ping
FromSpawner = Ready | Finished | Pong


def _plain(value: object) -> object:
    if isinstance(value, Path):
        return str(value)
    raise NotImplementedError(type(value))


def _typed(kind: type, value: object) -> object:
    if kind is Path and isinstance(value, str):
        return Path(value)
    raise NotImplementedError(kind)


pack = msgspec.msgpack.Encoder(enc_hook=_plain).encode
"""Encodes a message without a frame."""
decode_from_spawner: Callable[[bytes], FromSpawner] = msgspec.msgpack.Decoder(FromSpawner, dec_hook=_typed).decode
"""Decodes a message from the spawner."""


def decoder_for_spawner(place: Callable[[str], str] = str) -> Callable[[bytes], ToSpawner]:
    """What decodes a message from the service; `place` says where the spawner finds what the service has at a path.

    A command thereby takes one Path: to create another would cost a twentieth of what the spawner does for a run.
    """

    def typed(kind: type, value: object) -> object:
        return _typed(kind, place(value) if isinstance(value, str) else value)

    return msgspec.msgpack.Decoder(ToSpawner, dec_hook=typed).decode


def encode(message: ToSpawner | FromSpawner) -> bytes:
    """Encode a message with its frame."""
    body = pack(message)
    return _LENGTH.pack(len(body)) + body


class Frames:
    """Splits a byte stream into the bodies of its messages."""

    def __init__(self) -> None:
        self._buffer = bytearray()

    def feed(self, data: bytes) -> Iterator[bytes]:
        """Add received bytes; yields every body that is complete."""
        self._buffer += data
        while len(self._buffer) >= _LENGTH.size:
            (length,) = _LENGTH.unpack_from(self._buffer)
            end = _LENGTH.size + length
            if len(self._buffer) < end:
                return
            body = bytes(self._buffer[_LENGTH.size : end])
            del self._buffer[:end]
            yield body


def unpack(body: bytes, kind: type[Message]) -> Message:
    """Decode a message that `pack` encoded."""
    return msgspec.msgpack.decode(body, type=kind, dec_hook=_typed)
