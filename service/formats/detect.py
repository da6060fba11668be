"""Detects what an upload is: its format by extension (interface 1), and the files that a converter will read.

Of the client's file name, only the extension is trusted; of the content, only as much is parsed as distinguishes the
variants of one format.
"""

from collections.abc import Iterable, Mapping, Sequence
from enum import IntEnum
from pathlib import Path, PurePosixPath

import msgspec

from service.errors import Rejection
from service.formats.archive import Archive, open_archive
from service.formats.archive_contents import BUNDLES, ArchiveContent, find_all, remedy
from service.formats.bounds import Bounds
from service.formats.catalog import tables_in
from service.formats.documents import in_known_encodings, mended_documents
from service.formats.format import SHARED_EXTENSION, Format, Reader, reading_of
from service.formats.gunzip import gunzip
from service.formats.json_kinds import HEAD_BYTES, head_of, kind_of_json, sequence_prefix, tail_of
from service.formats.left_out import has_features, hold_features
from service.formats.names import listed, safe_name, shown, stem_of, unique
from service.formats.other_kinds import refuse_other, refuse_without_features
from service.formats.properties import descriptions_beside_shapes, property_warnings, rules_in_schemas
from service.formats.registry import INPUT_EXTENSIONS, by_extension
from service.formats.source import Part, Source
from service.formats.text_checks import TextChecks, check_texts
from service.formats.unread import START_BYTES, refuse_unread
from service.formats.xml_root import require_root

ZIP = SHARED_EXTENSION
GZ = ".gz"
LISTED = 50
NO_EXTENSION = "The file name has no extension, which determines the format."
REMEDIES: Mapping[str, str] = {
    extension: sentence
    for extensions, sentence in (
        (".tsv .txt .psv .xyz", "If it is a table, name it .csv: its delimiter is detected."),
        (".jsonl .ndjson .geojsons .geojsonseq", "Name a file with a GeoJSON feature in each line .geojsonl."),
        (".fgjson .esrijson", "Name it .json."),
        (".geoparquet .parq .pq", "Name it .parquet."),
        (".ewkt", "Name it .wkt."),
        (".db .db3 .sqlite3 .spatialite", "Name an SQLite database .sqlite."),
        (".7z .rar .tar .tgz .bz2 .xz .zst", "Put the files in it into a ZIP."),
        (".xls .xlsm .xlsb .xltx .xltm .fods .ots .numbers", "Save a workbook as .xlsx."),
        (".dwg .dgn", "Save a drawing as DXF."),
        (".gdb", "Put the folder of a File Geodatabase into a ZIP."),
        (".shz", "Name it .zip."),
        (".xml .citygml", "If it is one of these, name it .kml, .gpx or .gml."),
        (".tcx .fit .nmea .loc", "Convert it into GPX."),
        (".osm .pbf .o5m .mvt .mbtiles .pmtiles .geobuf .sql .rds", "Convert it into GeoJSON or GeoPackage."),
        (".arrow .feather .ipc", "Save an Arrow table as GeoParquet (.parquet)."),
        (".mdb .accdb", "Save a geodatabase as a File Geodatabase, and put its folder into a ZIP."),
        (".qgs .qgz .qlr .mxd .aprx .lyr .lyrx .lpk .lpkx .mpk .wor .vrt", "Send the data files that it names."),
        (".tif .tiff .jpg .jpeg .png .jp2 .ecw .sid .asc .img .nc .las .laz .pdf .svg", "Such files hold no features."),
    )
    for extension in extensions.split()
}
"""By extension that is not accepted: what helps if the file is what its name says."""


def is_gzip(untrusted_name: str) -> bool:
    """Whether an upload of this name is a .gz, which does not say how much it unpacks to."""
    return _extension(untrusted_name) == GZ


def is_archive(untrusted_name: str) -> bool:
    """Whether detecting an upload of this name requires unpacking it."""
    extension = _extension(untrusted_name)
    found = by_extension(extension)
    return extension in {ZIP, GZ} or (found is not None and bool(reading_of(found).member))


