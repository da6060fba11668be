"""The rights that the gateway and its helpers keep while they serve (docs/sandbox.md)."""

import os
import signal
import subprocess
import sys
from collections.abc import Sequence
from contextlib import suppress
from functools import cache
from pathlib import Path

import pytest

from sandbox import rights
from service.accounts.administration import Terms
from service.cli.rights import RIGHTS, Needs, Right, needed
from service.postgres_embedded.home import open_home
from service.postgres_embedded.server_user import own_name
from tests.sandbox.processes import command_line
from tests.support.data import collection, feature, point
from tests.support.patience import polls
from tests.support.server import EXECUTED, Client, Server, create_account, running_server

TEAM = Terms(plan="team", plan_owner="organization")
WITHOUT = (
    "import ctypes, os, sys\n"
    "assert ctypes.CDLL(None).prctl(24, int(sys.argv[1]), 0, 0, 0) == 0\n"  # PR_CAPBSET_DROP
    "os.execv(sys.executable, [sys.executable, *(['-m', 'service'] if '-c' not in sys.argv else []), *sys.argv[2:]])"
)
"""Serves as a root who lacks one capability."""
ONE_POINT = collection(feature(point(1, 2), n=1))


def status(pid: int | str) -> dict[str, str]:
    """The kernel's status of a process, or of a thread as `PID/task/TID`."""
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return {name: value.strip() for name, _, value in (line.partition(":") for line in lines)}


def test_nobody_else_can_write_into_the_data_directory(tmp_path: Path) -> None:
    """Whatever the umask, and whichever command makes it: who can replace secrets and modules there is the service."""
    of_doctor, of_server = tmp_path / "doctor", tmp_path / "server"
    prefix = ("sh", "-c", 'umask 0 && exec "$@"', "sh")
    environment = os.environ | {"GEOMILL_DATA_DIR": str(of_doctor)}
    subprocess.run([*prefix, sys.executable, *EXECUTED, "doctor"], env=environment, check=False)
    with running_server(tmp_path, settings={"GEOMILL_DATA_DIR": str(of_server)}, prefix=prefix):
        pass  # it has made what it keeps there before it is ready
    made = [path for directory in (of_doctor, of_server) for path in (directory, *directory.iterdir())]
    assert {"link-secrets", "modules", "store"} <= {path.name for path in made}
    assert not [path for path in made if path.stat().st_mode & 0o022]


@cache
def needs_here(*before: str) -> Needs:
    """Why this host needs capabilities; determined in a single-threaded process, since it forks."""
    program = "from service.cli.rights import needs; print(needs(embeds_database=True).value)"
    asked = subprocess.run([sys.executable, *before, "-c", program], check=True, capture_output=True)
    return Needs(int(asked.stdout))


def capabilities(found: dict[str, str]) -> set[int]:
    """All capabilities that a process has, or could gain by executing a program."""
    sets = (int(found[name], 16) for name in ("CapEff", "CapPrm", "CapInh", "CapAmb"))
    bounding = int(found["CapBnd"], 16) if os.geteuid() == 0 else 0
    mask = bounding
    for each in sets:
        mask |= each
    return {number for number in range(64) if mask >> number & 1}


def helpers(server: Server) -> tuple[int, int]:
    """The processes of the sandbox's keeper and of its spawner."""
    (keeper,) = [pid for pid in children(server.process.pid) if b"sandbox.process.keeper" in command_line(pid)]
    (spawner,) = children(keeper)
    return keeper, spawner


def children(parent: int) -> list[int]:
    """The child processes of a process."""
    found = []
    for path in Path("/proc").glob("[0-9]*"):
        try:
            if int(status(path.name)["PPid"]) == parent:
                found.append(int(path.name))
        except (OSError, KeyError):
            continue
    return found


