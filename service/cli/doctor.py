"""`geomill doctor`: check what this host offers, and whether it can serve (interface 10)."""

import argparse
from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path

import anyio.to_thread

from sandbox.pool import SandboxUnavailable
from service.app import look_at_host, open_converters, open_database, open_storage
from service.cli.command import Command
from service.db.migrate import MigrationError
from service.engine.capabilities import Capabilities, ConverterMissing
from service.errors import DatabaseUnavailable, StorageUnavailable
from service.intake.memory import leave_memory_root, memory_root
from service.postgres_embedded import EmbeddedPostgresError, has_database, installed_major
from service.settings import Settings

YES, NO, UNUSED = "ok", "--", ".."
_LISTED = 3

_FAILURES = (ConverterMissing, DatabaseUnavailable, EmbeddedPostgresError, MigrationError, OSError, SandboxUnavailable)
"""Errors that a check may raise; their messages say what cannot be used."""


async def run(settings: Settings, _arguments: argparse.Namespace) -> int:
    """Check every part in turn; return 0 only if serving is possible."""
    checks: tuple[Callable[[Settings], Awaitable[None]], ...] = (
        _check_converter,
        _check_database,
        _check_storage,
    )
    passed = [await _report(check, settings) for check in checks]
    verdict = "This host can serve." if all(passed) else "This host cannot serve: see the lines marked `--`."
    print(f"\n{verdict}")
    return 0 if all(passed) else 1


async def _report(check: Callable[[Settings], Awaitable[None]], settings: Settings) -> bool:
    try:
        await check(settings)
    except _FAILURES as failure:
        print(f"  {NO} {failure}")
        return False
    except StorageUnavailable as unavailable:
        print(f"  {NO} {unavailable.fault}: {unavailable.detail}")
        return False
    return True


async def _check_converter(settings: Settings) -> None:
    print("Converter")
    capabilities = await look_at_host(settings)
    print(f"  {YES} GDAL {capabilities.version}: {capabilities.ogr2ogr}")
    _print_formats(capabilities)
    print("\nIsolation")
    async with open_converters(settings, capabilities) as pool:
        report = pool.report()
    for layer in report.layers:
        print(f"  {YES if layer.active else NO} {layer.name:<22} {layer.reason or layer.stops}")
    for launcher in report.launchers:
        print(f"  {YES if launcher.active else UNUSED} {launcher.name:<22} {launcher.reason or 'starts converters'}")
    small = memory_root(settings.memory_dir, settings.data_path)
    if small is not None:
        leave_memory_root(small)
    print(f"  {YES if small else UNUSED} {'work in memory':<22} {small or 'no usable GEOMILL_MEMORY_DIR'}")
    print(f"  {YES} {'runs read':<22} {', '.join(_in_short(report.readable))}")
    found = f"a sandboxed probe reached {', '.join(report.escapes) or 'nothing'}"
    print(f"  {NO if report.escapes else YES} {'self-test':<22} {found}")


def _in_short(paths: Sequence[str]) -> list[str]:
    """Return the paths, but only a count for directories with more than a few of them."""
    together = Counter(str(Path(path).parent) for path in paths)
    few = [path for path in paths if together[str(Path(path).parent)] <= _LISTED]
    return few + [f"{number} paths in {parent}" for parent, number in together.items() if number > _LISTED]


def _print_formats(capabilities: Capabilities) -> None:
    print("\nFormats")
    for available in capabilities.formats:
        ways = " ".join(way for way, can in (("in", available.input), ("out", available.output)) if can)
        print(f"  {NO if available.reason else YES} {available.format.title:<22} {ways or 'none':<8}{available.reason}")


async def _check_database(settings: Settings) -> None:
    print("\nDatabase")
    if not settings.database_url and not has_database(settings.data_path):
        bin_dir = Path(settings.postgres_bin_dir) if settings.postgres_bin_dir else None
        major = await anyio.to_thread.run_sync(installed_major, bin_dir, settings.postgres_user)
        print(f"  {YES} PostgreSQL {major}; `geomill serve` creates a database in {settings.data_path}")
        return
    async with open_database(settings) as database, database.connection() as connection:
        print(f"  {YES} PostgreSQL {await connection.fetchval('SHOW server_version')}")


async def _check_storage(settings: Settings) -> None:
    print("\nStorage")
    async with open_storage(settings) as storage:
        await storage.check()
    print(f"  {YES} results can be stored")


COMMAND = Command(name="doctor", help="show what this host offers and whether it can serve", run=run)
