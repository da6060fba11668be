"""The records of intake: what a form may contain, and what it contained."""

from collections.abc import Mapping
from pathlib import Path

import msgspec

MEBIBYTE = 1024 * 1024


class FormSpec(msgspec.Struct, frozen=True, kw_only=True):
    """The form that an endpoint accepts."""

    file_field: str
    """The name of the part that carries a file."""
    fields: frozenset[str] = frozenset()
    """The names of the text parts that are kept; of all others, which have the same limits, only the names are.

    So a client can send the same form to two endpoints, and learns what one of them ignored.
    """
    many: bool = False
    """Whether there may be several files (a batch). One above the maximum then fails its entry, not the request."""
    digest: bool = False
    """Whether to compute the SHA-256 of the files while they arrive."""


class IntakeLimits(msgspec.Struct, frozen=True, kw_only=True):
    """Maximum sizes and minimum speed of uploads (interface 8)."""

    max_file_bytes: int = 100 * MEBIBYTE
    max_batch_bytes: int = 200 * MEBIBYTE
    max_batch_files: int = 20
    max_field_bytes: int = 8192
    idle_seconds: float = 30.0
    total_seconds: float = 3600.0
    min_bytes_per_second: int = 4096


class Upload(msgspec.Struct, frozen=True, kw_only=True):
    """A received file."""

    untrusted_name: str
    """The last component of the client's file name, without control characters; never part of a path."""
    path: Path
    """The path of its bytes, alone in a private directory; there is nothing at it if the file is `oversize`."""
    size_bytes: int
    """The bytes received, including all those of an oversize file."""
    digest: bytes | None = None
    """The SHA-256 of the bytes, if the form requests it and the file was kept."""
    oversize: bool = False
    """Whether the file exceeds the maximum size and was not kept (in a batch only)."""

    @property
    def directory(self) -> Path:
        """The private directory, which `Workspace.handover` hands over to the job."""
        return self.path.parent


class Form(msgspec.Struct, frozen=True, kw_only=True):
    """A received form; repeated fields and files keep their order."""

    fields: Mapping[str, tuple[str, ...]]
    files: tuple[Upload, ...]
    unknown_fields: tuple[str, ...] = ()
    """The names of the other text parts as the client wrote them, without duplicates."""