def is_read_through(untrusted_name: str) -> bool:
    """Whether detecting an upload of this name may require more than a look at its beginning and its end."""
    found = by_extension(_extension(untrusted_name))
    return is_archive(untrusted_name) or (found is not None and reading_of(found).declares is not None)


def most_made_of(path: Path, untrusted_name: str) -> int:
    """How many bytes detecting an upload may write to the disk: none if it will be refused at once. Blocking.

    The sizes that a ZIP states are bounds: no more is unpacked of any member. Only a few texts take more.
    """
    bounds, size_bytes, extension = Bounds(), path.stat().st_size, _extension(untrusted_name)
    most = bounds.most_of(size_bytes)
    if not is_archive(untrusted_name):
        return size_bytes * _copies([extension])
    if is_gzip(untrusted_name):
        return most * (1 + _copies([_extension(untrusted_name[: -len(GZ)])]))
    try:
        with open_archive(path, bounds) as archive:
            extensions = {member.extension for member in archive.members}
            stated = min(most, sum(member.info.file_size for member in archive.members))
    except Rejection:
        return 0
    nested = bounds.unpacked_bytes if any(is_archive(f"a{extension}") for extension in extensions) else 0
    return (stated + nested) * (1 + _copies(extensions))


def _copies(extensions: Iterable[str]) -> int:
    """How many files as large as those with these extensions are made of them: of text, two mended copies and more.

    One is made of the other, and in UTF-8, a letter takes two bytes, so that these are twice as long.
    """
    rows = filter(None, map(by_extension, extensions))
    return 5 if any(reading_of(row).declares for row in rows) else 0


class Depth(IntEnum):
    """How far an upload is looked at; each depth includes those before it."""

    FORMAT = 0
    """To tell its format, and whether it may hold features."""
    DOCUMENTS = 1
    """To have its documents read as they are meant."""
    TEXT = 2
    """To tell what the driver would lose of its text, which takes the longest by far."""


def detect(
    path: Path, untrusted_name: str, unpack_into: Path, bounds: Bounds | None = None, *, depth: Depth = Depth.TEXT
) -> Source:
    """Detect the format of the upload at `path` (interface 1). Blocking: call it in a thread.

    Args:
        path: the upload as received.
        untrusted_name: the client's file name.
        unpack_into: a directory for unpacked files, created if needed; the files in it get names of our own.
        bounds: how much a ZIP or .gz may contain.
        depth: how far to look; the source lacks the warnings of what is not looked at. A file that holds nothing but
            what its driver would lose is refused all the same.

    Raises:
        TooMuch: a ZIP or .gz, or text, exceeds the bounds.
        OutOfTime: it takes more computing time than the permit of this work allows.
        Rejection: the extension is unknown, the file is empty, or the ZIP contains nothing to convert, several files
            to convert, or something that no upload may contain.
    """
    if path.stat().st_size == 0:
        raise Rejection("The file is empty.")
    bounds = bounds or Bounds()
    extension = _extension(untrusted_name)
    if extension == ZIP:
        unpack_into.mkdir(exist_ok=True)
        with open_archive(path, bounds) as archive:
            return _unzip(archive, untrusted_name, unpack_into, bounds, depth=depth)
    if extension == GZ:
        return _gunzip(path, untrusted_name, unpack_into, bounds, depth=depth)
    found = by_extension(extension)
    if found is None:
        raise _unknown(extension)
    return _single(found, path, untrusted_name, unpack_into, bounds, depth=depth)


def _extension(untrusted_name: str) -> str:
    base = untrusted_name.replace("\\", "/").rstrip("/").rpartition("/")[2]
    stem, dot, extension = base.rpartition(".")
    return f"{dot}{extension}".casefold() if stem and extension else ""


def _unknown(extension: str) -> Rejection:
    """The rejection of an extension: it is that of one of several files, or unknown."""
    for row, bundle in BUNDLES:
        if extension in bundle.extensions:
            return Rejection(f"A {extension} file alone is not a {row.title} dataset. {remedy(bundle)}")
    advice = f"{REMEDIES[extension]} " if extension in REMEDIES else ""
    wrong = f"Files with the extension {shown(extension)} cannot be converted." if extension else NO_EXTENSION
    return Rejection(f"{wrong} {advice}Accepted: {', '.join(INPUT_EXTENSIONS)}, and {GZ} around one of them.")


