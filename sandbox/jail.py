"""What the layers need to know of the run that they enclose."""

import msgspec

from sandbox.command import Limits


class Jail(msgspec.Struct, frozen=True, kw_only=True):
    """One run as its layers see it.

    `limits` is None for a process that is held ready and limited from outside when its command comes; `user` is the
    slot's, None where the service is an ordinary user; `ruleset` is a descriptor of Landlock's.
    """

    directory: str
    limits: Limits | None
    spawner: int
    user: int | None = None
    ruleset: int | None = None
