"""All layers, the order in which runs enter them, and what strict mode requires."""

import os
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TypeVar

from sandbox.config import Config, Mode
from sandbox.interpreter import PYTHON
from sandbox.isolation import IsolationLayer, Probed, readable_paths
from sandbox.isolation.landlock import DEVICE, EXECUTE, READ, Landlock, Rule
from sandbox.isolation.memory_group import MemoryGroup
from sandbox.isolation.parent_death import ParentDeath
from sandbox.isolation.privileges import NoCapabilities, NoNewPrivileges
from sandbox.isolation.rlimits import ResourceLimits
from sandbox.isolation.seccomp import SystemCallFilter
from sandbox.isolation.session import OwnSession
from sandbox.isolation.user import UnprivilegedUser
from sandbox.isolation.view import PrivateView
from sandbox.report import LayerReport, SandboxReport, reason_of

_Part = TypeVar("_Part", bound=Probed)


class SandboxUnavailable(RuntimeError):
    """This host lacks a layer that strict mode requires; the message names it and what to do."""


def layers(config: Config, *, in_namespaces: bool, is_root: bool, memory: MemoryGroup) -> tuple[IsolationLayer, ...]:
    """All layers that a run enters, in order.

    Layers that need rights come first; the change of user drops the rights and clears the parent-death signal; the
    system-call filter comes last because it forbids what the other layers do.
    """
    return (
        OwnSession(),
        memory,
        PrivateView(str(config.work_root), in_namespaces=in_namespaces),
        ResourceLimits(),
        NoCapabilities(),
        UnprivilegedUser(readable_paths.everything(config), config.work_root, is_root=is_root),
        NoNewPrivileges(),
        Landlock(_rules_by_program(config), _rules(readable_paths.everything(config), readable_paths.programs(config))),
        ParentDeath(),
        SystemCallFilter(),
    )


def _rules_by_program(config: Config) -> Mapping[str, Sequence[Rule]]:
    """Rules per program: ogr2ogr cannot read Python's files, nor Python those of ogr2ogr."""
    shared, python = readable_paths.for_every_program(config), Path(PYTHON)
    found = {str(python): _rules((*shared, *readable_paths.for_python(config)), (python,))}
    if config.ogr2ogr is not None:
        found[str(config.ogr2ogr.program)] = _rules(shared, (config.ogr2ogr.program,))
    return found


def _rules(readable: Iterable[Path], programs: Iterable[Path]) -> Sequence[Rule]:
    allowed = [
        *((path, READ) for path in readable),
        *((path, EXECUTE) for path in (*programs, *readable_paths.loaders())),
        (Path("/dev/null"), DEVICE),
        (Path("/dev/urandom"), READ),
    ]
    granted: dict[Path, int] = {}
    for path, access in allowed:
        if path.exists():
            found = path.resolve()
            granted[found] = granted.get(found, 0) | access
    return [Rule(path, access) for path, access in granted.items() if not _is_implied(path, access, granted)]


def _is_implied(path: Path, access: int, granted: Mapping[Path, int]) -> bool:
    """Whether a rule for a directory above `path` already allows it."""
    return any(granted.get(above, 0) & access == access for above in path.parents)


def probe(layer: Probed) -> str:
    """Probe `layer` in a separate process; returns why it does not work here, or an empty string."""
    reader, writer = os.pipe2(os.O_CLOEXEC)
    child = os.fork()
    if child == 0:
        try:
            layer.probe()
        except Exception as error:  # noqa: BLE001 - any error makes the layer unusable
            os.write(writer, reason_of(error).encode()[:500] or b"failed")
        finally:
            os._exit(0)
    os.close(writer)
    with os.fdopen(reader, "rb") as pipe:
        reason = pipe.read().decode()
    _, status = os.waitpid(child, 0)
    return reason or ("" if status == 0 else "the probe was killed")


def choose(candidates: Sequence[_Part], without: frozenset[str]) -> tuple[tuple[_Part, ...], tuple[LayerReport, ...]]:
    """The candidates that work here, and a report on all of them."""
    reports = tuple(_report(layer, without) for layer in candidates)
    return tuple(layer for layer, report in zip(candidates, reports, strict=True) if report.active), reports


def _report(layer: Probed, without: frozenset[str]) -> LayerReport:
    reason = "left out by configuration" if layer.name in without else probe(layer)
    return LayerReport(name=layer.name, stops=layer.stops, guards=layer.guards, active=not reason, reason=reason)


def enforce(mode: Mode, report: SandboxReport) -> None:
    """Raise an error if strict mode does not allow what was found.

    Raises:
        SandboxUnavailable: a required guard is covered by no layer, or the self-test reached something outside.
    """
    missing = report.missing
    if mode is Mode.STRICT and report.escapes:
        raise SandboxUnavailable(
            "Untrusted files cannot be isolated on this host: in the self-test a jailed program reached "
            f"{', '.join(report.escapes)}."
        )
    if mode is Mode.STRICT and missing:
        reasons = "; ".join(
            f"{layer.name}: {layer.reason}"
            for layer in report.layers
            if not layer.active and layer.guards.intersection(missing)
        )
        raise SandboxUnavailable(
            f"Untrusted files cannot be isolated on this host: no layer guards the {' and the '.join(missing)} "
            f"({reasons}). Allow one of these layers, or accept weaker isolation by choosing best-effort."
        )
