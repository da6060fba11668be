"""The directory of one conversion, and the runs that happen in it."""

import os
import re
import shutil
from codecs import BOM_UTF8
from collections.abc import Awaitable, Callable, Iterable, Mapping
from functools import cached_property, partial
from pathlib import Path, PurePath
from typing import TypeVar

import msgspec

from sandbox.command import Command, Limits
from sandbox.verdict import Ending, Verdict
from service.blocking import INLINE_BYTES, Threads, run_blocking
from service.engine.capabilities import Capabilities
from service.engine.diagnostics import Subject, out_of_time, require_program_success, require_success
from service.engine.environment import converter_environment, python_environment, wheel_environment
from service.engine.files import (
    TOO_MUCH_FOUND,
    holds_little,
    read_written,
    told_lack_of_room,
    write_for_runs,
    written_files,
)
from service.engine.jailed import CALLER, RARE_CALLER, RARE_PROGRAMS, postprocessing, wheel
from service.engine.session import NOT_AS_EXPECTED, Session, SessionOver
from service.errors import Rejection
from service.formats.facts import MAX_LAYERS
from service.formats.opened import opened
from service.formats.source import Source
from service.permit import OutOfTime, Permit

T = TypeVar("T")
MAX_JSON_BYTES = 16 << 20
MAX_JSON_OBJECTS = 1 << 16
MAX_JSON_COMMAS = 1 << 18
"""A list or map is bounded only once all of it is decoded: as many texts take a twentieth of a second in the event
loop, and tens of megabytes. Records that hold much of each column have their own bound, `most_commas`."""
UNDETERMINED = "The content of the file could not be determined. It may be damaged."
Run = Callable[[Command], Awaitable[Verdict]]
"""Starts a command and returns its verdict."""

WORK_FILE = "work.gpkg"
FOUND_FILE = "found.json"
"""What one of our programs returns."""
VERIFIED_FILE = "verified.json"
"""What a result contains when it is read back."""
OUT = "out"
INPUT = "in"
FOLDER = "convert"
_LOOKING = Threads()
"""Apart from those of other work, which crafted uploads would keep waiting: as many are looked at as hold a converter.
"""


def decoded(content: bytes, kind: type[T]) -> T:
    """The record that untrusted JSON holds.

    Raises:
        Rejection: it does not fit `kind`, or is too large.
    """
    most_commas = getattr(kind, "most_commas", MAX_JSON_COMMAS)
    if content.count(b"{") > MAX_JSON_OBJECTS or content.count(b",") > most_commas:
        raise Rejection(TOO_MUCH_FOUND)
    try:
        return msgspec.json.decode(content, type=kind)
    except NOT_AS_EXPECTED:
        raise Rejection(UNDETERMINED) from None


def share_done(run: Run) -> float | None:
    """Return which share of its current work a run has done, from 0 to 1; None if that is unknown."""
    return run.share if isinstance(run, Session) else None


