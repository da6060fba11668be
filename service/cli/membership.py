"""One of several serving processes: what its parent tells it, and what is its share of the service's limits."""

import os
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import msgspec

from sandbox import syscalls
from service.app.converters import converters_of
from service.cli.announcement import Announcement
from service.settings import Settings
from service.siblings import Siblings, open_board

BOARD = "board"
METRICS = "metrics"


class Membership(msgspec.Struct, frozen=True, kw_only=True):
    """Process `number` of `count`, numbered from 1.

    `directory` is shared by the processes of one parent; the descriptors are those of the inherited sockets and of the
    pipe on which the process reports that it is ready.
    """

    number: int
    count: int
    parent: int
    directory: str
    main: int
    private: int | None
    report: int


@contextmanager
def joined(membership: Membership) -> Iterator[Siblings]:
    """Join the other processes. From now on, this process ends when its parent does.

    Raises:
        SystemExit: the parent has ended already.
    """
    syscalls.prctl(syscalls.PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != membership.parent:
        sys.exit("the parent process has ended")
    os.set_inheritable(membership.report, False)
    yield Siblings(open_board(Path(membership.directory, BOARD), membership.count), membership.number)


def report_ready(membership: Membership, announcement: Announcement) -> None:
    """Tell the parent that this process accepts requests."""
    os.write(membership.report, msgspec.json.encode(announcement) + b"\n")


def share_of(settings: Settings, number: int, count: int) -> Settings:
    """Return the settings of one process; the limits of all processes add up to those of the service.

    Each is at least 1, and no waiting room is so small that an idle process refuses a whole batch.
    """

    def part(total: int, least: int = 1) -> int:
        return max(min(total, least), total // count + (number <= total % count))

    return msgspec.structs.replace(
        settings,
        converters=part(converters_of(settings)),
        suspended=part(settings.suspended) if settings.suspended else 0,
        waiting_room=part(settings.waiting_room, settings.max_batch_files),
        max_connections=part(settings.max_connections),
        max_per_account=part(settings.max_per_account),
    )
