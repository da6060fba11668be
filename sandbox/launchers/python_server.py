"""The server for Python commands, as the spawner sees it; the process itself is `sandbox.launchers.zygote`."""

import os
import sys
from collections.abc import Sequence
from pathlib import Path

import msgspec

from sandbox import probe
from sandbox.command import Command
from sandbox.config import Config, LauncherName
from sandbox.isolation.jail import Jail
from sandbox.launchers.environment import Started
from sandbox.process import wire


class Introduction(msgspec.Struct, frozen=True):
    """What the server is told once: what to hold ready, and the layers to enter, by name."""

    config: Config
    layers: tuple[str, ...]


class Request(msgspec.Struct, frozen=True):
    """One command; the descriptor in `jail` is replaced by the one that comes along."""

    module: str
    arguments: tuple[str, ...]
    environment: dict[str, str]
    jail: Jail


def modules(config: Config) -> tuple[str, ...]:
    """What is held ready: what the configuration says, and the probe of the self-test."""
    return (*config.python.modules, probe.MODULE)


class PythonServerKind:
    """Takes `(sys.executable, "-m", module, …)`, with `-P` or PYTHONSAFEPATH, for the modules that are held ready."""

    name = LauncherName.PYTHON_SERVER

    def __init__(self, config: Config, layers: Sequence[str]) -> None:
        self._config = config
        self._started = Started(config.python.environment)
        self._layers = tuple(layers)

    def takes(self, command: Command) -> bool:
        """Python, one of the modules, and no difference that only a start could bring about."""
        module, *_ = _after_m(command)
        return module in modules(self._config) and self._started.can_become(command.environment)

    def argv(self, link: int) -> tuple[Sequence[str], dict[str, str]]:
        """Python with this package, and the path of what it holds ready."""
        given = self._config.python.environment
        found = [str(Path(__file__).resolve().parents[2]), *filter(None, sys.path)]
        path = os.pathsep.join([*given.get("PYTHONPATH", "").split(os.pathsep), *found]).strip(os.pathsep)
        return (sys.executable, "-s", "-P", "-m", "sandbox.launchers.zygote", str(link)), {**given, "PYTHONPATH": path}

    def introduction(self) -> bytes:
        """The configuration and the layers."""
        return wire.pack(Introduction(self._config, self._layers))

    def request(self, command: Command, jail: Jail) -> bytes:
        """One command, packed."""
        module, *arguments = _after_m(command)
        return wire.pack(Request(module, tuple(arguments), dict(command.environment), jail))


def _after_m(command: Command) -> Sequence[str]:
    """The module of a Python command and its arguments; no module if it is another command."""
    program, *options = command.argv
    isolated = "PYTHONSAFEPATH" in command.environment
    if options[:1] == ["-P"]:
        isolated, options = True, options[1:]
    is_module = program == sys.executable and isolated and options[:1] == ["-m"] and len(options) > 1
    return options[1:] if is_module else ("",)