class Workplace:
    """A directory below the job's own that the converters of one job may write to.

    All names in it are ours; command lines contain nothing from the client.
    """

    def __init__(
        self, run: Run, host: Capabilities, limits: Limits, directory: Path, *, source: Source, subject: Subject
    ) -> None:
        self._run = run
        self.host = host
        self._limits = limits
        self._source = source
        self._subject = subject
        self._job_directory = directory
        self._directory = f"{directory}/{FOLDER}"
        self.session = run if isinstance(run, Session) else None
        """The session, if one run may be held open."""
        self.held_name = WORK_FILE
        """The name of what the open run holds on command lines."""
        self._permit = Permit(limits.cpu_seconds - source.looked_seconds)
        self.clock_times: dict[str, set[str]] = {}
        """By layer: the columns that a session has found to be times of day, which the work file has as texts."""
        self.most_filled = MAX_LAYERS + 1
        """How many layers with features are read: a plan refuses so many."""

    @cached_property
    def path(self) -> Path:
        """The directory."""
        return self._job_directory / FOLDER

    @cached_property
    def input_bytes(self) -> int:
        """How many bytes a converter will read."""
        return self._source.size_bytes

    @property
    def every_clock_time(self) -> set[str]:
        """Those of all layers, of which the work file names some differently."""
        return set().union(*self.clock_times.values())

    @property
    def is_made(self) -> bool:
        """Whether the directory exists."""
        return os.path.isdir(self._directory)  # noqa: PTH112 - creating a Path costs more

    @property
    def is_small(self) -> bool:
        """Whether what a converter will read is small; see `service.blocking`."""
        return self.input_bytes <= INLINE_BYTES

    async def look(self, work: Callable[[], T]) -> T:
        """Do blocking `work` on the upload in this process.

        Raises:
            Rejection: with the detection of the upload, all of it takes more computing time than a run may.
        """
        try:
            return await run_blocking(work, inline=self.is_small, threads=_LOOKING, permit=self._permit)
        except OutOfTime:
            raise out_of_time() from None

    def begin(self, session: Session, drivers: Iterable[str], extra: Mapping[str, str]) -> None:
        """Start a run of ogr2ogr with only `drivers`, and hold it open."""
        environment = converter_environment(self.host, drivers, extra)
        session.begin(self.host.ogr2ogr, self.path, environment, self._limits)

    async def clear(self) -> None:
        """Empty the directory and put the input into it, under our names."""
        await run_blocking(self._clear, inline=self.is_small)

    @told_lack_of_room()
    def _clear(self) -> None:
        path = self._directory
        try:
            os.mkdir(path)  # noqa: PTH102 - creating Paths costs more than making the directories
        except FileExistsError:
            shutil.rmtree(path, ignore_errors=True)
            os.mkdir(path)  # noqa: PTH102 - the same
        os.mkdir(f"{path}/{OUT}")  # noqa: PTH102 - the same
        for number, part in enumerate(self._source.parts):
            for extension, file in part.files.items():
                _place(str(file), f"{path}/{INPUT}{number}{extension}", without_bom=bool(self._source.prefix))

    async def ogr2ogr(
        self,
        arguments: Iterable[str],
        drivers: Iterable[str],
        extra: Mapping[str, str] = {},
        tolerated: re.Pattern[str] | None = None,
        detour: str = "",
    ) -> str:
        """Run ogr2ogr with only `drivers`; return its messages, also of a failure if they match `tolerated`.

        If it lacks one of them, `jailed.wheel` takes its place, with arguments that end with the target and its source.
        An open run converts what it holds, or our virtual file `detour` if given.

        Raises:
            Rejection: the file is the cause, or the run exceeded its limits.
        """
        drivers = tuple(drivers)
        if library := self.host.spare_for(drivers):
            argv = self._calling(wheel.__name__, library, ",".join(drivers), *arguments)
            verdict = await self._start(argv, wheel_environment(self.host, library, extra))
        elif self.session is not None and self.session.is_open:
            await self.session.configure(extra)
            verdict = await self._translate(self.session, list(arguments), detour)
        else:
            environment = converter_environment(self.host, drivers, extra)
            verdict = await self._start((self.host.ogr2ogr, *arguments), environment)
        messages = verdict.untrusted_stderr.decode("utf-8", "replace")
        if tolerated is not None and verdict.ending in {Ending.EXIT, Ending.OK} and tolerated.search(messages):
            return messages
        return require_success(verdict, self._subject)

    async def write_held(self, session: Session, command: str, target: str, *texts: str) -> None:
        """Have the open run write the result `target` from what it holds, by a command of its own.

        Raises:
            Rejection: as `ogr2ogr`.
        """
        require_success(await session.write(command, target, *texts), self._subject)

    async def call(self, module: str, kind: type[T], *arguments: str) -> T:
        """Call our program `module` in the sandbox; return what it returns, untrusted until it fits `kind`.

        Raises:
            Rejection: as `python`; or what it returns does not fit, or is too large.
        """
        await self.python(module, *arguments, result=FOUND_FILE)
        return await self.read_json(FOUND_FILE, kind)

    async def python(self, module: str, *arguments: str, result: str = "") -> None:
        """Call our program `module` in the sandbox, and have what it returns written to the file `result`, if given.

        Raises:
            Rejection: it found that the file is the cause, or exceeded its limits.
        """
        verdict = await self._start(self._calling(module, *arguments, result=result), python_environment(self.host))
        require_program_success(verdict, self._subject)

    def _calling(self, module: str, *arguments: str, result: str = "") -> tuple[str, ...]:
        caller = RARE_CALLER if module in RARE_PROGRAMS else CALLER
        return (self.host.python, "-m", caller, module, result, *arguments)

    async def finish(self, question: str, *names: str) -> None:
        """Have the open run do the last step of a result that `question` names, or our program if there is none.

        Raises:
            Rejection: the run did not.
        """
        if self.session is None or not self.session.is_open:
            await self.python(postprocessing.__name__, question, *names)
            return
        await self.session.do(question, *names)

    async def bring(self, file: Path, name: str) -> None:
        """Put a file of the upload into the directory as `name`, for runs that start after that."""
        await run_blocking(partial(_place, str(file), f"{self._directory}/{name}", without_bom=False), inline=True)

    async def read_text(self, name: str) -> str:
        """What a converter wrote to the file `name`, untrusted.

        Raises:
            Rejection: it is too large, or no regular file.
        """
        path = self.path / name
        content = await run_blocking(partial(read_written, path, MAX_JSON_BYTES), inline=holds_little(path))
        return content.decode("utf-8", "replace")

    async def read_json(self, name: str, kind: type[T]) -> T:
        """What one of our programs in the sandbox wrote to the file `name`, untrusted until it fits `kind`.

        Raises:
            Rejection: it does not fit, or is too large.
        """
        path = self.path / name
        content = await run_blocking(partial(read_written, path, MAX_JSON_BYTES), inline=holds_little(path))
        return decoded(content, kind)

    async def discard(self, *names: str) -> None:
        """Remove the files `names`."""
        for name in names:
            await run_blocking(partial((self.path / name).unlink, missing_ok=True), inline=self.is_small)

    async def list_output(self, stem: str) -> list[str]:
        """The names of the outputs that differ from `stem` only in their extension."""
        found = await run_blocking(partial(written_files, self.path / OUT), inline=False)
        return [file.name for file in found if PurePath(file.name).stem == stem]

    async def has(self, name: str) -> bool:
        """Whether the file `name` exists."""
        return await run_blocking((self.path / name).is_file, inline=self.is_small)

    async def size_of(self, name: str) -> int:
        """The size of the file `name` in bytes."""
        return (await run_blocking((self.path / name).lstat, inline=self.is_small)).st_size

    async def rename(self, name: str, new_name: str) -> None:
        """Rename the file `name`."""
        await run_blocking(lambda: (self.path / name).rename(self.path / new_name), inline=self.is_small)

    async def write_text(self, name: str, text: str) -> None:
        """Write a file for a converter."""
        await run_blocking(partial(write_for_runs, f"{self._directory}/{name}", text), inline=self.is_small)

    async def _start(self, argv: tuple[str, ...], environment: Mapping[str, str]) -> Verdict:
        try:
            return await self._run(
                Command(argv=argv, directory=self.path, environment=environment, limits=self._limits)
            )
        except SessionOver as over:
            require_success(over.verdict, self._subject)
            raise

    async def _translate(self, session: Session, arguments: list[str], detour: str) -> Verdict:
        """Have the open run do what ogr2ogr does with `arguments`, which name the target and then its source."""
        at = arguments.index(detour or self.held_name)
        return await session.translate(arguments[at - 1], arguments[: at - 1] + arguments[at + 1 :], detour)


def staged_names(source: Source) -> list[str]:
    """What the converter opens for each part of `source`."""
    return [f"{source.prefix}{INPUT}{number}{part.extension}" for number, part in enumerate(source.parts)]


def _place(file: str, target: str, *, without_bom: bool) -> None:
    """Link `file` to `target`, or copy it; without its byte order mark if the driver would not find the first line."""
    if without_bom and _copied_without_bom(Path(file), Path(target)):
        return
    try:
        os.link(file, target)
    except OSError:
        if not Path(file).is_dir():
            shutil.copyfile(file, target)
            return
        Path(target).mkdir()
        for inside in Path(file).iterdir():
            _place(str(inside), f"{target}/{inside.name}", without_bom=False)


def _copied_without_bom(file: Path, target: Path) -> bool:
    with opened(file) as content:
        has_bom = content.read(len(BOM_UTF8)) == BOM_UTF8
        if has_bom:
            with target.open("xb") as copy:
                shutil.copyfileobj(content, copy)
    return has_bom
