"""What the layers need to know of the run that they enclose."""

from collections.abc import Sequence

import msgspec

from sandbox.command import Limits


class Jail(msgspec.Struct, frozen=True, kw_only=True):
    """One run as its layers see it.

    `user` is the slot's, None where the service is an ordinary user; `ruleset` is a descriptor of Landlock's,
    `group` one of the slot's memory group.
    """

    directory: str
    limits: Limits
    spawner: int
    user: int | None = None
    ruleset: int | None = None
    group: int | None = None

    @property
    def descriptors(self) -> list[int]:
        """The descriptors among these, in the order in which they are sent to another process."""
        return [descriptor for descriptor in (self.ruleset, self.group) if descriptor is not None]

    def with_descriptors(self, received: Sequence[int]) -> "Jail":
        """The same for the process that received them, under the numbers that they have there."""
        given = iter(received)
        ruleset = None if self.ruleset is None else next(given)
        group = None if self.group is None else next(given)
        return msgspec.structs.replace(self, ruleset=ruleset, group=group)
