"""The command `geomill`, run to its end."""

import json
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import IO, Any

from tests.support.forked import Forked, environment_for
from tests.support.patience import PATIENCE_SECONDS


class Started(Forked):
    """A command that has been started, and what it prints."""

    def __init__(self, arguments: Sequence[str], environment: Mapping[str, str], directory: Path | None = None) -> None:
        with ExitStack() as stack:
            self._out, self._err = (stack.enter_context(tempfile.TemporaryFile()) for _ in range(2))
            super().__init__(arguments, environment, self._out, self._err, directory)
            self._files = stack.pop_all()

    def printed(self) -> tuple[str, str]:
        """Wait for the end; returns what is on standard output and standard error.

        Raises:
            subprocess.TimeoutExpired: the command hangs.
        """
        with self._files:
            self.wait(PATIENCE_SECONDS)
            return _text(self._out), _text(self._err)


def _text(stream: IO[bytes]) -> str:
    stream.seek(0)
    return stream.read().decode()


class Geomill:
    """The command, on one data directory."""

    def __init__(self, data_dir: Path, settings: Mapping[str, str] | None = None) -> None:
        self.environment = environment_for({"GEOMILL_DATA_DIR": str(data_dir), **(settings or {})})

    def __call__(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        """Run a command."""
        started = Started(arguments, self.environment)
        out, err = started.printed()
        return subprocess.CompletedProcess(arguments, started.wait(), out, err)

    def json(self, *arguments: str) -> dict[str, Any]:
        """Run a command that must succeed, and parse the JSON object that it prints."""
        done = self(*arguments, "--json")
        assert done.returncode == 0, done.stderr
        printed: dict[str, Any] = json.loads(done.stdout)
        return printed
