"""What the layers need to know of the run that they enclose."""

import msgspec

from sandbox.command import Limits


class Jail(msgspec.Struct, frozen=True, kw_only=True):
    """One run as its layers see it.

    `user` is the slot's, None where the service is an ordinary user; `ruleset` is a descriptor of Landlock's.
    """

    directory: str
    limits: Limits
    spawner: int
    user: int | None = None
    ruleset: int | None = None