def require_few_rights(server: Server) -> None:
    """No thread of the gateway has unneeded capabilities, and the keeper has none."""
    pid = server.process.pid
    expected = set(needed(needs_here())) if os.geteuid() == 0 else set()
    for thread in Path(f"/proc/{pid}/task").iterdir():
        try:
            found = status(f"{pid}/task/{thread.name}")
        except (FileNotFoundError, ProcessLookupError):
            continue  # it has ended
        assert capabilities(found) <= expected, found
        assert found["NoNewPrivs"] == "1"
        assert found["Uid"].split()[0] == str(os.geteuid())
    keeper, _ = helpers(server)
    assert not capabilities(status(keeper))
    assert status(keeper)["NoNewPrivs"] == "1"


def wait_for_other_helpers(server: Server, before: tuple[int, int]) -> None:
    """Wait until the killed processes are replaced."""
    for _ in polls():
        try:
            if set(helpers(server)).isdisjoint(before):
                return
        except ValueError:
            pass  # none, or one that has not started its spawner
    raise AssertionError(server.log.read_text())


def embedded_client(server: Server) -> Client:
    """A client of a new account, created in the server's embedded database."""
    server.dsn = open_home(server.data_dir).dsn(own_name())
    return create_account(server, TEAM)


def end_database(server: Server) -> None:
    """Kill the database's keeper, which ends the database, and wait until it has been restarted."""
    pid_file = next((server.data_dir / "postgres").glob("*/postmaster.pid"))
    postgres = int(pid_file.read_text().split()[0])
    os.kill(int(status(postgres)["PPid"]), signal.SIGKILL)
    for _ in polls():
        with suppress(Exception):  # no file yet, or not all of it, or nobody answers
            if int(pid_file.read_text().split()[0]) != postgres:
                embedded_client(server).close()
                return
    raise AssertionError(server.log.read_text())


def convert(client: Client) -> None:
    """Convert a file and return its bytes."""
    assert client.download(client.convert("a.geojson", ONE_POINT, output="GeoPackage"))


def test_gateway_and_keeper_keep_only_what_they_need(tmp_path: Path) -> None:
    """With those alone they convert, replace killed helpers and a killed database, and start a second time."""
    with running_server(tmp_path, program=EXECUTED) as server:
        require_few_rights(server)
        with embedded_client(server) as client:
            convert(client)
            client.convert("a.geojson", ONE_POINT, outputFormat="Csv")  # by a Python server, tested with these rights
            assert server.events("sandbox.server_untested") + server.events("sandbox.server_refused") == []
            for number in (0, 1):
                before = helpers(server)
                os.kill(before[number], signal.SIGKILL)
                wait_for_other_helpers(server, before)
                convert(client)
                require_few_rights(server)
            end_database(server)
            convert(client)
    with running_server(tmp_path, program=EXECUTED) as server:
        require_few_rights(server)
        with embedded_client(server) as client:
            convert(client)


def without(right: Right) -> Sequence[str]:
    """The program for `running_server`."""
    return ("-c", WITHOUT, str(right.capability))


@pytest.mark.skipif(os.geteuid() != 0, reason="only root keeps rights")
def test_rights_are_kept_where_a_namespace_cannot_be_made_whole() -> None:
    """A namespace can be created, but its users cannot be mapped."""
    assert Needs.NO_NAMESPACES in needs_here("-c", WITHOUT, str(rights.SETFCAP))


# Without KILL all works but the end: the service waits forever for a database that it may not signal.
@pytest.mark.skipif(os.geteuid() != 0, reason="only root keeps rights")
@pytest.mark.parametrize(
    "right", [right for right in RIGHTS if right.capability != rights.KILL], ids=lambda r: r.purpose
)
def test_the_service_needs_each_right_that_it_keeps(tmp_path: Path, right: Right) -> None:
    """Without it, the service does not start, leaves runs' files behind, or cannot drop other rights."""
    if not right.needed_by & needs_here():
        pytest.skip("only root of a host without user namespaces needs it")
    with pytest.raises(AssertionError), running_server(tmp_path, program=without(right)) as server:  # noqa: PT012 -- any of it
        require_few_rights(server)
        with embedded_client(server) as client:
            convert(client)
        assert server.wait_until_idle(2) == []
