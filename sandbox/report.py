"""What a pool found on this host: the layers and launchers in use. Read by `geomill doctor` and the log."""

from collections.abc import Iterator
from enum import StrEnum

import msgspec

from sandbox.config import LauncherName


class Guard(StrEnum):
    """What a layer protects; strict mode requires all of them."""

    NETWORK = "network"
    FILES = "file system"
    LIMITS = "limits"
    RUNS = "other runs"
    ROOT = "rights of root"
    """Needed only if the service has such rights."""


NOT_NEEDED = "not needed"
"""How the reason begins for which a layer that nothing lacks is not in use."""


def reason_of(error: Exception) -> str:
    """Return what an error says, in words."""
    if isinstance(error, OSError) and error.strerror:
        return f"{error.strerror}: {error.filename}" if error.filename else error.strerror
    return str(error)


class LayerReport(msgspec.Struct, frozen=True, kw_only=True):
    """One isolation layer: whether it is in use, or why not."""

    name: str
    stops: str
    guards: frozenset[Guard]
    active: bool
    reason: str = ""


class LauncherReport(msgspec.Struct, frozen=True, kw_only=True):
    """One launcher: whether it passed its self-test, or why not; a later command has it tested if it is not yet."""

    name: LauncherName
    active: bool
    reason: str = ""
    is_tested: bool = True


def _state(row: LayerReport | LauncherReport) -> str:
    return "in use" if row.active else f"not in use: {row.reason}"


class SandboxReport(msgspec.Struct, frozen=True, kw_only=True):
    """What a pool found.

    Layers are in the order in which runs enter them, launchers fastest first; `readable` is what runs can read besides
    their own directory, `escapes` what the self-test reached.
    """

    layers: tuple[LayerReport, ...]
    launchers: tuple[LauncherReport, ...] = ()
    readable: tuple[str, ...] = ()
    escapes: tuple[str, ...] = ()

    @property
    def launcher(self) -> str:
        """The launcher in use: the first that passed its self-test."""
        return next((launcher.name for launcher in self.launchers if launcher.active), "none")

    def lines(self) -> Iterator[str]:
        """The report for people: a line per layer and launcher, and the result of the self-test."""
        for layer in self.layers:
            yield f"layer     {layer.name:22} {_state(layer)} (stops {layer.stops})"
        for launcher in self.launchers:
            yield f"launcher  {launcher.name:22} {_state(launcher)}"
        yield f"readable  {', '.join(self.readable)}"
        yield f"self-test {'':22} {'reached ' + ', '.join(self.escapes) if self.escapes else 'nothing got out'}"

    @property
    def active_launchers(self) -> tuple[LauncherName, ...]:
        """The launchers that passed."""
        return tuple(launcher.name for launcher in self.launchers if launcher.active)

    @property
    def untested_launchers(self) -> tuple[LauncherName, ...]:
        """The launchers that may still pass."""
        return tuple(launcher.name for launcher in self.launchers if not launcher.is_tested)

    @property
    def missing(self) -> tuple[Guard, ...]:
        """The guards needed here that no active layer covers."""
        covered = {guard for layer in self.layers if layer.active for guard in layer.guards}
        offered = {guard for layer in self.layers for guard in layer.guards}
        needed = [guard for guard in Guard if guard is not Guard.ROOT or guard in offered]
        return tuple(guard for guard in needed if guard not in covered)