def _single(
    found: Format, path: Path, untrusted_name: str, unpack_into: Path, bounds: Bounds, *, depth: Depth
) -> Source:
    stem = stem_of(untrusted_name)
    is_json = reading_of(found).json
    head = head_of(path, HEAD_BYTES if is_json else START_BYTES)
    row = kind_of_json(found, head, tail_of(path)) if is_json else found
    reading = reading_of(row)
    extension = _extension(untrusted_name)
    refuse_unread(head, reading.unread)
    refuse_other(row, head)
    if reading.reader is Reader.DOCUMENT and len(head) < HEAD_BYTES:
        refuse_without_features(head)
    own = extension if extension in row.extensions else row.extensions[0]
    member = reading.member
    documents = _documents(path, member, stem, unpack_into, bounds) if member else (Part({own: path}, stem),)
    warnings = [bundle.alone for bundle in reading.bundles if bundle.main == extension]
    warnings += property_warnings(row, path, bounds)
    if declares := reading.declares:
        documents, told = in_known_encodings(documents, declares, unpack_into, bounds)
        warnings += told
    text = TextChecks(row, unpack_into)
    is_read = depth > Depth.FORMAT
    if is_read or not hold_features(row, [part.path for part in documents]):
        documents, told = mended_documents(documents, reading.reader, unpack_into, text)
        warnings += told
    paths = [part.path for part in documents]
    repeated, left_out = text.tell(paths) if depth is Depth.TEXT or not hold_features(row, paths) else ([], {})
    if is_read:
        documents = tuple(Part(part.files, part.layer, text.shorter(part.path)) for part in documents)
    parts = tuple(part for part in documents if has_features(row, part.path)) or documents[:1]
    for part in parts:
        require_root(row, part.path)
    return Source(
        format=row,
        parts=parts,
        stem=stem,
        prefix=sequence_prefix(row, head),
        warnings=(*warnings, *repeated, *(warning for warning, column in left_out.items() if not column)),
        warnings_without={warning: condition for warning, condition in left_out.items() if condition},
    )


def _documents(path: Path, extension: str, stem: str, unpack_into: Path, bounds: Bounds) -> tuple[Part, ...]:
    """The documents with `extension` in the archive at `path`: a lone one is called after the upload."""
    unpack_into.mkdir(exist_ok=True)
    with open_archive(path, bounds) as archive:
        members = [member for member in archive.members if member.extension == extension]
        if not members:
            raise Rejection(f"The archive holds no {extension} document, so there is nothing to convert.")
        names = unique([PurePosixPath(member.path).stem for member in members])
        for number, member in enumerate(members):
            archive.unpack(member, unpack_into / f"document{number}{extension}")
    files = [unpack_into / f"document{number}{extension}" for number in range(len(members))]
    named = zip(files, names if len(files) > 1 else (stem,), strict=True)
    documents = tuple(Part({extension: file}, name) for file, name in named if file.stat().st_size)
    if not documents:
        raise Rejection("The file in the ZIP is empty.")
    return documents


def _gunzip(path: Path, untrusted_name: str, unpack_into: Path, bounds: Bounds, *, depth: Depth) -> Source:
    inner_name = untrusted_name.replace("\\", "/").rstrip("/")[: -len(GZ)]
    extension = _extension(inner_name)
    found = None if is_archive(inner_name) else by_extension(extension)
    if found is None:
        raise Rejection(
            f"Name a {GZ} after the one file in it, such as cities.csv.gz; {shown(extension) or 'no extension'} before "
            f"{GZ} is not supported. Send other files unpacked, or several in a ZIP."
        )
    unpack_into.mkdir(exist_ok=True)
    target = unpack_into / f"in{extension}"
    gunzip(path, target, bounds)
    return _single(found, _not_empty(target, GZ), inner_name, unpack_into, bounds, depth=depth)


