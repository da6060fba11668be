"""The capabilities of the gateway: as root, those that it needs to restart its helpers, and no others.

It stays root, because the database's role and the data directory belong to root once root has created them, and
`geomill account` uses them, too. To serve without privileges, start it as an ordinary user, as the image does.
"""

import os
from contextlib import suppress
from enum import Flag, auto
from typing import Final, NamedTuple

from sandbox import rights
from sandbox.process.keeper import is_confined_by_any_user

_OTHERS_MAY_WRITE: Final = 0o022


class Needs(Flag):
    """What a capability is needed for."""

    RUNS = auto()
    """Whatever the host gives."""
    NAMESPACES = auto()
    """A host that lets users make namespaces."""
    NO_NAMESPACES = auto()
    """A host that does not: what a run is kept from, the spawner does with root's rights."""
    DATABASE = auto()
    """The embedded database, which runs as another user."""


class Right(NamedTuple):
    """A capability, what needs it, and what a restarted helper does with it; it has it from the gateway."""

    capability: int
    needed_by: Needs
    purpose: str


RIGHTS: Final = (
    Right(rights.DAC_OVERRIDE, Needs.RUNS, "reaches runs' directories and the database's socket, which are others'"),
    Right(rights.FOWNER, Needs.RUNS, "removes directories that a run has closed"),
    Right(rights.SETGID, Needs.RUNS, "names the groups of runs, and becomes that of the database"),
    Right(rights.SETUID, Needs.RUNS, "names the users of runs, and becomes that of the database"),
    Right(rights.SETFCAP, Needs.NAMESPACES, "names root among the users of a namespace"),
    Right(rights.CHOWN, Needs.DATABASE | Needs.NO_NAMESPACES, "gives directories to the database's user, and to runs'"),
    Right(rights.KILL, Needs.DATABASE | Needs.NO_NAMESPACES, "ends the database's server, and runs"),
    Right(rights.SETPCAP, Needs.RUNS, "takes these very rights from runs, and the keeper's from itself"),
    Right(rights.SYS_PTRACE, Needs.NO_NAMESPACES, "counts what runs hold"),
    Right(rights.SYS_ADMIN, Needs.NO_NAMESPACES, "makes the namespaces that users may not make"),
)


def needed(here: Needs) -> list[int]:
    """The capabilities that at least one of these needs requires."""
    return [right.capability for right in RIGHTS if right.needed_by & here]


def give_up_rights(*, embeds_database: bool) -> None:
    """Drop all capabilities but those that root needs here, prevent gaining any, and forbid inspection of this process.

    Raises:
        OSError: the kernel refuses.
    """
    let_nobody_else_write()
    rights.keep_only(needed(needs(embeds_database=embeds_database)) if os.geteuid() == 0 else ())


def let_nobody_else_write() -> None:
    """Deny all others the right to write what is created from now on, such as the data directory."""
    os.umask(os.umask(_OTHERS_MAY_WRITE) | _OTHERS_MAY_WRITE)


def needs(*, embeds_database: bool) -> Needs:
    """What needs capabilities on this host."""
    here = Needs.NAMESPACES if _namespaces_are_enough() else Needs.NO_NAMESPACES
    return Needs.RUNS | here | (Needs.DATABASE if embeds_database else Needs(0))


def _namespaces_are_enough() -> bool:
    """Try it with the rights that would be left then, in a process of its own; this one is to have one thread."""
    child = os.fork()
    if child == 0:
        with suppress(BaseException):
            rights.keep_only(needed(Needs.RUNS | Needs.NAMESPACES))
            os._exit(0 if is_confined_by_any_user() else 1)
        os._exit(1)
    return os.waitpid(child, 0)[1] == 0
