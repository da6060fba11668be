"""Every system call and many paths, tried one by one by a run of the fork server: what each must come to.

Run by `test_attempts.py` as an ordinary user too: `attempts.py BASE PROGRAM LIBRARY` prints what was found.
"""

import errno
import json
import os
import platform
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

import anyio

from sandbox.command import Command, Limits
from sandbox.config import Config, LauncherName, Mode, Ogr2ogr
from sandbox.isolation.system_calls import ALLOWED, COLUMNS, FIRST_SHARED, number_of
from sandbox.process.connection import Connection
from sandbox.verdict import Ending
from tests.sandbox.escapes import surroundings
from tests.sandbox.runs import run_with

SOURCE = Path(__file__).with_suffix(".c")
BEYOND_THE_LAST_CALL = 480
OF_PROBES = frozenset({335, 336})
"""On x86-64, how code of the kernel returns from probes; no filter sees these, and they kill other callers."""
HERE = -100
"""AT_FDCWD, the directory of the run."""
IN_WAYS = os.O_WRONLY | os.O_CREAT
AT_NOTHING = (-1,) * 6
"""With these, no call does anything to the host, should the filter fail to hold it."""
LEVELS: dict[str, frozenset[str]] = {"every layer": frozenset(), "no namespaces": frozenset({"namespaces"})}

Argument = int | str | bytes
Attempt = tuple[str, str | int, tuple[Argument, ...]]
"""What is attempted, the name or number of its call, and the arguments; of bytes, as many zeros are passed."""

BUFFER = bytes(1)
# What the filter allows for some arguments only, with others; a child of the fork server executes nothing.
REFUSED_FOR_THEIR_ARGUMENTS: dict[str, tuple[tuple[int, tuple[Argument, ...]], ...]] = {
    "clone": ((errno.EAGAIN, (17,)), (errno.EAGAIN, (0x10F00,)), (errno.EAGAIN, (0x10000000 | 17,))),
    "clone3": ((errno.ENOSYS, (BUFFER, 88)),),
    "execve": ((errno.EPERM, ("/bin/sh",)), (errno.EPERM, ("/usr/bin/ogr2ogr",)), (errno.EPERM, ("/proc/self/exe",))),
    "fallocate": ((errno.EOPNOTSUPP, (1, 0, 0, 4096)), (errno.EOPNOTSUPP, (1, 1, 0, 1 << 30))),
    "prlimit64": ((errno.EPERM, (1, 7, 0, BUFFER)), (errno.EPERM, (2, 9, 0, BUFFER))),
    "tgkill": tuple((errno.EPERM, (pid, pid, 0)) for pid in (1, 2, -1)),
    # PR_SET_PDEATHSIG, _DUMPABLE, _SECCOMP, _SECUREBITS, _MM, _NO_NEW_PRIVS, _CHILD_SUBREAPER, _PTRACER, ambient rights
    "prctl": tuple((errno.EPERM, (option, 1)) for option in (1, 4, 8, 22, 24, 28, 35, 36, 38, 47, 0x59616D61)),
    # TIOCSTI, TIOCLINUX, TIOCSCTTY, FS_IOC_SETFLAGS, FICLONE, FIBMAP, FIFREEZE, BLKRRPART, SIOCGIFCONF
    "ioctl": tuple(
        (errno.EPERM, (1, request, BUFFER))
        for request in (0x5412, 0x541C, 0x540E, 0x40086602, 0x40049409, 1, 0xC0045877, 0x125F, 0x8912)
    ),
    # F_SETOWN, F_SETSIG, F_OFD_SETLK, F_SETLEASE, F_NOTIFY, F_SETPIPE_SZ, F_ADD_SEALS, F_SET_RW_HINT
    "fcntl": tuple((errno.EPERM, (1, command, 1)) for command in (8, 10, 37, 1024, 1026, 1031, 1033, 1036)),
    "openat": (
        (errno.EPERM, (HERE, "special", IN_WAYS, 0o4755)),
        (errno.EPERM, (HERE, "special", IN_WAYS, 0o1755)),
        (errno.EPERM, (HERE, "in", os.O_RDONLY | os.O_TRUNC)),
    ),
    "mkdirat": ((errno.EPERM, (HERE, "special", 0o2755)), (errno.EPERM, (HERE, "special", 0o1777))),
}
# What a run is for: these show that the attempts reach the kernel.
ALLOWED_AT_HOME: tuple[Attempt, ...] = (
    ("create a file", "openat", (HERE, "mine", IN_WAYS, 0o644)),
    ("make a directory", "mkdirat", (HERE, "sub", 0o755)),
    ("move a file", "renameat2", (HERE, "mine", HERE, "sub/mine", 0)),
    ("see a file", "newfstatat", (HERE, "sub/mine", BUFFER, 0)),
    ("read a file", "openat", (HERE, "sub/mine", os.O_RDONLY)),
    ("remove a file", "unlinkat", (HERE, "sub/mine", 0)),
    ("read its library", "openat", (HERE, "/etc/ld.so.cache", os.O_RDONLY)),
)


