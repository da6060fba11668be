"""The files that `geomill convert` writes: whole or not at all, and never over another file unless told to."""

import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from service.cli.command import CommandError


class Outputs:
    """The results of one command in one directory."""

    def __init__(self, directory: Path, *, force: bool) -> None:
        self._directory = directory
        self._force = force
        self._written: set[Path] = set()

    def path(self, name: str) -> Path:
        """Return the path of the result of this name."""
        return self._directory / name

    def require(self, name: str) -> None:
        """Check that a result of this name may be written.

        Raises:
            CommandError: there is such a file already.
        """
        path = self._directory / name
        if path in self._written:
            raise CommandError(f"{path} is already the result of another file. Convert this one with another --output.")
        if path.exists() and not self._force:
            raise CommandError(f"{path} exists already. Use --force to replace it, or another --output.")

    @contextmanager
    def writing(self, name: str) -> Iterator[Path]:
        """Yield a path to write to; afterwards it has the name, and after a failure nothing is left.

        Raises:
            CommandError: as `require`, also if the file has appeared meanwhile; or it cannot be written.
        """
        self.require(name)
        draft = self._directory / f".{secrets.token_hex(8)}.part"
        path = self._directory / name
        try:
            yield draft
            self.require(name)
            if self._force:
                draft.replace(path)
            else:
                _name_once(draft, path)
            self._written.add(path)
        except OSError as error:
            raise CommandError(f"{path} cannot be written ({error.strerror or type(error).__name__}).") from None
        finally:
            draft.unlink(missing_ok=True)


def _name_once(draft: Path, path: Path) -> None:
    """Give a file a name that no other file has."""
    try:
        os.link(draft, path)
    except FileExistsError:
        raise CommandError(f"{path} exists already. Use --force to replace it, or another --output.") from None
    except OSError:  # a file system without links
        draft.rename(path)
