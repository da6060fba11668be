"""Run by `test_hosts.py` as an ordinary user: opens a pool and reports what it found.

`ordinary_user.py WORK_ROOT [refuse]`: with `refuse` the kernel gives it no user namespace, as many hosts do.
"""

import json
import os
import sys
from pathlib import Path

import anyio
import msgspec

from sandbox import syscalls
from sandbox.command import Command
from sandbox.config import Config
from sandbox.isolation.namespaces import NEW_USER
from sandbox.pool import open_pool


def refuse_namespaces() -> None:
    """Restart, without the last argument, in a user namespace without rights that allows no further one."""
    user, group = os.getuid(), os.getgid()
    syscalls.named("unshare", NEW_USER)
    Path("/proc/self/setgroups").write_text("deny", encoding="ascii")
    Path("/proc/self/uid_map").write_text(f"{user} {user} 1\n", encoding="ascii")
    Path("/proc/self/gid_map").write_text(f"{group} {group} 1\n", encoding="ascii")
    Path("/proc/sys/user/max_user_namespaces").write_text("0", encoding="ascii")
    # A program that is started loses the rights of whoever is not root in his namespace.
    again = [sys.executable, sys.argv[0], *sys.argv[1:-1]]
    os.execv(sys.executable, again)  # noqa: S606 - no shell is wanted


async def main(work_root: Path) -> None:
    """Open a pool, run something, report."""
    directory = work_root / "job"
    directory.mkdir()
    async with open_pool(Config(work_root=work_root, programs=(Path("/bin/true"),))) as pool:
        async with pool.lease("tenant") as converter:
            verdict = await converter.run(Command(argv=("/bin/true",), directory=directory))
        report = msgspec.to_builtins(pool.report())
    print(json.dumps({"report": report, "ending": verdict.ending, "detail": verdict.detail}))  # noqa: T201 - read by the test


if __name__ == "__main__":
    if sys.argv[2:] == ["refuse"]:
        refuse_namespaces()
    anyio.run(main, Path(sys.argv[1]))
