"""What hostile programs try, and their targets."""

import os
import shutil
import socket
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

SOURCE = Path(__file__).with_name("hostile.c")
ABSTRACT = f"sandbox-test-canary-{os.getpid()}"


def compile_hostile(directory: Path) -> Path | None:
    """The hostile program, or None without a compiler."""
    compiler = shutil.which("cc")
    if compiler is None:
        return None
    program = directory / "hostile"
    subprocess.run([compiler, "-O1", "-o", program, SOURCE], check=True)
    return program


@contextmanager
def surroundings(work_root: Path, outside: Path) -> Iterator[dict[str, tuple[str, ...]]]:
    """Targets outside a run's directory; yields the attacks on them by their names in reports."""
    outside.chmod(0o755)
    (outside / "canary").write_text("canary")
    (outside / "writable").mkdir(mode=0o777)
    (outside / "writable").chmod(0o777)
    other = work_root / "other"
    other.mkdir(mode=0o700)
    (other / "secret").write_text("secret")
    with ExitStack() as stack:
        tcp = stack.enter_context(socket.create_server(("127.0.0.1", 0)))
        udp = stack.enter_context(socket.socket(socket.AF_INET, socket.SOCK_DGRAM))
        udp.bind(("127.0.0.1", 0))
        for address in (str(outside / "socket"), f"\0{ABSTRACT}"):
            local = stack.enter_context(socket.socket(socket.AF_UNIX))
            local.bind(address)
            local.listen()
        (outside / "socket").chmod(0o777)
        yield {
            "read a file outside": ("read", str(outside / "canary")),
            "read the users": ("read", "/etc/passwd"),
            "read another run's file": ("read", str(other / "secret")),
            "read a process's memory": ("read", "/proc/1/environ"),
            "see a file outside": ("stat", str(outside / "canary")),
            "see another run's file": ("stat", str(other / "secret")),
            "list the root": ("list", "/"),
            "list the work root": ("list", str(work_root)),
            "list another run's directory": ("list", str(other)),
            "write outside": ("write", str(outside / "writable" / "file")),
            "write over a file outside": ("write", str(outside / "canary")),
            "write into another run's directory": ("write", str(other / "file")),
            "move a file out": ("rename out", str(outside / "writable" / "in")),
            "connect by TCP": ("tcp", str(tcp.getsockname()[1])),
            "send by UDP": ("udp", str(udp.getsockname()[1])),
            "connect to a Unix socket": ("unix socket", str(outside / "socket")),
            "connect to an abstract socket": ("abstract socket", ABSTRACT),
            "hard link": ("hard link", str(outside / "canary")),
            "execute a shell": ("execute", "/bin/sh"),
            "become root": ("become user", "0"),
            "become another user": ("become user", "1879048193"),
        } | {
            name: (name,)
            for name in (
                "raw socket",
                "netlink socket",
                "fork",
                "ptrace parent",
                "ptrace init",
                "signal parent",
                "signal all",
                "limit parent",
                "mount",
                "remount",
                "new namespace",
                "change root",
                "symbolic link",
                "pipe file",
                "device",
                "raise limit",
                "io_uring",
                "anonymous file",
                "keyring",
                "kernel program",
                "page faults",
                "memory of parent",
                "descriptor of parent",
                "count events",
                "share by number",
                "new file system",
                "copy of a mount",
                "process in a new namespace",
                "secret memory",
                "open descriptor",
                "host name",
                "x32 call",
            )
        }
