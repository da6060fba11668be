"""Run one command in the jail, by hand: `python -m sandbox [--best-effort] [--report] DIRECTORY -- PROGRAM ARGUMENT…`.

The directory is the only one that the command can write to. Prints the program's error output, then the verdict. The
exit code is the program's, or 1 for any other failure.
"""

import argparse
import sys
from pathlib import Path

import anyio

from sandbox.command import Command
from sandbox.config import Config, Mode
from sandbox.pool import SandboxUnavailable, open_pool
from sandbox.verdict import Ending, Verdict, plain_language


def main() -> int:
    """Parse the arguments, run the command and print the verdict."""
    options = _parser().parse_args()
    try:
        return anyio.run(_run, options)
    except SandboxUnavailable as error:
        print(error, file=sys.stderr)  # noqa: T201 - command-line output
        return 1


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog=f"python -m {__package__}", description="Run a command in the jail.")
    parser.add_argument("--best-effort", action="store_true", help="run even if a required layer is missing")
    parser.add_argument("--report", action="store_true", help="print which layers and launchers are in use")
    parser.add_argument("--readable", action="append", default=[], type=Path, help="a path that the program may read")
    parser.add_argument("directory", type=Path, help="the directory that the program may write to")
    parser.add_argument("command", nargs="+", help="the program, by its absolute path, and its arguments")
    return parser


async def _run(options: argparse.Namespace) -> int:
    directory = options.directory.resolve()
    config = Config(
        work_root=directory.parent,
        mode=Mode.BEST_EFFORT if options.best_effort else Mode.STRICT,
        converters=1,
        programs=(Path(options.command[0]),),
        readable=tuple(path.resolve() for path in options.readable),
    )
    async with open_pool(config) as pool:
        if options.report:
            report = await pool.complete_report()
            print(*report.lines(), sep="\n", file=sys.stderr)  # noqa: T201 - what it is run for
        async with pool.lease("by hand") as converter:
            return _tell(await converter.run(Command(argv=tuple(options.command), directory=directory)))


def _tell(verdict: Verdict) -> int:
    sys.stderr.buffer.write(verdict.untrusted_stderr)
    print(  # noqa: T201 - what it is run for
        f"{verdict.ending}: {plain_language(verdict)} "
        f"({verdict.wall_seconds:.3f} s, {verdict.cpu_seconds:.3f} s of computing, "
        f"{verdict.peak_memory_bytes >> 20} MiB, {', '.join(filter(None, (verdict.launcher, verdict.detail)))})",
        file=sys.stderr,
    )
    return verdict.exit_code if verdict.ending in {Ending.OK, Ending.EXIT} and verdict.exit_code is not None else 1


if __name__ == "__main__":
    sys.exit(main())
