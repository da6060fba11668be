"""What an upload is: its format, and the files of it that a converter will read."""

from collections.abc import Mapping
from pathlib import Path
from stat import S_ISDIR

import msgspec

from service.formats.format import Format, reading_of


class Part(msgspec.Struct, frozen=True):
    """One dataset of the upload: its files by extension, the one to open first, and the name of its layer."""

    files: Mapping[str, Path]
    layer: str
    shorter: Path | None = None
    """A file with all kinds of tags that are in the text of the one to open, but not all of them."""

    @property
    def path(self) -> Path:
        """The file to open."""
        return next(iter(self.files.values()))

    @property
    def text(self) -> Path:
        """The file in which to look for tags."""
        return self.shorter or self.path

    @property
    def extension(self) -> str:
        """The extension of the file to open: one of the format's own, whatever the client's was."""
        return next(iter(self.files))


class Source(msgspec.Struct, frozen=True, kw_only=True):
    """An upload whose format is known."""

    format: Format
    parts: tuple[Part, ...]
    stem: str
    """The stem of output names."""
    prefix: str = ""
    """What precedes the path on the converter's command line if the driver cannot be chosen by content."""
    options: tuple[str, ...] = ()
    """Options for this file, in addition to those of its format."""
    warnings: tuple[str, ...] = ()
    warnings_without: Mapping[str, str] = {}
    """Warnings, each with what it depends on, as `LeftOut.condition`."""
    looked_seconds: float = 0.0
    """How much of the computing time for looking through the upload its detection has taken."""

    @property
    def path(self) -> Path:
        """The file to read; the first one of several shapefiles."""
        return self.parts[0].path

    @property
    def size_bytes(self) -> int:
        """How much a converter will read."""
        return sum(_size(file) for part in self.parts for file in part.files.values())

    @property
    def records_crs(self) -> bool:
        """Whether files of the format can record their coordinate system."""
        return reading_of(self.format).records_crs


def _size(file: Path) -> int:
    status = file.stat()
    return sum(map(_size, file.iterdir())) if S_ISDIR(status.st_mode) else status.st_size
