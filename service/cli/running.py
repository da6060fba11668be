"""Runs the command that was chosen, and reports its errors."""

import argparse
import os
import select
import sys

import anyio

from service.cli.command import InvalidCommandError, give_up_output
from service.cli.failures import sentence_for
from service.settings import Settings, read_settings
from service.telemetry.log import configure_log


def run(chosen: argparse.Namespace) -> int:
    """Run a command with its arguments; return its exit code."""
    settings = Settings()
    try:
        settings = read_settings(os.environ)
        configure_log(settings.log_format, "error")  # a command says itself what it does; a server logs more
        code: int = anyio.run(chosen.run, settings, chosen) or 0
        sys.stdout.flush()
    except KeyboardInterrupt:
        return 130
    except Exception as error:
        if isinstance(error, BrokenPipeError) and _is_unread(sys.stdout.fileno()):
            give_up_output()
            return 1
        sentence = sentence_for(error, settings)
        if sentence is None:
            raise
        print(f"geomill: {sentence}", file=sys.stderr)
        return 2 if isinstance(error, InvalidCommandError) else 1
    else:
        return code


def _is_unread(output: int) -> bool:
    """Whether nobody reads the pipe any more, as after `head`, which reads the first lines of its input."""
    state = select.poll()
    state.register(output, 0)  # errors are told in any case
    return bool(state.poll(0))
