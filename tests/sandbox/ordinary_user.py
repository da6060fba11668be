"""Run by `test_hosts.py` as an ordinary user: opens a pool and reports what it found.

`ordinary_user.py WORK_ROOT [refuse|lack]`: with `refuse` the kernel gives it no user namespace, as many hosts do; with
`lack` it knows no Landlock, as kernels before 5.13 and the filters of some container engines.
"""

import ctypes
import errno
import json
import os
import struct
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


def lack_landlock() -> None:
    """Let the kernel answer the first of Landlock's calls as if it did not know it."""
    load, equal, give = (0x20, 0, 0, 0), (0x15, 0, 1, 444), (0x06, 0, 0, 0x7FFF0000)
    program = b"".join(
        struct.pack("=HBBI", *step) for step in (load, equal, (0x06, 0, 0, 0x50000 | errno.ENOSYS), give)
    )
    kept = ctypes.create_string_buffer(program, len(program))
    syscalls.prctl(syscalls.PR_SET_NO_NEW_PRIVS, 1)
    header = ctypes.create_string_buffer(struct.pack("=H6xQ", len(program) // 8, ctypes.addressof(kept)))
    syscalls.prctl(syscalls.PR_SET_SECCOMP, 2, ctypes.addressof(header))


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
    if sys.argv[2:] == ["lack"]:
        lack_landlock()
    anyio.run(main, Path(sys.argv[1]))
