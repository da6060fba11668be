"""The command `geomill` in separate processes, forked from one that has imported it, since imports take longest."""

import atexit
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from select import select
from typing import Any

ROOT = Path(__file__).parents[2]
MOST_SECONDS = 100.0
"""A command that takes longer hangs."""
SERVER = """
import json, os, sys
from service.cli.main import main
for line in sys.stdin:
    arguments, environment, directory = json.loads(line)
    if (child := os.fork()) == 0:
        os.environ.clear()
        os.environ.update(environment)
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
        for descriptor, name in enumerate(("stdout", "stderr"), 1):
            os.dup2(os.open(os.path.join(directory, name), os.O_WRONLY | os.O_CREAT, 0o600), descriptor)
        try:
            code = main(arguments)
        except SystemExit as end:
            code = end.code
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)  # to take apart all that was imported takes longer than the command
    print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)
"""


class Geomill:
    """The command, on one data directory."""

    def __init__(self, data_dir: Path, settings: Mapping[str, str] | None = None) -> None:
        self._environment = {**_inherited(), "GEOMILL_DATA_DIR": str(data_dir), **(settings or {})}

    def __call__(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        """Run a command."""
        server = _server()
        assert server.stdin is not None
        assert server.stdout is not None
        with tempfile.TemporaryDirectory() as directory:
            server.stdin.write(json.dumps([arguments, self._environment, directory]) + "\n")
            server.stdin.flush()
            assert select([server.stdout], [], [], MOST_SECONDS)[0], f"{arguments} hang"
            code = int(server.stdout.readline())
            told = [Path(directory, name).read_text(encoding="utf-8") for name in ("stdout", "stderr")]
        return subprocess.CompletedProcess(arguments, code, *told)

    def json(self, *arguments: str) -> dict[str, Any]:
        """Run a command that must succeed, and parse the JSON object that it prints."""
        done = self(*arguments, "--json")
        assert done.returncode == 0, done.stderr
        printed: dict[str, Any] = json.loads(done.stdout)
        return printed


def _inherited() -> dict[str, str]:
    """This process's environment without the service's settings."""
    inherited = {name: value for name, value in os.environ.items() if not name.startswith("GEOMILL_")}
    return {**inherited, "PYTHONPATH": str(ROOT)}


@cache
def _server() -> "subprocess.Popen[str]":
    """Start the process that commands are forked from; it ends with this one."""
    server = subprocess.Popen(
        [sys.executable, "-c", SERVER], env=_inherited(), stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    atexit.register(server.communicate)
    return server
