"""Every ending of a run, caused by a program."""

import sys
from contextlib import suppress
from pathlib import Path

import pytest

from sandbox.command import Command
from sandbox.config import Config
from sandbox.pool import open_pool
from sandbox.quota import disk_is_full
from sandbox.verdict import Ending, ProcessEnd, Verdict, judge, plain_language
from tests.sandbox.conftest import RunPython
from tests.support.small_disk import small_disk

MIB = 1 << 20

ENDINGS = [
    ("success", "print('fine')", {}, Ending.OK),
    ("failure", "raise SystemExit(3)", {}, Ending.EXIT),
    ("crash", "import os; os.abort()", {}, Ending.SIGNAL),
    ("endless loop", "while True: pass", {"cpu_seconds": 1}, Ending.CPU_TIME),
    (
        "loop that ignores the warning",
        "import signal\nsignal.signal(signal.SIGXCPU, signal.SIG_IGN)\nwhile True: pass",
        {"cpu_seconds": 1},
        Ending.CPU_TIME,
    ),
    ("sleeper", "import time; time.sleep(60)", {"wall_seconds": 0.5}, Ending.WALL_TIME),
    ("stdin waiter gets nothing", "import sys; sys.exit(sys.stdin.read() != '')", {}, Ending.OK),
    (
        "ignores SIGTERM",
        "import signal, time\nsignal.signal(signal.SIGTERM, signal.SIG_IGN)\ntime.sleep(60)",
        {"wall_seconds": 0.5},
        Ending.WALL_TIME,
    ),
    ("memory hog", "x = [bytes(1 << 20) for _ in range(4096)]", {"memory_bytes": 300 * MIB}, Ending.MEMORY),
    (
        "output bomb",
        "with open('o', 'wb') as f:\n while True: f.write(bytes(1 << 16))",
        {"file_bytes": 8 * MIB},
        Ending.OUTPUT_SIZE,
    ),
    (
        "output bomb that wants the signal",
        "import signal as s\ns.signal(s.SIGXFSZ, s.SIG_DFL)\nf = open('o', 'wb')\nwhile 1: f.write(bytes(9999))",
        {"file_bytes": 8 * MIB},
        Ending.OUTPUT_SIZE,
    ),
    (
        "many files",
        "import time\nfor i in range(200): open(f'f{i}', 'w').close()\ntime.sleep(60)",
        {"directory_files": 100},
        Ending.OUTPUT_SIZE,
    ),
    (
        "many bytes in many files",
        "import time\nfor i in range(40): open(f'f{i}', 'wb').write(bytes(1 << 19))\ntime.sleep(60)",
        {"directory_bytes": 4 * MIB, "file_bytes": MIB},
        Ending.OUTPUT_SIZE,
    ),
    (
        "hides files below a path too long to list",
        "import os\nfor _ in range(100): os.mkdir('d' * 200); os.chdir('d' * 200)",
        {},
        Ending.OUTPUT_SIZE,
    ),
]


@pytest.mark.parametrize(("program", "limits", "ending"), [case[1:] for case in ENDINGS], ids=[c[0] for c in ENDINGS])
def test_the_verdict_names_the_ending(
    run_python: RunPython, program: str, limits: dict[str, float], ending: Ending
) -> None:
    """Each ending of a program has its own verdict."""
    assert run_python(program, **limits).ending is ending


def test_error_output_is_kept_to_a_cap_and_drained_beyond_it(run_python: RunPython) -> None:
    """A program that floods its error output neither blocks nor fills our memory."""
    verdict = run_python("import sys\nfor _ in range(500): sys.stderr.write('x' * 10_000)", stderr_bytes=1000)
    assert verdict.ending is Ending.OK
    assert verdict.untrusted_stderr == b"x" * 1000


def test_the_verdict_says_what_the_run_used(run_python: RunPython) -> None:
    """Time and memory are measured."""
    verdict = run_python("import time; x = bytes(range(256)) * 400_000; time.sleep(0.2)")
    assert verdict.wall_seconds >= 0.2
    assert 0 < verdict.cpu_seconds < verdict.wall_seconds
    assert verdict.peak_memory_bytes > 100 * 1_000_000


@pytest.mark.parametrize(
    ("end", "ending"),
    [
        (ProcessEnd(wait_status=0, disk_full=True), Ending.DISK_FULL),
        (ProcessEnd(wait_status=256, untrusted_stderr=b"database or disk is full"), Ending.DISK_FULL),
        (ProcessEnd(wait_status=9, killed_for_memory=True), Ending.MEMORY),
        (ProcessEnd(wait_status=6, untrusted_stderr=b"terminate called: std::bad_alloc"), Ending.MEMORY),
        (ProcessEnd(wait_status=9, over_cpu=True), Ending.CPU_TIME),
        (ProcessEnd(wait_status=25), Ending.OUTPUT_SIZE),
        (ProcessEnd(wait_status=31), Ending.SIGNAL),
        (ProcessEnd(wait_status=120 << 8, failure="landlock: refused"), Ending.INTERNAL),
        (ProcessEnd(wait_status=127 << 8, untrusted_stderr=b"error while loading shared libraries"), Ending.INTERNAL),
        (ProcessEnd(wait_status=0, untrusted_stderr=b"bad_alloc in a comment"), Ending.OK),
    ],
)
def test_what_was_observed_decides_the_ending(end: ProcessEnd, ending: Ending) -> None:
    """The first rule that applies decides, and a clean exit proves nothing on a full disk."""
    assert judge(end) is ending


@pytest.mark.parametrize("ending", Ending)
def test_every_ending_has_a_sentence(ending: Ending) -> None:
    """Clients get one complete sentence for every ending."""
    assert plain_language(Verdict(ending=ending)).endswith(".")


async def test_a_disk_that_was_full_is_told_although_there_is_room_again(tmp_path: Path) -> None:
    """What the run wrote meanwhile may be cut off, whatever its exit code."""
    with small_disk(tmp_path / "small", 4096) as work_root:
        directory = work_root / "job"
        directory.mkdir()
        command = Command(argv=(sys.executable, "-c", "import os; os.remove('other')"), directory=directory)
        async with open_pool(Config(work_root=work_root)) as pool, pool.lease("tenant") as converter:
            with suppress(OSError), (directory / "other").open("wb", buffering=0) as other:
                while other.write(bytes(4096)):
                    pass
            assert disk_is_full(str(work_root))
            verdict = await converter.run(command)
        assert (verdict.ending, verdict.exit_code) == (Ending.DISK_FULL, 0)
        assert not disk_is_full(str(work_root))
