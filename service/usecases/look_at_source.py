"""What is in a source, found out the cheapest way that is right.

A GeoJSON document is scanned as text, which the data-loss report needs anyway; where its target can be written straight
from the upload, that is all. Any other source, and any other target, goes through the converter's work file.
"""

from pathlib import Path

import anyio.to_thread
import msgspec

from sandbox.command import Command
from service.dataloss import scan as scan_program
from service.dataloss.findings import Scan, read_scan
from service.dataloss.refusals import Unreadable
from service.dataloss.scan import is_light, scan
from service.engine.convert import Engine
from service.engine.diagnostics import Subject, require_program_success
from service.engine.environment import python_environment
from service.engine.workplace import Run
from service.formats.detect import Source
from service.formats.facts import Facts
from service.formats.format import Format, reading_of
from service.formats.plan import can_go_direct

SCAN_FILE = "scan.json"


class Look(msgspec.Struct, frozen=True):
    """The facts about a source, and the findings of its scan where it is a GeoJSON document."""

    facts: Facts
    scan: Scan | None


async def look_at_source(engine: Engine, run: Run, source: Source, target: Format, directory: Path) -> Look:
    """Find out what is in `source`; raises what `Engine.inspect` raises."""
    found = await _try_scan(engine, run, source)
    # Numbers that cannot be degrees are looked at more closely in a work file.
    if found is not None and not found.is_mislabelled:
        facts = found.facts(source.stem)
        if can_go_direct(source, target, facts):
            return Look(facts, found)
    return Look(await engine.inspect(run, source, directory), found)


def is_document(source: Source) -> bool:
    """Whether the source is one GeoJSON document, which can be scanned."""
    return reading_of(source.format).json and not source.prefix


async def scan_document(engine: Engine, run: Run, path: Path) -> Scan:
    """Scan a GeoJSON document: here if it is small, else in the jail, where it may write beside itself.

    Raises:
        Unreadable: it is not GeoJSON that the converter would read.
        Rejection: scanning it goes beyond the limits.
    """
    if is_light(path):
        return scan(path)
    host = engine.capabilities
    command = Command(
        argv=(host.python, "-m", scan_program.__name__, path.name, SCAN_FILE),
        directory=path.parent,
        environment=python_environment(host),
        limits=engine.limits,
    )
    require_program_success(await run(command), Subject(input="GeoJSON"))
    return await anyio.to_thread.run_sync(read_scan, path.parent / SCAN_FILE)


async def _try_scan(engine: Engine, run: Run, source: Source) -> Scan | None:
    if not is_document(source):
        return None
    try:
        return await scan_document(engine, run, source.path)
    except Unreadable:
        return None  # the converter reads more than GeoJSON under this name, and words its own refusal
