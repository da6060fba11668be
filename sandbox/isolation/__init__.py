"""One isolation layer a file.

A layer says what it stops and which guard it is part of, can be probed by doing it, and writes down the steps that put
a process behind it. It keeps no state between runs. Order and requirements are `policy`'s; whoever takes the steps
knows no layer.
"""

from typing import Protocol

from sandbox.isolation.jail import Jail
from sandbox.report import Guard


class Probed(Protocol):
    """A part of the jail that a host may lack."""

    @property
    def name(self) -> str:
        """What reports call it."""

    @property
    def stops(self) -> str:
        """What it prevents, in a few words."""

    @property
    def guards(self) -> frozenset[Guard]:
        """What it covers on its own."""

    def probe(self) -> None:
        """Do it, in a process that ends afterwards.

        Raises:
            OSError: the host refuses it, or it has no effect.
        """


class Layer(Probed, Protocol):
    """A barrier between a program and its host."""

    def steps(self, jail: Jail) -> bytes:
        """What the process that becomes the program of this run has to do, as `Steps` pack it.

        Raises:
            OSError: the calls of this machine are not known.
        """
