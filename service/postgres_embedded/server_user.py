"""The user that runs the server, and the role that may log in."""

import os
import pwd
from typing import TypedDict

import msgspec

from service.postgres_embedded.errors import EmbeddedPostgresError


class SpawnIdentity(TypedDict, total=False):
    """The arguments of `subprocess` that start a program as another user."""

    user: int
    group: int
    extra_groups: list[int]


class ServerUser(msgspec.Struct, frozen=True):
    """The operating system's user that runs PostgreSQL's programs.

    `switched` is true if it is not the user of this process, which is then root.
    """

    name: str
    uid: int
    gid: int
    switched: bool

    @property
    def identity(self) -> SpawnIdentity:
        """The arguments that start a program as this user."""
        return SpawnIdentity(user=self.uid, group=self.gid, extra_groups=[]) if self.switched else SpawnIdentity()


_DEFAULTS = ("postgres", "nobody")


def find_server_user(configured: str = "", data_owner: int | None = None) -> ServerUser:
    """Choose the user of the server: as root the configured user, the owner of the data, `postgres` or `nobody`.

    Any other user runs it itself.

    Args:
        configured: the name of a user, or empty.
        data_owner: the user id that owns existing data.

    Raises:
        EmbeddedPostgresError: there is no such user, or the data belong to another user.
    """
    if os.geteuid() != 0:
        return _server_user(_own_entry(os.geteuid()), switched=False)
    candidates = _candidates(configured, data_owner)
    chosen = next((entry for entry in candidates if entry is not None and entry.pw_uid != 0), None)
    if chosen is None:
        raise EmbeddedPostgresError(
            f"PostgreSQL refuses to run as root, and there is no user {configured or ' or '.join(_DEFAULTS)} to run it "
            "as. Name an existing one in GEOMILL_POSTGRES_USER, or use a database of your own (GEOMILL_DATABASE_URL)."
        )
    if data_owner not in (None, chosen.pw_uid):
        raise EmbeddedPostgresError(
            f"The database's files belong to user id {data_owner}, but {chosen.pw_name} is to run it. "
            "Set GEOMILL_POSTGRES_USER to their owner, or give them to that user (chown -R) while it does not run."
        )
    return _server_user(chosen, switched=True)


def _candidates(configured: str, data_owner: int | None) -> list[pwd.struct_passwd | None]:
    if configured:
        return [_by_name(configured)]
    owner = None if data_owner is None else _by_uid(data_owner)
    return [owner, *map(_by_name, _DEFAULTS)]


def _server_user(entry: pwd.struct_passwd, *, switched: bool) -> ServerUser:
    return ServerUser(entry.pw_name, entry.pw_uid, entry.pw_gid, switched)


def own_name() -> str:
    """Return the name of this process's user, which is also its role in the database."""
    return _own_entry(os.geteuid()).pw_name


def _own_entry(uid: int) -> pwd.struct_passwd:
    entry = _by_uid(uid)
    if entry is None:
        raise EmbeddedPostgresError(
            f"User id {uid} has no name on this host, which PostgreSQL's set-up needs. "
            "Run as a user with an entry in /etc/passwd, or use a database of your own (GEOMILL_DATABASE_URL)."
        )
    return entry


def _by_uid(uid: int) -> pwd.struct_passwd | None:
    try:
        return pwd.getpwuid(uid)
    except KeyError:
        return None


def _by_name(name: str) -> pwd.struct_passwd | None:
    try:
        return pwd.getpwnam(name)
    except KeyError:
        return None
