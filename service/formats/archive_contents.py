"""What the members of a ZIP are: single files, files that form a dataset together, folders that are one file."""

import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import PurePosixPath

import msgspec

from service.errors import Rejection
from service.formats.archive import Archive, Member
from service.formats.format import SHARED_EXTENSION, Bundle, Folder, Format, reading_of
from service.formats.names import listed, quotes, shown
from service.formats.registry import by_extension
from service.formats.table import FORMATS

READ = tuple(row for row in FORMATS if row.reading is not None)
BUNDLES = tuple((row, bundle) for row in READ for bundle in reading_of(row).bundles)
PARTS = frozenset(extension for _, bundle in BUNDLES for extension in bundle.extensions)
DATA_PARTS = frozenset(extension for _, bundle in BUNDLES for extension in (bundle.main, *bundle.required))
TABLE = ".dbf"
LISTED = 50
HEAD_BYTES = 1 << 16
"""How much of the main file of a dataset is searched: more than lists of columns take."""
FOLDERS = tuple((row, folder) for row in READ if (folder := reading_of(row).folder) is not None)
SEND_ALONE = (
    "Or send the {main} alone, outside a ZIP, to convert its geometries without attributes; send its coordinate system "
    "as sourceEpsg."
)


class InUse(msgspec.Struct, frozen=True):
    """A file that SQLite puts beside a database in use, which GDAL would read without it."""

    suffix: str
    """What follows the name of the database."""
    start: bytes
    """How the file begins if the database differs from what SQLite reads, as a regular expression."""
    what: str
    remedy: str


IN_USE = (
    InUse(
        "-wal",
        rb"(?s).{33}",  # more than a header
        "changes that the database beside it lacks",
        "The program that has the database open writes them into it when it is closed",
    ),
    InUse(
        "-journal",
        rb"\xd9\xd5\x05\xf9\x20\xa1\x63\xd7(?!\0{4})",  # not one of an ended change, nor one that changed nothing yet
        "which says that the database beside it may hold part of an unfinished change",
        "Close the program that is changing the database. If that program has crashed, open the database once in one "
        "that can change it, which undoes the change",
    ),
)
IN_USE_BYTES = 33
"""How much of such a file tells whether it matters."""


class ArchiveContent(msgspec.Struct, frozen=True, kw_only=True):
    """Something in a ZIP that can be converted.

    `members` maps extensions to members, the one to open first; for a folder, names to members.
    """

    format: Format
    path: str
    """Its name in the ZIP."""
    members: Mapping[str, Member]
    is_bundle: bool = False
    folder_extension: str = ""
    """The extension of a folder, "" for files."""
    warnings: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        """The last part of `path`."""
        return PurePosixPath(self.path).name


def find_all(archive: Archive) -> list[ArchiveContent]:
    """What can be converted among the members of `archive`: single files, then folders, then bundles.

    Raises:
        Rejection: a dataset lacks a part, and either nothing else can be converted or the part present holds data; or
            two files could be the same part and differ or hold data; or a database is not what SQLite
            would read with the file beside it.
    """
    every = archive.members
    _refuse_in_use(archive)
    groups: dict[str, dict[str, Member]] = {}
    for member in every:
        first = groups.setdefault(member.stem, {}).setdefault(member.extension, member)
        if first is not member and member.extension in PARTS and not _is_spare(first, member):
            raise Rejection(
                f"The ZIP holds {shown(first.path)!r} and {shown(member.path)!r}, whose names differ at most in "
                "case, so it is unclear which files belong together. Give them different names."
            )
    mains = {bundle.main for _, bundle in BUNDLES}
    singles = [
        ArchiveContent(format=row, path=member.path, members={member.extension: member})
        for member in every
        if member.extension not in mains and (row := _single(member)) is not None
    ]
    bundles = _without_lists(archive, [find for group in groups.values() for find in _bundles(group)])
    alone = [group[TABLE].path for group in groups.values() if TABLE in group and not _bundles(group)]
    if bundles and alone:
        names = listed(quotes(alone), LISTED)
        told = f"Tables without shapes were left out, because a .dbf alone is not read: {names}."
        bundles[0] = msgspec.structs.replace(bundles[0], warnings=(*bundles[0].warnings, told))
    found = [*singles, *_folders(every), *bundles]
    _refuse_incomplete(groups.values(), is_all=not found)
    return found


