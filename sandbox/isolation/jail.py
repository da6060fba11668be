"""What the layers need to know about a run, and what they produce for it."""

import msgspec

from sandbox.command import Limits
from sandbox.isolation.steps import Argument, descriptor


class Jail(msgspec.Struct, frozen=True, kw_only=True):
    """One run as its layers see it.

    `executes` says whether its process still has to execute its program; `user` is the slot's, or None if the service
    is an ordinary user; `ruleset` is a Landlock descriptor, `group` a descriptor of the slot's memory group.
    """

    directory: str
    limits: Limits
    spawner: int
    executes: bool
    user: int | None = None
    ruleset: int | None = None
    group: int | None = None

    @property
    def descriptors(self) -> list[int]:
        """The descriptors among these fields, in the order in which they accompany the steps."""
        return [found for found in (self.ruleset, self.group) if found is not None]

    def as_argument(self, own: int | None) -> Argument:
        """One of these descriptors, as the argument of a step.

        Raises:
            ValueError: the run has no such descriptor.
        """
        return descriptor(self.descriptors.index(-1 if own is None else own))


class Confinement(msgspec.Struct, frozen=True):
    """What puts a process behind all layers of a run: the steps, and the descriptors that accompany them."""

    steps: bytes
    descriptors: list[int]