def listed_calls() -> dict[str, int]:
    """The calls of this machine that the filter knows, by name."""
    column = COLUMNS[platform.machine()]
    return {row[0]: number for row in ALLOWED if isinstance(number := row[column], int)}


def refused_calls() -> Iterator[tuple[Attempt, int]]:
    """Every call that a run must not make, with the error that it must get."""
    listed = listed_calls()
    for number in sorted(set(range(BEYOND_THE_LAST_CALL)) - set(listed.values()) - OF_PROBES):
        yield (f"call {number}", number, AT_NOTHING), errno.EPERM if number < FIRST_SHARED else errno.ENOSYS
    for name, attempts in REFUSED_FOR_THEIR_ARGUMENTS.items():
        for error, arguments in attempts:
            yield (f"{name}{arguments}", name, arguments), error


def ways_to(path: str) -> Iterator[Attempt]:
    """What would take something at a path; harmless where it succeeds."""
    yield f"read {path}", "openat", (HERE, path, os.O_RDONLY | os.O_NONBLOCK)
    yield f"list {path}", "openat", (HERE, path, os.O_RDONLY | os.O_DIRECTORY)
    yield f"write {path}", "openat", (HERE, path, os.O_WRONLY | os.O_NONBLOCK)
    yield f"create a file without a name in {path}", "openat", (HERE, path, os.O_RDWR | os.O_TMPFILE, 0o600)


def ways_to_change(path: str) -> Iterator[Attempt]:
    """What would change or add something there; only at paths of the test, since a layer might fail to hold it."""
    new = f"{path}/new"
    yield f"create {new}", "openat", (HERE, new, IN_WAYS, 0o644)
    yield f"make {new}", "mkdirat", (HERE, new, 0o755)
    yield f"move to {new}", "renameat2", (HERE, "in", HERE, new, 0)
    yield f"move {path}", "renameat2", (HERE, path, HERE, "taken", 0)
    yield f"exchange {path}", "renameat2", (HERE, "in", HERE, path, 2)
    yield f"remove {path}", "unlinkat", (HERE, path, 0)
    yield f"remove directory {path}", "unlinkat", (HERE, path, 0x200)


def ways_to_see(path: str) -> Iterator[Attempt]:
    """What would tell whether a path exists."""
    yield f"see {path}", "newfstatat", (HERE, path, BUFFER, 0)
    yield f"see more of {path}", "statx", (HERE, path, 0, 0xFFF, BUFFER)
    yield f"may read {path}", "faccessat", (HERE, path, os.R_OK)
    yield f"hold {path}", "openat", (HERE, path, os.O_PATH)
    yield f"enter {path}", "chdir", (path,)
    yield f"file system of {path}", "statfs", (path, BUFFER)


def outside(work_root: Path, elsewhere: Path) -> tuple[str, ...]:
    """What the test has made, which exists on the host and not for a run."""
    own = (elsewhere, elsewhere / "canary", elsewhere / "writable", elsewhere / "socket")
    other = (work_root / "other", work_root / "other" / "secret")
    return tuple(map(str, (*own, *other)))


_PATHS = (
    "/ /usr /usr/lib /etc /etc/ld.so.cache /tmp /var/tmp /proc /dev /dev/shm /root /home .. /dev/mem /dev/kmsg "
    "/dev/tty /dev/ptmx /dev/fuse /dev/kvm /dev/net/tun /proc/1/environ /proc/1/mem /proc/self/mem /proc/kcore "
    "../../etc/passwd /proc/sys/kernel/core_pattern /proc/self/root/etc/passwd /proc/self/cwd/../other"
)
HIDDEN = ("/etc/passwd", "/etc/shadow", "/run", "/sys", "/boot")
"""What else exists on the host and not for a run."""
UNTOUCHABLE = _PATHS.split()
"""What a run may know of, and not change; and what nobody may read of it."""
READABLE = frozenset({"/usr", "/usr/lib", "/etc/ld.so.cache"})


