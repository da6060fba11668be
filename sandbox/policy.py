"""Which layers there are, the order in which they are entered, and which of them strict mode requires."""

import os
from collections.abc import Iterable

from sandbox.config import Mode
from sandbox.layers import Layer
from sandbox.layers.parent_death import ParentDeath
from sandbox.layers.privileges import NoNewPrivileges
from sandbox.layers.rlimits import ResourceLimits
from sandbox.layers.session import OwnSession
from sandbox.report import Guard, LayerReport, Report

# Order matters: changing the user clears the parent-death signal, and the system-call filter forbids all of the rest.
LAYERS: tuple[Layer, ...] = (
    OwnSession(),
    ResourceLimits(),
    NoNewPrivileges(),
    ParentDeath(),
)

REQUIRED: tuple[Guard, ...] = ()


class SandboxUnavailable(RuntimeError):
    """This host lacks a layer that strict mode requires; the message names it and the way out."""


def probe(layer: Layer) -> str:
    """Do what `layer` does in a process of its own; returns why it does not work here, or nothing."""
    reader, writer = os.pipe2(os.O_CLOEXEC)
    child = os.fork()
    if child == 0:
        try:
            layer.probe()
        except Exception as error:  # noqa: BLE001 - whatever it is, the layer cannot be used
            os.write(writer, str(error).encode()[:500] or b"failed")
        finally:
            os._exit(0)
    os.close(writer)
    with os.fdopen(reader, "rb") as pipe:
        reason = pipe.read().decode()
    _, status = os.waitpid(child, 0)
    return reason or ("" if status == 0 else "the probe was killed")


def choose(without: Iterable[str]) -> tuple[tuple[Layer, ...], tuple[LayerReport, ...]]:
    """The layers that work here, and the account of all of them."""
    left_out = frozenset(without)
    reports = tuple(_report(layer, left_out) for layer in LAYERS)
    active = tuple(layer for layer, report in zip(LAYERS, reports, strict=True) if report.active)
    return active, reports


def _report(layer: Layer, left_out: frozenset[str]) -> LayerReport:
    reason = "left out by configuration" if layer.name in left_out else probe(layer)
    return LayerReport(name=layer.name, stops=layer.stops, guards=layer.guards, active=not reason, reason=reason)


def enforce(mode: Mode, report: Report) -> None:
    """Refuse what strict mode does not allow.

    Raises:
        SandboxUnavailable: a required guard is covered by no layer.
    """
    missing = [guard for guard in report.missing if guard in REQUIRED]
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
