"""Runs with the launcher that a test wants."""

import anyio

from sandbox.command import Command
from sandbox.config import LauncherName
from sandbox.process.connection import Connection
from sandbox.verdict import Verdict
from tests.support.patience import PATIENCE_SECONDS


async def run_with(connection: Connection, launcher: LauncherName | None, command: Command, slot: int = 0) -> Verdict:
    """Run a command with a launcher once that is up; None takes the first available."""
    with anyio.fail_after(PATIENCE_SECONDS):
        while not (verdict := await connection.run(slot, command, launcher)).launcher:  # noqa: ASYNC110 -- polls
            await anyio.sleep(0.005)
    return verdict
