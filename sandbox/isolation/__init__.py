"""One isolation layer a file.

A layer says what it stops and which guard it is part of, can be probed by doing it, and is entered by the process that
becomes the program. It keeps no state between runs. Order and requirements are `policy`'s.
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

    def enter(self, jail: Jail) -> None:
        """Put the calling process behind the barrier, for good.

        Raises:
            OSError: it could not; the process must not go on.
        """
