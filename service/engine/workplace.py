"""The directory of one conversion, and the runs that happen in it."""

import os
import shutil
from collections.abc import Awaitable, Callable, Iterable, Mapping
from pathlib import Path
from types import MappingProxyType

from sandbox.command import Command, Limits
from sandbox.verdict import Verdict
from service.engine.capabilities import Capabilities
from service.engine.diagnostics import Subject, require_program_success, require_success
from service.engine.environment import converter_environment, python_environment
from service.formats.detect import BOM, Source

Run = Callable[[Command], Awaitable[Verdict]]
"""What starts a command and says how it ended."""

WORK_FILE = "work.gpkg"
OUT = "out"
INPUT = "in"
FOLDER = "convert"


class Workplace:
    """A directory that the converters of one job may write to, below the job's own.

    Names in it are ours; nothing on a command line comes from the client.
    """

    def __init__(self, run: Run, host: Capabilities, limits: Limits, directory: Path, subject: Subject) -> None:
        self._run = run
        self._host = host
        self._limits = limits
        self._subject = subject
        self.path = directory / FOLDER

    def clear(self, source: Source) -> None:
        """Start afresh: nothing there but the input under names of ours. Blocking."""
        shutil.rmtree(self.path, ignore_errors=True)
        self.path.mkdir()
        self.renew_output()
        for number, part in enumerate(source.parts):
            for extension, file in part.files.items():
                _place(file, self.path / f"{INPUT}{number}{extension}", without_bom=bool(source.prefix))

    def renew_output(self) -> None:
        """Make the folder of outputs anew. Blocking."""
        shutil.rmtree(self.path / OUT, ignore_errors=True)
        (self.path / OUT).mkdir()

    async def ogr2ogr(
        self, arguments: Iterable[str], drivers: Iterable[str], extra: Mapping[str, str] = MappingProxyType({})
    ) -> str:
        """Run ogr2ogr with only `drivers`; returns its messages.

        Raises:
            Rejection: the file is at fault, or what it needs is beyond the limits.
        """
        environment = converter_environment(self._host, drivers, extra)
        verdict = await self._start((self._host.ogr2ogr, *arguments), environment)
        return require_success(verdict, self._subject)

    async def python(self, module: str, *arguments: str) -> None:
        """Run `module`, a program of ours, in the jail.

        Raises:
            Rejection: it found the file at fault, or went beyond the limits.
        """
        verdict = await self._start((self._host.python, "-m", module, *arguments), python_environment(self._host))
        require_program_success(verdict, self._subject)

    async def _start(self, argv: tuple[str, ...], environment: Mapping[str, str]) -> Verdict:
        return await self._run(Command(argv=argv, directory=self.path, environment=environment, limits=self._limits))


def staged_names(source: Source) -> list[str]:
    """What to open for each part of `source`, as the converter is told."""
    return [f"{source.prefix}{INPUT}{number}{part.extension}" for number, part in enumerate(source.parts)]


def _place(file: Path, target: Path, *, without_bom: bool) -> None:
    """Put `file` at `target`: linked if possible; copied without its byte order mark where that hides a line."""
    with file.open("rb") as content:
        if without_bom and content.read(len(BOM)) == BOM:
            with target.open("xb") as copy:
                shutil.copyfileobj(content, copy)
            return
    try:
        os.link(file, target)
    except OSError:
        shutil.copyfile(file, target)
