"""What an upload is: its format by extension (interface 1), and the files that a converter will read.

Nothing here trusts the client's name beyond its extension, and nothing is parsed beyond what tells variants of one
format apart.
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path, PurePosixPath

import msgspec

from service.errors import Rejection
from service.formats.archive import Archive, Bounds, Member, open_archive
from service.formats.format import Format, Reader, reading_of
from service.formats.names import safe_name, shown, stem_of, unique
from service.formats.registry import INPUT_EXTENSIONS, by_extension, by_token

ZIP = ".zip"
SHAPEFILE = "shapefile"
SHP = ".shp"
REQUIRED = (SHP, ".shx", ".dbf")
SIDECARS = (".prj", ".cpg")
LISTED = 50
HEAD_BYTES = 1 << 20
BOM = b"\xef\xbb\xbf"
RECORD_SEPARATOR = b"\x1e"
COLLECTION = b'"FeatureCollection"'
COLLECTION_WITHIN = 4096
SEQUENCE_PREFIX = "GeoJSONSeq:"


class Part(msgspec.Struct, frozen=True):
    """One dataset of the upload: its files by extension, the one to open first, and what its layer is called."""

    files: Mapping[str, Path]
    layer: str

    @property
    def path(self) -> Path:
        """The file to open."""
        return next(iter(self.files.values()))

    @property
    def extension(self) -> str:
        """The extension of the file to open; of the format, whatever the client's was."""
        return next(iter(self.files))


READ_WHOLE = (
    "The archive holds several documents and was read as a whole: typed attributes (SchemaData) may be missing. "
    "Send each document as a file of its own to keep them."
)
"""The driver reads a lone document completely, but not several at once."""


class Source(msgspec.Struct, frozen=True, kw_only=True):
    """An upload that has been recognised."""

    format: Format
    parts: tuple[Part, ...]
    stem: str
    """What outputs are called."""
    prefix: str = ""
    """What the converter puts before the path where content does not tell the driver."""
    options: tuple[str, ...] = ()
    """What the converter has to be told to read this file besides what it is told for the format."""
    warnings: tuple[str, ...] = ()

    @property
    def path(self) -> Path:
        """The file to read; the first one of several shapefiles."""
        return self.parts[0].path

    @property
    def size_bytes(self) -> int:
        """How much a converter will read."""
        return sum(file.stat().st_size for part in self.parts for file in part.files.values())

    @property
    def records_crs(self) -> bool:
        """Whether files of the format can say their coordinate system."""
        return reading_of(self.format).records_crs


def is_archive(untrusted_name: str) -> bool:
    """Whether recognising an upload of this name takes unpacking it."""
    extension = _extension(untrusted_name)
    found = by_extension(extension)
    return extension == ZIP or (found is not None and bool(reading_of(found).member))


def detect(path: Path, untrusted_name: str, unpack_into: Path, bounds: Bounds | None = None) -> Source:
    """Recognise the upload at `path` (interface 1). Blocking: call it in a thread.

    Args:
        path: the upload as received.
        untrusted_name: the client's file name.
        unpack_into: a directory for what a ZIP holds, made when there is need; files in it get names of ours.
        bounds: how much a ZIP may hold.

    Raises:
        Rejection: the extension is unknown, the file is empty, or the ZIP holds nothing, several things, or something
            that no upload may hold.
    """
    if path.stat().st_size == 0:
        raise Rejection("The file is empty.")
    extension = _extension(untrusted_name)
    if extension == ZIP:
        unpack_into.mkdir(exist_ok=True)
        with open_archive(path, bounds or Bounds()) as archive:
            return _unzip(archive, untrusted_name, unpack_into)
    found = by_extension(extension)
    if found is None:
        raise Rejection(
            f"Files with the extension {shown(extension) or '(none)'} cannot be converted. "
            f"Accepted are {', '.join(INPUT_EXTENSIONS)}."
        )
    return _single(found, path, untrusted_name, unpack_into)


def _extension(untrusted_name: str) -> str:
    base = untrusted_name.replace("\\", "/").rstrip("/").rpartition("/")[2]
    stem, dot, extension = base.rpartition(".")
    return f"{dot}{extension}".casefold() if stem and extension else ""


def _single(found: Format, path: Path, untrusted_name: str, unpack_into: Path) -> Source:
    stem = stem_of(untrusted_name)
    files = _document(found, path, unpack_into)
    member = reading_of(found).member
    warnings = (READ_WHOLE,) if member and member not in files else ()
    return Source(format=found, parts=(Part(files, stem),), stem=stem, prefix=_prefix(found, path), warnings=warnings)


