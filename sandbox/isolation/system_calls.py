"""The numbers, on x86-64 and 64-bit ARM, of the system calls that a converter may make and that layers make.

Everything else is denied: sockets, other processes, mounts, namespaces, tracing, kernel objects, clocks, modules. None
marks a call that one of the machines lacks.
"""

import errno
import platform
from collections.abc import Mapping
from functools import cache
from typing import Final

COLUMNS: Final[Mapping[str, int]] = {"x86_64": 1, "aarch64": 2}
"""The column of each machine in the tables."""

SystemCall = tuple[str, int | None, int | None]


def _calls(listed: str) -> tuple[SystemCall, ...]:
    """The rows of a table: the name of each call and its numbers, with a hyphen for none."""
    rows = (row.split() for row in listed.split(", "))
    return tuple((name, _number(on_x86), _number(on_arm)) for name, on_x86, on_arm in rows)


def _number(text: str) -> int | None:
    return None if text == "-" else int(text)


ALLOWED: Final[tuple[SystemCall, ...]] = _calls(
    # Files that are open or may be opened; Landlock and the root decide which. Calls that change a file's mode or
    # times, truncate it by name or lock it as a whole are missing, because Landlock leaves those to the file's owner.
    "read 0 63, write 1 64, readv 19 65, writev 20 66, pread64 17 67, pwrite64 18 68, preadv 295 69, "
    "pwritev 296 70, preadv2 327 286, pwritev2 328 287, close 3 57, close_range 436 436, lseek 8 62, stat 4 -, "
    "fstat 5 80, lstat 6 -, newfstatat 262 79, statx 332 291, access 21 -, faccessat 269 48, faccessat2 439 439, "
    "statfs 137 43, fstatfs 138 44, readlink 89 -, readlinkat 267 78, getdents 78 -, getdents64 217 61, "
    "getcwd 79 17, chdir 80 49, fchdir 81 50, rmdir 84 -, unlink 87 -, unlinkat 263 35, rename 82 -, "
    "renameat 264 38, renameat2 316 276, ftruncate 77 46, fsync 74 82, fdatasync 75 83, sync_file_range 277 84, "
    "fadvise64 221 223, readahead 187 213, umask 95 166, copy_file_range 326 285, sendfile 40 71, splice 275 76, "
    # Descriptors and waiting.
    "dup 32 23, dup2 33 -, dup3 292 24, pipe 22 -, pipe2 293 59, poll 7 -, ppoll 271 73, select 23 -, "
    "pselect6 270 72, epoll_create 213 -, epoll_create1 291 20, epoll_ctl 233 21, epoll_wait 232 -, "
    "epoll_pwait 281 22, eventfd 284 -, eventfd2 290 19, "
    # The process's own memory.
    "mmap 9 222, munmap 11 215, mprotect 10 226, mremap 25 216, madvise 28 233, msync 26 227, mincore 27 232, "
    "brk 12 214, membarrier 324 283, get_mempolicy 239 236, "
    # What libraries call for threads, even with only one.
    "futex 202 98, futex_waitv 449 449, set_robust_list 273 99, get_robust_list 274 100, set_tid_address 218 96, "
    "rseq 334 293, sched_yield 24 124, sched_getaffinity 204 123, sched_getparam 143 121, "
    "sched_getscheduler 145 120, sched_get_priority_max 146 125, sched_get_priority_min 147 126, getcpu 309 168, "
    # Signals to itself.
    "rt_sigaction 13 134, rt_sigprocmask 14 135, rt_sigreturn 15 139, rt_sigpending 127 136, "
    "rt_sigtimedwait 128 137, rt_sigsuspend 130 133, sigaltstack 131 132, restart_syscall 219 128, pause 34 -, "
    # Time.
    "nanosleep 35 101, clock_nanosleep 230 115, clock_gettime 228 113, clock_getres 229 114, gettimeofday 96 169, "
    "time 201 -, times 100 153, getitimer 36 102, setitimer 38 103, alarm 37 -, timer_create 222 107, "
    "timer_settime 223 110, timer_gettime 224 108, timer_delete 226 111, timer_getoverrun 225 109, "
    "timerfd_create 283 85, timerfd_settime 286 86, timerfd_gettime 287 87, "
    # Identity and location.
    "getpid 39 172, getppid 110 173, gettid 186 178, getuid 102 174, geteuid 107 175, getgid 104 176, "
    "getegid 108 177, getresuid 118 148, getresgid 120 150, getgroups 115 158, getpgrp 111 -, getpgid 121 155, "
    "getsid 124 156, getpriority 140 141, getrlimit 97 163, getrusage 98 165, sysinfo 99 179, uname 63 160, "
    "getrandom 318 278, arch_prctl 158 -, "
    # The end.
    "exit 60 93, exit_group 231 94, "
    # Allowed only for some arguments, or denied with an error that libraries handle; see `seccomp`.
    "execve 59 221, clone 56 220, clone3 435 435, prctl 157 167, ioctl 16 29, tgkill 234 131, prlimit64 302 261, "
    "fcntl 72 25, open 2 -, openat 257 56, creat 85 -, mkdir 83 -, mkdirat 258 34, fallocate 285 47"
)

# From here on all machines share the numbers. A library that tries one of these newer calls falls back to an older one
# if the call does not exist.
FIRST_SHARED: Final = 424

# Further calls, which put a process behind the layers.
_OF_LAYERS: Final[tuple[SystemCall, ...]] = _calls(
    "setsid 112 157, setpriority 141 140, unshare 272 97, mount 165 40, open_tree 428 428, move_mount 429 429, "
    "mount_setattr 442 442, capset 126 91, setgroups 116 159, setresgid 119 149, setresuid 117 147, "
    "landlock_restrict_self 446 446"
)


@cache
def number_of(name: str) -> int:
    """The number of a call on this machine.

    Raises:
        OSError: the calls of this machine are not known.
    """
    machine = platform.machine()
    if machine not in COLUMNS:
        raise OSError(errno.ENOSYS, f"the system calls of {machine} are not known")
    found = next(row[COLUMNS[machine]] for row in (*ALLOWED, *_OF_LAYERS) if row[0] == name)
    if not isinstance(found, int):
        raise OSError(errno.ENOSYS, f"{machine} has no system call {name}")
    return found
