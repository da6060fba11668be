"""What `geomill convert` tells: a bar while it works, a line for each file, and a summary."""

import json
import os
import sys
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TextIO

import msgspec

from service.cli.client.options import in_options
from service.dataloss.rules import Report
from service.jobs.lifecycle import Situation, Stage

INTERRUPTED = "The conversion was interrupted."
_WIDTH = 24
_WAITS_UNTOLD = 1
_CLEAR = "\r\x1b[K"
_STAGES: Mapping[Stage, tuple[float, float]] = {
    "waiting": (0.0, 0.0),
    "reading": (0.0, 0.4),
    "converting": (0.4, 0.8),
    "verifying": (0.8, 0.95),
    "storing": (0.95, 1.0),
}
"""The part of a conversion that each stage is taken for, which a bar shows."""


class FileOutcome(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """What became of one file; `error` says why there is no result of it here, and members without a value are null."""

    file: str
    success: bool
    output: str | None = None
    error: str | None = None
    job_id: str | None = None
    feature_count: int | None = None
    geometry_type: str | None = None
    output_size_bytes: int | None = None
    warnings: tuple[str, ...] = ()
    truncation_report: Report | None = None


class ConversionSummary(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """The output of `convert --json`."""

    converted: int
    failed: int
    files: tuple[FileOutcome, ...]


class ProgressBar:
    """One line on a terminal that shows how many files are done, and what happens to one of the others."""

    def __init__(self, files: int, stream: TextIO | None = None, *, is_alone: bool = False) -> None:
        """Count to `files` on `stream`, by default the standard error output; no lines are printed if it `is_alone`."""
        self._files = files
        self._done = 0
        self._stream = stream or sys.stderr
        self.shows = self._stream.isatty()
        """Whether there is a terminal to show it on."""
        self._tells = not (self.shows or is_alone)
        self._waits: Counter[str] = Counter()
        self._shares: dict[str, float] = {}

    def update(self, name: str, doing: str, share: float = 0.0) -> None:
        """Show what happens to a file, and which share of its work is done; the bar never goes back."""
        self._shares[name] = max(share, self._shares.get(name, 0.0))
        self._draw(f"{name}: {doing}")

    def wait(self, name: str, problem: str) -> None:
        """Show why a file waits; without a terminal, say so once, if waiting has not helped."""
        self.update(name, f"waiting: {problem}")
        self._waits[problem] += 1
        if self._tells and self._waits[problem] == _WAITS_UNTOLD + 1:
            _say(f"{name}: {problem} It is tried again.", self._stream)

    def convert(self, name: str, situation: Situation, begin: float = 0.0, end: float = 1.0) -> None:
        """Show what happens to the job of a file, whose conversion is the work from share `begin` to `end`."""
        first, last = _STAGES[situation.stage]
        done = first + (last - first) * (situation.share or 0.0)
        percent = "" if situation.share is None else f", {situation.share:.0%}"
        self.update(name, f"{situation.stage}{percent}", begin + (end - begin) * done)

    def finish(self, name: str, lines: Sequence[str], told_to: TextIO) -> None:
        """Count a file as done, and print the lines about it above the bar."""
        self._shares.pop(name, None)
        self._done += 1
        self.clear()
        for line in lines:
            _say(line, told_to)
        if self._done < self._files:
            self._draw("")

    def clear(self) -> None:
        """Remove the bar."""
        if self.shows:
            _write(_CLEAR, self._stream)

    def _draw(self, text: str) -> None:
        if self.shows:
            share = min(1.0, (self._done + sum(self._shares.values())) / self._files)
            filled = round(share * _WIDTH)
            bar = "#" * filled + "-" * (_WIDTH - filled)
            _write(f"{_CLEAR}[{bar}] {self._done}/{self._files} {text}"[:120], self._stream)


def _say(text: str, stream: TextIO) -> None:
    """Print a line, with question marks for what the stream cannot encode, such as names of files that are not text."""
    encoding = stream.encoding or "utf-8"
    _write(text.encode(encoding, "replace").decode(encoding) + "\n", stream)


def _write(text: str, stream: TextIO) -> None:
    """Write text at once.

    A stream that cannot be written, since nobody reads it any more or its disk is full, gets no text from then on, and
    files go on being converted.
    """
    try:
        stream.write(text)
        stream.flush()
    except OSError:
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, stream.fileno())  # also for what Python flushes at its end
        os.close(nowhere)


def lines_about(outcome: FileOutcome) -> list[str]:
    """Return the lines about one file for people."""
    if not outcome.success:
        return [f"{outcome.file}: {in_options(outcome.error or '')}"]
    features = "1 feature" if outcome.feature_count == 1 else f"{outcome.feature_count} features"
    what = f"{features}, {outcome.output_size_bytes} bytes"
    return [
        f"{outcome.file} -> {outcome.output} ({what})",
        *(f"  {in_options(warning)}" for warning in outcome.warnings),
    ]


class Reporter:
    """Tells what became of each file: as a line beside the bar, or at the end as one JSON object."""

    def __init__(self, files: Sequence[Path], *, as_json: bool) -> None:
        self.bar = ProgressBar(len(files), is_alone=as_json)
        self._as_json = as_json
        self._outcomes: dict[Path, FileOutcome | None] = dict.fromkeys(files)
        self.ended_by = INTERRUPTED
        """Why the files that have no outcome at the end have none."""

    def add(self, path: Path, outcome: FileOutcome) -> None:
        """Report the outcome of one of the files."""
        self._outcomes[path] = outcome
        lines = [] if self._as_json else lines_about(outcome)
        self.bar.finish(path.name, lines, sys.stdout if outcome.success else sys.stderr)

    def close(self) -> int:
        """Report on all files, those that were not begun as well; return how many were not converted."""
        self.bar.clear()
        outcomes = tuple(
            outcome or FileOutcome(file=str(path), success=False, error=self.ended_by)
            for path, outcome in self._outcomes.items()
        )
        converted = sum(outcome.success for outcome in outcomes)
        if self._as_json:
            summary = ConversionSummary(converted=converted, failed=len(outcomes) - converted, files=outcomes)
            _say(json.dumps(msgspec.to_builtins(summary), ensure_ascii=False, separators=(",", ":")), sys.stdout)
        elif len(outcomes) > 1:
            _say(f"{converted} of {len(outcomes)} files were converted.", sys.stdout)
        return len(outcomes) - converted
