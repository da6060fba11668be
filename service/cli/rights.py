"""What the gateway may do besides serving: as root, what it needs to start its helpers anew, and nothing else.

It stays root, because the database's role and the data directory are root's once root has made them, and `geomill
account` runs beside it. Whoever wants it to be nobody in particular starts it as an ordinary user, as the image does.
"""

import os
from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from sandbox import rights
from sandbox.isolation import namespaces
from sandbox.isolation.namespaces import NEW_USER

NEEDED: Final[Mapping[int, str]] = MappingProxyType(
    {
        rights.CHOWN: "gives the database's directories to its user",
        rights.DAC_OVERRIDE: "reaches the database's socket and the runs' directories, which are other users'",
        rights.FOWNER: "removes directories that a run has closed",
        rights.KILL: "ends the database's server, and runs where there is no namespace",
        rights.SETGID: "becomes the group of the database, and of a run",
        rights.SETUID: "becomes the user of the database, and of a run",
        rights.SETPCAP: "takes these very rights from runs",
        rights.SYS_RESOURCE: "limits waiting processes, which are other users'",
        rights.SYS_PTRACE: "counts what runs hold where there is no namespace",
        rights.SETFCAP: "names root among the users of a namespace",
    }
)
"""For each capability, what a helper that is started anew does with it; it has them from the gateway."""


def give_up_rights() -> None:
    """Keep as root the capabilities of `NEEDED`, and as anybody none; gain none by programs; let nobody look in.

    Raises:
        OSError: the kernel refuses.
    """
    if os.geteuid() != 0:
        rights.keep_only()
    else:
        rights.keep_only([*NEEDED, *(() if _makes_user_namespaces() else (rights.SYS_ADMIN,))])


def _makes_user_namespaces() -> bool:
    """Whether the jail's namespaces need no right, as they do where the host refuses those of users."""
    try:
        child = namespaces.fork_into(NEW_USER)
    except OSError:
        return False
    if child == 0:
        os._exit(0)
    os.waitpid(child, 0)
    return True
