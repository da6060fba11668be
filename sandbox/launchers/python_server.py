"""The server for Python commands, as the spawner sees it; the process itself is `sandbox.launchers.zygote`."""

import os
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

import msgspec

from sandbox import probe
from sandbox.command import Command
from sandbox.config import Config, LauncherName
from sandbox.interpreter import PYTHON
from sandbox.launchers.environment import StartEnvironment
from sandbox.launchers.server_process import Program
from sandbox.process import wire

_START = """\
import resource
limits = resource.getrlimit(resource.RLIMIT_FSIZE)
resource.setrlimit(resource.RLIMIT_FSIZE, (0, limits[1]))
from {zygote} import main
main(limits)
"""
"""Runs the server, with a limit by which nothing that it imports writes a file.

Where libffi, which ctypes needs, finds no /proc, it would write a file in memory and keep it open.
"""


class Request(msgspec.Struct, frozen=True):
    """One command, and the steps that put its process behind its layers."""

    module: str
    arguments: tuple[str, ...]
    environment: dict[str, str]
    steps: bytes


class PythonServerKind:
    """Takes `(PYTHON, "-m", module, …)`, with `-P` or PYTHONSAFEPATH, for the modules that it keeps loaded."""

    def __init__(self, name: LauncherName, modules: tuple[str, ...], environment: Mapping[str, str]) -> None:
        self.name = name
        self._environment = environment
        self._started = StartEnvironment(environment)
        self._modules = modules

    def takes(self, command: Command) -> bool:
        """Accepts Python with one of the modules, if the environment can be adopted without a new start."""
        module, *_ = _after_m(command)
        return module in self._modules and self._started.can_become(command.environment)

    def program(self, link: int) -> Program:
        """Python with this package, and the modules to keep loaded."""
        given = self._environment
        found = [str(Path(__file__).resolve().parents[__name__.count(".")]), *filter(None, sys.path)]
        path = os.pathsep.join([*given.get("PYTHONPATH", "").split(os.pathsep), *found]).strip(os.pathsep)
        server = (PYTHON, "-s", "-P", "-c", _START.format(zygote=f"{__package__}.zygote"), str(link), *self._modules)
        return Program(server, {**given, "PYTHONPATH": path})

    def request(self, command: Command, steps: bytes) -> bytes:
        """One command, packed."""
        module, *arguments = _after_m(command)
        return wire.pack(Request(module, tuple(arguments), dict(command.environment), steps))


def python_servers(config: Config) -> tuple[PythonServerKind, ...]:
    """The servers that a configuration allows. Each can also run the probe, which attacks from it."""
    python = config.python
    modules = {LauncherName.PYTHON_SERVER: python.modules}
    if python.rare_modules:
        modules[LauncherName.RARE_PYTHON_SERVER] = python.rare_modules
    return tuple(
        PythonServerKind(name, (*own, probe.MODULE), python.environment)
        for name, own in modules.items()
        if name in config.launchers
    )


def _after_m(command: Command) -> Sequence[str]:
    """The module of a Python command and its arguments; no module if it is another command."""
    program, *options = command.argv
    isolated = "PYTHONSAFEPATH" in command.environment
    if options[:1] == ["-P"]:
        isolated, options = True, options[1:]
    is_module = program == PYTHON and isolated and options[:1] == ["-m"] and len(options) > 1
    return options[1:] if is_module else ("",)