def _refuse_in_use(archive: Archive) -> None:
    by_path = {member.path: member for member in archive.members}
    for path in by_path:
        for kind in IN_USE:
            beside = by_path.get(f"{path}{kind.suffix}")
            if beside is not None and re.match(kind.start, archive.head(beside, IN_USE_BYTES)):
                told = f"The ZIP holds {shown(beside.path)!r}, {kind.what}. {kind.remedy}"
                raise Rejection(f"{told}; create the ZIP again after that.")


def _is_spare(first: Member, second: Member) -> bool:
    """Whether either of two files may be dropped: they are equal, and describe data without holding any."""
    sums = {(member.info.file_size, member.info.CRC) for member in (first, second)}
    return len(sums) == 1 and first.extension not in DATA_PARTS


def _single(member: Member) -> Format | None:
    return None if member.extension == SHARED_EXTENSION else by_extension(member.extension)


def _folders(members: Iterable[Member]) -> list[ArchiveContent]:
    """The folders that are files of a format; one of their members identifies them."""
    by_folder: dict[str, dict[str, Member]] = {}
    for member in members:
        by_folder.setdefault("/".join(member.parts[:-1]) or ".", {}).setdefault(member.base, member)
    return [
        ArchiveContent(format=row, path=path, members=_parts(folder, inside), folder_extension=folder.extension)
        for path, inside in by_folder.items()
        for row, folder in FOLDERS
        if folder.mark in {name.lower() for name in inside}
    ]


def _parts(folder: Folder, inside: Mapping[str, Member]) -> dict[str, Member]:
    """The members of a folder that belong to the format, by names that are safe for files."""
    pattern = re.compile(folder.parts, re.IGNORECASE | re.ASCII)
    return {name: member for name, member in inside.items() if pattern.fullmatch(name)}


def _bundles(group: Mapping[str, Member]) -> list[ArchiveContent]:
    """The datasets formed by files of one name."""
    return [_bundle(group, row, bundle) for row, bundle in BUNDLES if {bundle.main, *bundle.required} <= group.keys()]


def _without_lists(archive: Archive, bundles: Sequence[ArchiveContent]) -> list[ArchiveContent]:
    """The datasets without those that only list others, of which the first one tells.

    Raises:
        Rejection: there are no others.
    """
    lists = [find for find in bundles if _only_lists(archive, find)]
    others = [find for find in bundles if find not in lists]
    if not lists:
        return others
    names = listed(quotes([find.path for find in lists]), LISTED)
    if not others:
        raise Rejection(f"Seamless tables ({names}) only list others. Put the tables that they list into the ZIP, too.")
    told = f"Seamless tables ({names}) only list others, and were left out; the tables in the ZIP were read."
    return [msgspec.structs.replace(others[0], warnings=(*others[0].warnings, told)), *others[1:]]


def _only_lists(archive: Archive, find: ArchiveContent) -> bool:
    extension, member = next(iter(find.members.items()))
    sign = next(bundle.lists_others for _, bundle in BUNDLES if bundle.main == extension)
    return bool(sign) and re.search(sign, archive.head(member, HEAD_BYTES)) is not None


def _bundle(group: Mapping[str, Member], row: Format, bundle: Bundle) -> ArchiveContent:
    path = group[bundle.main].path
    missing = [said for extension, said in bundle.optional.items() if said and extension not in group]
    return ArchiveContent(
        format=row,
        path=path,
        members={extension: group[extension] for extension in bundle.extensions if extension in group},
        is_bundle=True,
        warnings=tuple(said.format(name=repr(shown(path))) for said in missing),
    )


def _refuse_incomplete(groups: Iterable[Mapping[str, Member]], *, is_all: bool) -> None:
    """Refuse the first incomplete dataset, and name its missing parts.

    A .tab alone is not data: programs write one beside many files that they open.
    """
    for group in groups:
        for row, bundle in BUNDLES:
            missing = [extension for extension in bundle.required if extension not in group]
            if bundle.main in group and missing and (is_all or bundle.alone):
                name = shown(group[bundle.main].path)
                lacking = " and ".join(missing)
                lone = f" {SEND_ALONE.format(main=bundle.main)}" if bundle.alone else ""
                raise Rejection(f"The {row.title} {name!r} in the ZIP lacks its {lacking}. {remedy(bundle)}{lone}")


def remedy(bundle: Bundle) -> str:
    """What to do about a file that came without its companions."""
    needed = (bundle.main, *bundle.required)
    listed = f"{', '.join(needed[:-1])} and {needed[-1]}" if len(needed) > 1 else needed[0]
    useful = f" (and {', '.join(bundle.optional)})" if bundle.optional else ""
    return f"Put {listed}{useful} into a ZIP."
