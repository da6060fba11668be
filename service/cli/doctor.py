"""`geomill doctor`: check an installation in one go, and say what to do (interface 10)."""

import argparse
from collections.abc import AsyncIterator, Mapping

import msgspec

from service.cli.check_host import check_converter, check_space
from service.cli.check_parts import check_database, check_queue, check_settings, check_storage
from service.cli.command import JSON, CliCommand, argument, print_record, write_out
from service.cli.failures import sentence_for
from service.cli.finding import Check, Finding
from service.cli.rights import let_nobody_else_write
from service.settings import Settings
from service.telemetry.log import configure_log
from service.usecases.services import Role

CHECKS: Mapping[str, Check] = {
    "Settings": check_settings,
    "Converter": check_converter,
    "Host": check_space,
    "Database": check_database,
    "Storage": check_storage,
    "Queue": check_queue,
}


class HostReport(msgspec.Struct, frozen=True):
    """All findings, by part."""

    ready: bool
    role: Role
    parts: dict[str, list[Finding]]


async def run(settings: Settings, arguments: argparse.Namespace) -> int:
    """Check every part in turn; return 0 only if nothing fails."""
    configure_log(settings.log_format, settings.log_level)  # on standard error, beside the findings
    let_nobody_else_write()
    parts: dict[str, list[Finding]] = {}
    for title, check in CHECKS.items():
        parts[title] = []
        if not arguments.json:
            write_out(title)
        async for finding in _found(check, settings, arguments.role):
            parts[title].append(finding)
            if not arguments.json:
                _print(finding)
    ready = all(finding.state != "fail" for findings in parts.values() for finding in findings)
    if arguments.json:
        print_record(HostReport(ready, arguments.role, parts), as_json=True)
    else:
        write_out("\nThis host can serve." if ready else "\nThis host cannot serve: see the lines marked `fail`.")
    return 0 if ready else 1


async def _found(check: Check, settings: Settings, role: Role) -> AsyncIterator[Finding]:
    try:
        async for finding in check(settings, role):
            yield finding
    except Exception as failure:
        sentence = sentence_for(failure, settings)
        if sentence is None and not isinstance(failure, OSError):
            raise
        yield Finding("cannot be used", "fail", sentence or str(failure))


def _print(finding: Finding) -> None:
    write_out(f"  {finding.state:<4} {finding.name:<30} {finding.detail}")
    if finding.advice:
        write_out(f"       {'':<30} {finding.advice}")


COMMAND = CliCommand(
    description="Check this host and everything that a process with this role uses. The exit code is 1 if it could "
    "not serve.",
    run=run,
    arguments=(
        argument(
            "--role", choices=["all", "gateway", "worker"], default="all", help="what this host is for; default: all"
        ),
        JSON,
    ),
)
