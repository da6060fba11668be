"""The isolation layers, one per module.

A layer declares what it stops and which guards it provides, probes itself by doing what it does, and writes the steps
that put a process behind it. It keeps no state between runs. `policy` defines the order and the requirements; the code
that takes the steps knows no layer.
"""

from typing import Protocol

from sandbox.isolation.jail import Jail
from sandbox.report import Guard


class Probed(Protocol):
    """A part of the jail that a host may not support."""

    @property
    def name(self) -> str:
        """Its name in reports."""

    @property
    def stops(self) -> str:
        """What it prevents, in a few words."""

    @property
    def guards(self) -> frozenset[Guard]:
        """The guards that it provides on its own."""

    def probe(self) -> None:
        """Do what the layer does, in a process that ends afterwards.

        Raises:
            OSError: the host refuses it, or it has no effect.
        """


class IsolationLayer(Probed, Protocol):
    """A barrier between a program and its host."""

    def steps(self, jail: Jail) -> bytes:
        """The steps, as `Steps` packs them, for the process that becomes this run's program.

        Raises:
            OSError: this machine's system calls are not known.
        """
