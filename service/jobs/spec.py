"""The specification of a job: everything needed to run it, as plain data that can cross processes and hosts.

It names formats by their tokens, and files by their paths relative to the job's directory. The process that runs the
job supplies the directory on its own host.
"""

from pathlib import Path
from typing import Any

import msgspec

from service.formats.registry import by_token
from service.formats.request import ConversionRequest
from service.formats.source import Part, Source
from service.ids import AccountId
from service.jobs.records import Job


class PartSpec(msgspec.Struct, frozen=True):
    """One dataset of a source: its files by extension, the one to open first, and its layer's name."""

    files: dict[str, str]
    layer: str
    shorter: str = ""


class SourceSpec(msgspec.Struct, frozen=True, kw_only=True):
    """A `Source` without host paths: `format` is a token, files are relative to the job's directory."""

    format: str
    parts: tuple[PartSpec, ...]
    stem: str
    prefix: str
    options: tuple[str, ...]
    warnings: tuple[str, ...]
    warnings_without: dict[str, str]
    looked_seconds: float = 0.0

    def resolve(self, directory: Path) -> Source:
        """Return the source whose files are in `directory` on this host."""
        parts = (
            Part(
                {end: directory / name for end, name in part.files.items()},
                part.layer,
                directory / part.shorter if part.shorter else None,
            )
            for part in self.parts
        )
        return Source(**_fields(self, format=by_token(self.format), parts=tuple(parts)))


class JobSpec(msgspec.Struct, frozen=True, kw_only=True):
    """An accepted job. Its output is stored under `object_key`, which is recorded with the job."""

    job: Job
    account_id: AccountId
    upload: str
    """The name of the received file in the job's directory."""
    upload_sha256: bytes = b""
    """The SHA-256 of that file, if it was computed while the file arrived."""
    source: SourceSpec
    target: str
    """The token of the target format."""
    request: ConversionRequest
    retention_hours: int
    object_key: str
    is_promised: bool = False
    """Whether the client receives the job's id before the job has ended."""
    is_doubtful: bool = False
    """Whether a worker has died with the job, so that the start of its converter must be recorded before it."""


def source_spec(source: Source, directory: Path) -> SourceSpec:
    """Describe a source whose files are below `directory`.

    Raises:
        ValueError: one of its files is not.
    """
    root = f"{directory}/"

    def relative(file: Path) -> str:
        path = str(file)
        if not path.startswith(root):
            raise ValueError(f"{path} is not in the job's directory, {directory}")
        return path[len(root) :]

    def files_of(part: Part) -> dict[str, str]:
        return {end: relative(file) for end, file in part.files.items()}

    parts = tuple(
        PartSpec(files_of(part), part.layer, relative(part.shorter) if part.shorter else "") for part in source.parts
    )
    without = dict(source.warnings_without)
    return SourceSpec(**_fields(source, format=source.format.token, parts=parts, warnings_without=without))


def _fields(record: msgspec.Struct, **changed: object) -> dict[str, Any]:
    """All fields of `record`, some of them changed: a source and its description cannot differ in their fields."""
    return msgspec.structs.asdict(record) | changed