def attempts_on(work_root: Path, elsewhere: Path, *, can_hide: bool) -> Iterator[Attempt]:
    """All attempts on what is not the run's; where nothing `can_hide` paths, none to see whether they exist."""
    made = outside(work_root, elsewhere)
    for path in made:
        yield from ways_to_change(path)
    for path in (*made, *HIDDEN, *UNTOUCHABLE):
        yield from (each for each in ways_to(path) if not (path in READABLE and each[0].startswith(("read ", "list "))))
    for path in (*made, *HIDDEN) if can_hide else ():
        yield from ways_to_see(path)
    for number in range(64):
        yield f"hold what is above descriptor {number}", "openat", (number, "..", os.O_PATH)
        yield f"list what descriptor {number} is", "openat", (number, ".", os.O_RDONLY)


def written(attempts: Sequence[Attempt]) -> str:
    """The list that the program reads."""
    return "".join("\t".join((_number(call), *map(_argument, given))) + "\n" for _, call, given in attempts)


def _number(call: str | int) -> str:
    return str(call if isinstance(call, int) else listed_calls().get(call) or number_of(call))


def _argument(given: Argument) -> str:
    return f"i{given}" if isinstance(given, int) else f"s{given}" if isinstance(given, str) else "b"


async def errors_of(connection: Connection, config: Config, attempts: Sequence[Attempt]) -> dict[str, int]:
    """Try all of them in one run; return the error of each, or 0."""
    assert config.ogr2ogr is not None
    directory = config.work_root / f"run{len(list(config.work_root.iterdir()))}"
    directory.mkdir()
    (directory / "in").write_text(written(attempts))
    program = str(config.ogr2ogr.program)
    command = Command(argv=(program,), directory=directory, limits=Limits(wall_seconds=20))
    verdict = await run_with(connection, LauncherName.FORK_SERVER, command)
    assert verdict.ending is Ending.OK, verdict
    errors = map(int, (directory / "out").read_text().split())
    return dict(zip((name for name, _, _ in attempts), errors, strict=True))


async def found(base: Path, program: Path, library: Path) -> dict[str, list[str]]:
    """What does not come to what it must, for each level."""
    work_root, elsewhere = base / "work", base / "outside"
    for path in (work_root, elsewhere):
        path.mkdir()
    differing: dict[str, list[str]] = {}
    ogr2ogr = Ogr2ogr(program=program, fork_server=library)
    with surroundings(work_root, elsewhere):
        for level, without in LEVELS.items():
            config = Config(work_root=work_root, mode=Mode.BEST_EFFORT, converters=1, ogr2ogr=ogr2ogr, without=without)
            connection = Connection(config)
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(connection.serve)
                report = await connection.opened()
                connection.use([LauncherName.FORK_SERVER])
                can_hide = any(layer.active for layer in report.layers if layer.name == "namespaces")
                home = await errors_of(connection, config, ALLOWED_AT_HOME)
                calls = dict(refused_calls())
                errors = await errors_of(connection, config, list(calls))
                taken = await errors_of(connection, config, list(attempts_on(work_root, elsewhere, can_hide=can_hide)))
                connection.close()
            differing[level] = [
                *(name for name, error in home.items() if error),
                *(
                    f"{name}: {errno.errorcode[errors[name]]}"
                    for (name, *_), due in calls.items()
                    if errors[name] != due
                ),
                *(name for name, error in taken.items() if not error),
            ]
    assert (elsewhere / "canary").read_text() == "canary"
    assert not list((elsewhere / "writable").iterdir())
    return differing


def compile_attempts(directory: Path, compiler: str) -> Path:
    """The program."""
    program = directory / "attempts"
    subprocess.run([compiler, "-O1", "-o", program, SOURCE], check=True)
    return program


if __name__ == "__main__":
    base, program, library = map(Path, sys.argv[1:])
    print(json.dumps({"user": os.getuid(), "found": anyio.run(found, base, program, library)}))  # noqa: T201 - read by the test
