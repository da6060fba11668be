"""What the layers need to know of the run that they enclose."""

import msgspec

from sandbox.command import Limits


class Jail(msgspec.Struct, frozen=True, kw_only=True):
    """One run as its layers see it."""

    directory: str
    limits: Limits
    spawner: int
