"""The checks of this host: GDAL, formats, isolation, space, limits."""

import errno
import os
import resource
import shutil
from collections import Counter
from collections.abc import AsyncIterator, Sequence
from pathlib import Path

from sandbox import forkserver
from sandbox.config import LauncherName
from sandbox.report import NOT_NEEDED
from service.app.converters import converters_of, look_at_gateway, look_at_host, open_converters
from service.cli.finding import Finding, judged
from service.engine.capabilities import Capabilities
from service.intake.memory import leave_memory_root, memory_root
from service.server.listener import descriptors_for
from service.settings import Settings
from service.usecases.services import Role

_LISTED = 3
LEAST_BYTES = 256 << 20
"""With less space than this, uploads of the largest size fail."""
FEW_BYTES = 5 << 30
PROCESSES_EACH = 8
"""Processes that a converter may have at a time, generously."""
PROCESSES_BESIDE = 64


async def check_converter(settings: Settings, role: Role) -> AsyncIterator[Finding]:
    """Check GDAL, the formats and the isolation of converters."""
    if role == "gateway":
        capabilities = await look_at_gateway(settings)
        yield Finding("GDAL", "ok", "a gateway needs none")
    else:
        capabilities = await look_at_host(settings)
        yield Finding("GDAL", "ok", f"GDAL {capabilities.version}: {capabilities.ogr2ogr}")
        for finding in _formats(capabilities):
            yield finding
    async with open_converters(settings, capabilities) as pool:
        report = await pool.complete_report()
    for layer in report.layers:
        lacking = "Converters run without it; docs/sandbox.md says what it needs."
        holds = layer.active or layer.reason.startswith(NOT_NEEDED)
        yield judged(layer.name, layer.reason or f"stops {layer.stops}", lacking, holds=holds)
    for launcher in report.launchers:
        is_stale = launcher.name is LauncherName.FORK_SERVER and forkserver.is_stale()
        complaint = forkserver.STALE if is_stale else "Conversions that would use it are slower without it."
        holds = launcher.active and not is_stale
        yield judged(launcher.name, launcher.reason or "starts converters", complaint, holds=holds)
    yield Finding("runs read", "ok", ", ".join(_in_short(report.readable)))
    found = f"a sandboxed probe reached {', '.join(report.escapes) or 'nothing'}"
    yield judged("self-test", found, "Do not serve: report this.", holds=not report.escapes, otherwise="fail")


def _formats(capabilities: Capabilities) -> list[Finding]:
    return [
        Finding(
            available.format.title,
            "warn" if available.reason else "ok",
            " ".join(way for way, can in (("in", available.input), ("out", available.output)) if can) or "none",
            available.reason,
        )
        for available in capabilities.formats
    ]


def _in_short(paths: Sequence[str]) -> list[str]:
    """Return the paths, but only a count for directories with more than a few of them."""
    together = Counter(str(Path(path).parent) for path in paths)
    few = [path for path in paths if together[str(Path(path).parent)] <= _LISTED]
    return few + [f"{number} paths in {parent}" for parent, number in together.items() if number > _LISTED]


async def check_space(settings: Settings, _role: Role) -> AsyncIterator[Finding]:
    """Check the directories of work, and the limits on open files and processes."""
    settings.data_path.mkdir(parents=True, exist_ok=True)
    if not os.access(settings.data_path, os.W_OK):
        raise OSError(errno.EACCES, "Geomill may not write there", str(settings.data_path))
    free = shutil.disk_usage(settings.data_path).free
    yield judged(
        "work directory",
        f"{free / 2**30:.1f} GiB free in {settings.data_path}",
        "Free space there, or name another directory in GEOMILL_DATA_DIR.",
        holds=free >= FEW_BYTES,
        otherwise="warn" if free >= LEAST_BYTES else "fail",
    )
    small = memory_root(settings.memory_dir, settings.data_path)
    if small is not None:
        leave_memory_root(small)
    yield judged(
        "work in memory",
        str(small or "none"),
        "Small conversions use the disk. Name a directory in memory with 256 MiB free in GEOMILL_MEMORY_DIR.",
        holds=small is not None,
    )
    files = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    wanted = descriptors_for(settings.max_connections)
    yield judged(
        "open files",
        f"up to {_number(files)}",
        f"Fewer than GEOMILL_MAX_CONNECTIONS ({settings.max_connections}) connections are accepted. Raise `ulimit -Hn` "
        f"(systemd: LimitNOFILE) to {wanted}.",
        holds=files == resource.RLIM_INFINITY or files >= wanted,
    )
    processes = _most_processes()
    wanted = PROCESSES_BESIDE + PROCESSES_EACH * converters_of(settings)
    yield judged(
        "processes",
        f"up to {_number(processes)}",
        f"Conversions may fail to start. Allow {wanted} (systemd: TasksMax; containers: pids limit; `ulimit -u`).",
        holds=processes == resource.RLIM_INFINITY or processes >= wanted,
    )


def _number(limit: int) -> str:
    return "any number" if limit == resource.RLIM_INFINITY else str(limit)


def _most_processes() -> int:
    """Return the smallest of the limits on processes that apply to this one."""
    limits = [resource.getrlimit(resource.RLIMIT_NPROC)[0] if os.getuid() else resource.RLIM_INFINITY]
    for line in Path("/proc/self/cgroup").read_text().splitlines() if Path("/proc/self/cgroup").exists() else ():
        group = Path("/sys/fs/cgroup") / line.rpartition(":")[2].lstrip("/")
        limits += [int(text) for folder in (group, *group.parents) if (text := _text(folder / "pids.max")).isdigit()]
    finite = [limit for limit in limits if limit != resource.RLIM_INFINITY]
    return min(finite, default=resource.RLIM_INFINITY)


def _text(path: Path) -> str:
    try:
        return path.read_text().strip()
    except OSError:
        return ""