def _document(found: Format, path: Path, unpack_into: Path) -> dict[str, Path]:
    """The file to read: what an archive of one document wraps, or the upload itself."""
    member = reading_of(found).member
    if member:
        unpack_into.mkdir(exist_ok=True)
        with open_archive(path, Bounds()) as archive:
            documents = [inside for inside in archive.members if inside.extension == member]
            if len(documents) == 1:
                archive.unpack(documents[0], unpack_into / f"document{member}")
                return {member: _not_empty(unpack_into / f"document{member}")}
    return {found.extensions[0]: path}


def _unzip(archive: Archive, untrusted_name: str, unpack_into: Path) -> Source:
    shapes = _shapefiles(archive.members)
    others = [member for member in archive.members if _is_convertible(member)]
    if len(others) + bool(shapes) > 1:
        listed = [member.path for member in (*others, *(files[SHP] for files in shapes.values()))]
        raise Rejection(
            f"The ZIP holds several files that can be converted: {_listing(listed)}. Convert them one at a time."
        )
    if others:
        target = unpack_into / f"in{others[0].extension}"
        archive.unpack(others[0], target)
        return _single(_of(others[0]), _not_empty(target), others[0].base, unpack_into)
    if not shapes:
        listed = [member.path for member in archive.members]
        raise Rejection(
            f"The ZIP holds no file that can be converted; it contains: {_listing(listed) or 'nothing'}. "
            "A shapefile needs .shp, .shx and .dbf."
        )
    return _unzip_shapefiles(archive, shapes, untrusted_name, unpack_into)


def _unzip_shapefiles(
    archive: Archive, shapes: Mapping[str, Mapping[str, Member]], untrusted_name: str, unpack_into: Path
) -> Source:
    for files in shapes.values():
        _require_complete(files)
    names = unique([safe_name(PurePosixPath(files[SHP].base).stem) for files in shapes.values()])
    parts = [
        Part(_unpack_shapefile(archive, files, unpack_into / f"in{number}"), name)
        for number, (files, name) in enumerate(zip(shapes.values(), names, strict=True))
    ]
    stem = parts[0].layer if len(parts) == 1 else stem_of(untrusted_name)
    return Source(format=by_token(SHAPEFILE), parts=tuple(parts), stem=stem)


def _unpack_shapefile(archive: Archive, files: Mapping[str, Member], base: Path) -> dict[str, Path]:
    unpacked = {extension: Path(f"{base}{extension}") for extension in (*REQUIRED, *SIDECARS) if extension in files}
    for extension, path in unpacked.items():
        archive.unpack(files[extension], path)
    _not_empty(unpacked[SHP])
    return unpacked


def _shapefiles(members: Iterable[Member]) -> dict[str, dict[str, Member]]:
    """The files of each shapefile by extension, keyed by what their names share; only those with a .shp."""
    groups: dict[str, dict[str, Member]] = {}
    for member in members:
        groups.setdefault(member.stem, {}).setdefault(member.extension, member)
    return {stem: files for stem, files in groups.items() if SHP in files}


def _require_complete(files: Mapping[str, Member]) -> None:
    missing = [extension for extension in REQUIRED if extension not in files]
    if missing:
        raise Rejection(
            f"The shapefile {shown(files[SHP].path)!r} in the ZIP lacks its {' and '.join(missing)}. "
            "Put .shp, .shx and .dbf (and .prj) into the ZIP."
        )


def _is_convertible(member: Member) -> bool:
    found = by_extension(member.extension)
    return found is not None and member.extension != ZIP


def _of(member: Member) -> Format:
    found = by_extension(member.extension)
    if found is None:
        raise LookupError(member.extension)
    return found


def _listing(paths: Sequence[str]) -> str:
    more = f" and {len(paths) - LISTED} more" if len(paths) > LISTED else ""
    return ", ".join(shown(path) for path in paths[:LISTED]) + more


def _not_empty(path: Path) -> Path:
    if path.stat().st_size == 0:
        raise Rejection("The file in the ZIP is empty.")
    return path


def _prefix(found: Format, path: Path) -> str:
    """How to tell GDAL's GeoJSON drivers apart, which else take a sequence for one document and read its first line."""
    reading = reading_of(found)
    return SEQUENCE_PREFIX if reading.json and _is_sequence(path, expected=reading.reader is Reader.LINES) else ""


def _is_sequence(path: Path, *, expected: bool) -> bool:
    """Whether the file is one JSON text per line instead of one JSON text.

    What the first megabyte does not tell is answered with what is `expected` of the extension.
    """
    with path.open("rb") as file:
        head = file.read(HEAD_BYTES).removeprefix(BOM).lstrip()
    first, line_end, rest = head.partition(b"\n")
    if head.startswith(RECORD_SEPARATOR):
        return True
    if line_end and rest.strip():
        return _is_object(first)
    return expected and COLLECTION not in head[:COLLECTION_WITHIN]


def _is_object(line: bytes) -> bool:
    try:
        return isinstance(json.loads(line), dict)
    except (ValueError, RecursionError):
        return False
