"""The upload for a file of this machine: the file itself, or a ZIP of the files that belong to it."""

import errno
import re
import shutil
import tempfile
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from service.cli.command import CommandError
from service.formats.archive_contents import BUNDLES, IN_USE, IN_USE_BYTES
from service.formats.format import reading_of
from service.formats.registry import by_extension

_ZIP = ".zip"
_FULL = frozenset({errno.ENOSPC, errno.EDQUOT})


def upload_name(path: Path) -> str:
    """Return the name under which `path` is uploaded, which is text although that of a file need not be.

    Raises:
        CommandError: there is no such file, or it is a database that is read wrongly without the file beside it.
    """
    if not path.exists():
        raise CommandError("There is no such file.")
    if path.is_dir() and not _is_folder_format(path):
        raise CommandError("This is a directory. Name the files in it.")
    for kind in IN_USE:
        beside = path.with_name(f"{path.name}{kind.suffix}")
        if beside.is_file() and re.match(kind.start, _head(beside)):
            raise CommandError(f"There is {beside.name!r}, {kind.what}. {kind.remedy}.")
    return _text(f"{path.stem}{_ZIP}" if path.is_dir() or len(companions(path)) > 1 else path.name)


def write_upload(path: Path, target: Path) -> None:
    """Copy the file to `target`, or pack what belongs to it into a ZIP there. Blocks.

    Raises:
        OSError: something cannot be read or written.
    """
    members = sorted(path.rglob("*")) if path.is_dir() else companions(path)
    if not path.is_dir() and len(members) == 1:
        shutil.copyfile(path, target)
        return
    with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive:
        for member in members:
            if member.is_file():
                archive.write(member, _text(str(member.relative_to(path.parent))))


@contextmanager
def temporary_space() -> Iterator[None]:
    """Report a full disk as that of temporary files; otherwise the file that is copied there would be blamed.

    Raises:
        CommandError: there is no space left for temporary files, or no directory for them.
    """
    try:
        yield
    except OSError as error:
        if error.errno == errno.ENOENT and error.filename is None:  # as `tempfile` says it
            raise CommandError("There is no directory for temporary files. Name one in TMPDIR.") from None
        if error.errno not in _FULL:
            raise
        raise CommandError(
            f"There is no space left in {tempfile.gettempdir()}. Free some, or name another directory in TMPDIR."
        ) from None


def companions(path: Path) -> list[Path]:
    """Return the file and those beside it that are one dataset with it, such as .shp, .shx, .dbf and .prj."""
    extension = path.suffix.casefold()
    together = {one for _, bundle in BUNDLES if bundle.main == extension for one in bundle.extensions}
    beside = path.parent.iterdir() if together else ()
    return [
        path,
        *(one for one in sorted(beside) if one != path and one.stem == path.stem and one.suffix.casefold() in together),
    ]


def _head(path: Path) -> bytes:
    with path.open("rb") as file:
        return file.read(IN_USE_BYTES)


def _text(name: str) -> str:
    return name.encode(errors="surrogateescape").decode(errors="replace")


def _is_folder_format(path: Path) -> bool:
    if path.suffix.casefold() == ".gdb":
        return True
    found = by_extension(path.suffix)
    return found is not None and reading_of(found).folder is not None
