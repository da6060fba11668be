"""The records of intake: what a form may hold, and what it held."""

from collections.abc import Mapping
from pathlib import Path

import msgspec

MEBIBYTE = 1024 * 1024


class FormSpec(msgspec.Struct, frozen=True, kw_only=True):
    """What one endpoint takes.

    Attributes:
        file_field: name of the part that carries a file.
        fields: names of the text parts that are kept; of any other, read within the same caps, only the name is kept,
            so that a client may send the same form to two endpoints and is told what one of them ignored.
        many: whether `file_field` may come several times (interface 7.1: a batch). A file above the ceiling then is one
            entry's failure, else it is the request's.
        digest: whether the files' SHA-256 is computed while they arrive.
    """

    file_field: str
    fields: frozenset[str] = frozenset()
    many: bool = False
    digest: bool = False


class IntakeLimits(msgspec.Struct, frozen=True, kw_only=True):
    """What a client may send, and how slowly (interface 8)."""

    max_file_bytes: int = 100 * MEBIBYTE
    max_batch_bytes: int = 200 * MEBIBYTE
    max_batch_files: int = 20
    max_field_bytes: int = 8192
    idle_seconds: float = 30.0
    total_seconds: float = 3600.0
    min_bytes_per_second: int = 4096


class Upload(msgspec.Struct, frozen=True, kw_only=True):
    """A file as it was received.

    Attributes:
        untrusted_name: last component of the client's file name, without control characters; never part of a path.
        path: where its bytes are, alone in a private directory; nothing is there when `oversize`.
        size_bytes: bytes received, counted to the end of an oversize file too.
        digest: SHA-256 of the bytes when the form asks for it and the file was kept.
        oversize: the file is above the ceiling and was not kept (batch only).
    """

    untrusted_name: str
    path: Path
    size_bytes: int
    digest: bytes | None = None
    oversize: bool = False

    @property
    def directory(self) -> Path:
        """The private directory, which `Workspace.handover` gives to the job."""
        return self.path.parent


class Form(msgspec.Struct, frozen=True, kw_only=True):
    """A form as it was received; repeated fields and files keep their order."""

    fields: Mapping[str, tuple[str, ...]]
    files: tuple[Upload, ...]
    unknown_fields: tuple[str, ...] = ()
    """The names of the other text parts, as the client wrote them, each once."""