def _unzip(archive: Archive, untrusted_name: str, unpack_into: Path, bounds: Bounds, *, depth: Depth) -> Source:
    finds = find_all(archive)
    bundles = [find for find in finds if find.is_bundle]
    others = [find for find in finds if not find.is_bundle]
    if len(others) + len({find.format.token for find in bundles}) > 1:
        paths = _listing(find.path for find in finds)
        raise Rejection(f"The ZIP holds several files that can be converted: {paths}. Convert them one at a time.")
    if bundles:
        return _unpack_bundles(archive, bundles, untrusted_name, unpack_into)
    if not others:
        paths = _listing(member.path for member in archive.members)
        remedies = {REMEDIES.get(member.extension, "") for member in archive.members}
        advice = remedies.pop() if len(remedies) == 1 else ""
        raise Rejection(
            f"The ZIP holds no file that can be converted; it contains: {paths or 'nothing'}. "
            f"{advice or 'A shapefile needs .shp, .shx and .dbf.'}"
        )
    (find,) = others
    if find.folder_extension:
        return _unpack_folder(archive, find, untrusted_name, unpack_into)
    ((extension, member),) = find.members.items()
    target = unpack_into / f"in{extension}"
    archive.unpack(member, target)
    source = _single(find.format, _not_empty(target, "ZIP"), find.name, unpack_into, bounds, depth=depth)
    return msgspec.structs.replace(source, warnings=(*source.warnings, *rules_in_schemas(source.format, archive)))


def _unpack_folder(archive: Archive, find: ArchiveContent, untrusted_name: str, unpack_into: Path) -> Source:
    folder = unpack_into / "in"
    folder.mkdir()
    for name, member in find.members.items():
        archive.unpack(member, folder / name)
    _refuse_incomplete(find.format, folder)
    stem = stem_of(find.name or untrusted_name)
    kind = reading_of(find.format).folder
    described = [file for file in folder.iterdir() if kind and file.name.lower() == kind.descriptions]
    warnings, left_out = check_texts(find.format, described)
    return Source(
        format=find.format,
        parts=(Part({find.folder_extension: folder}, stem),),
        stem=stem,
        warnings=(*warnings, *left_out),
    )


def _refuse_incomplete(row: Format, folder: Path) -> None:
    """Refuse a folder that lacks a table which its catalog lists."""
    kind = reading_of(row).folder
    present = {file.name.lower() for file in folder.iterdir()}
    for file, table in tables_in(folder, kind.index, kind.data) if kind else ():
        if file not in present:
            raise Rejection(
                f"The {row.title} in the ZIP lacks its file {file!r}, which holds the table {shown(table)!r}. "
                "Send it complete."
            )


def _unpack_bundles(
    archive: Archive, bundles: Sequence[ArchiveContent], untrusted_name: str, unpack_into: Path
) -> Source:
    names = unique([PurePosixPath(find.name).stem for find in bundles])
    parts = [
        Part(_unpack_bundle(archive, find, unpack_into / f"in{number}"), name)
        for number, (find, name) in enumerate(zip(bundles, names, strict=True))
    ]
    stem = safe_name(parts[0].layer) if len(parts) == 1 else stem_of(untrusted_name)
    told = [sentence for find in bundles for sentence in find.warnings]
    warnings = (*told, *descriptions_beside_shapes(archive))
    return Source(format=bundles[0].format, parts=tuple(parts), stem=stem, warnings=warnings)


def _unpack_bundle(archive: Archive, find: ArchiveContent, base: Path) -> dict[str, Path]:
    unpacked = {extension: Path(f"{base}{extension}") for extension in find.members}
    for extension, path in unpacked.items():
        archive.unpack(find.members[extension], path)
    _not_empty(next(iter(unpacked.values())), "ZIP")
    return unpacked


def _listing(paths: Iterable[str]) -> str:
    return listed([shown(path) for path in paths], LISTED)


def _not_empty(path: Path, packed_as: str) -> Path:
    if path.stat().st_size == 0:
        raise Rejection(f"The file in the {packed_as} is empty.")
    return path
