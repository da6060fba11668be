"""The files that `geomill convert` writes: whole or not at all, and never over another file unless told to."""

import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from service.cli.command import CommandError

_TAKEN = "{} exists already. Use --force to replace it, or another --output."


class Outputs:
    """The results of one command in one directory."""

    def __init__(self, directory: Path, *, force: bool) -> None:
        self._directory = directory
        self._force = force
        self._claimed: dict[str, Path] = {}

    def path(self, name: str) -> Path:
        """Return the path of the result of this name."""
        return self._directory / name

    def claim(self, source: Path, name: str) -> None:
        """Keep a name for the result of `source`; of two files whose results would share one, the second has none.

        Raises:
            CommandError: the name is another result's, or there is such a file already.
        """
        owner = self._claimed.setdefault(name, source)
        if owner != source:
            raise CommandError(
                f"{self.path(name)} is the name of the result of {owner}. Convert this file with another --output."
            )
        if not self._force and os.path.lexists(self.path(name)):
            raise CommandError(_TAKEN.format(self.path(name)))

    @contextmanager
    def writing(self, source: Path, name: str) -> Iterator[Path]:
        """Yield a path to write to; afterwards it has the name, and after a failure nothing is left.

        Raises:
            CommandError: as `claim`, also if the file has appeared meanwhile; or it cannot be written.
        """
        self.claim(source, name)
        draft, path = self._directory / f".{secrets.token_hex(8)}.part", self.path(name)
        try:
            yield draft
            if self._force:
                draft.replace(path)
            else:
                _name_once(draft, path)
        except OSError as error:
            raise CommandError(f"{path} cannot be written ({error.strerror or type(error).__name__}).") from None
        finally:
            draft.unlink(missing_ok=True)


def _name_once(draft: Path, path: Path) -> None:
    """Give a file a name that no other file has."""
    try:
        os.link(draft, path)
    except FileExistsError:
        raise CommandError(_TAKEN.format(path)) from None
    except OSError:  # a file system without links
        if os.path.lexists(path):
            raise CommandError(_TAKEN.format(path)) from None
        draft.rename(path)
