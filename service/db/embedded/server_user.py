"""Whom the server runs as, and who may log in."""

import os
import pwd
from typing import TypedDict

import msgspec

from service.db.embedded.errors import EmbeddedPostgresError


class SpawnIdentity(TypedDict, total=False):
    """The arguments of `subprocess` that start a program as another user."""

    user: int
    group: int
    extra_groups: list[int]


class ServerUser(msgspec.Struct, frozen=True):
    """The operating system's user that runs PostgreSQL's programs.

    `switched` is true when that is another one than this process's, which is then root.
    """

    name: str
    uid: int
    gid: int
    switched: bool

    @property
    def identity(self) -> SpawnIdentity:
        """How to start a program as this user."""
        return SpawnIdentity(user=self.uid, group=self.gid, extra_groups=[]) if self.switched else SpawnIdentity()


_DEFAULTS = ("postgres", "nobody")


def find_server_user(configured: str = "") -> ServerUser:
    """Choose the user: this process's own, or as root the configured one, else `postgres`, else `nobody`.

    Raises:
        EmbeddedPostgresError: there is no such user.
    """
    own_uid = os.geteuid()
    if own_uid != 0:
        own = _own_entry(own_uid)
        return ServerUser(own.pw_name, own.pw_uid, own.pw_gid, switched=False)
    for name in (configured,) if configured else _DEFAULTS:
        entry = _entry(name)
        if entry is not None and entry.pw_uid != 0:
            return ServerUser(entry.pw_name, entry.pw_uid, entry.pw_gid, switched=True)
    raise EmbeddedPostgresError(
        f"PostgreSQL refuses to run as root, and there is no user {configured or ' or '.join(_DEFAULTS)} to run it as. "
        "Name an existing one in GEOMILL_POSTGRES_USER, or use a database of your own (GEOMILL_DATABASE_URL)."
    )


def own_name() -> str:
    """The name of this process's user, which is also its role in the database."""
    return _own_entry(os.geteuid()).pw_name


def _own_entry(uid: int) -> pwd.struct_passwd:
    try:
        return pwd.getpwuid(uid)
    except KeyError:
        raise EmbeddedPostgresError(
            f"User id {uid} has no name on this host, which PostgreSQL's set-up needs. "
            "Run as a user with an entry in /etc/passwd, or use a database of your own (GEOMILL_DATABASE_URL)."
        ) from None


def _entry(name: str) -> pwd.struct_passwd | None:
    try:
        return pwd.getpwnam(name)
    except KeyError:
        return None
