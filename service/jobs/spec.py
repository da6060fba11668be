"""The specification of a job: everything that running it needs, as plain data that crosses processes and hosts.

It names formats by their tokens and files by where they lie below the job's directory. Whoever runs the job gives the
directory that its own host has for these files.
"""

from pathlib import Path

import msgspec

from service.formats.detect import Part, Source
from service.formats.registry import by_token
from service.formats.request import ConversionRequest
from service.ids import AccountId
from service.jobs.records import Job


class PartSpec(msgspec.Struct, frozen=True):
    """One dataset of a source: its files by extension, the one to open first, and what its layer is called."""

    files: dict[str, str]
    layer: str


class SourceSpec(msgspec.Struct, frozen=True, kw_only=True):
    """A `Source` without paths: `format` is a token, files are relative to the job's directory."""

    format: str
    parts: tuple[PartSpec, ...]
    stem: str
    prefix: str
    options: tuple[str, ...]
    warnings: tuple[str, ...]

    def resolve(self, directory: Path) -> Source:
        """Return the source whose files lie in `directory` on this host."""
        parts = (Part({end: directory / name for end, name in part.files.items()}, part.layer) for part in self.parts)
        return Source(
            format=by_token(self.format),
            parts=tuple(parts),
            stem=self.stem,
            prefix=self.prefix,
            options=self.options,
            warnings=self.warnings,
        )


class JobSpec(msgspec.Struct, frozen=True, kw_only=True):
    """An accepted job. Its output goes under `object_key`, which the job's row has."""

    job: Job
    account_id: AccountId
    source: SourceSpec
    target: str
    """The token of the format to write."""
    request: ConversionRequest
    retention_hours: int
    object_key: str


def source_spec(source: Source, directory: Path) -> SourceSpec:
    """Describe a source whose files lie below `directory`.

    Raises:
        ValueError: one of its files does not.
    """

    def relative(part: Part) -> dict[str, str]:
        return {end: file.relative_to(directory).as_posix() for end, file in part.files.items()}

    return SourceSpec(
        format=source.format.token,
        parts=tuple(PartSpec(relative(part), part.layer) for part in source.parts),
        stem=source.stem,
        prefix=source.prefix,
        options=source.options,
        warnings=source.warnings,
    )
