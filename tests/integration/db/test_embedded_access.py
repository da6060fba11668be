"""Who can use the embedded server, with which programs, as which user."""

import os
import pwd
import shutil
import signal
import socket
import stat
import struct
import subprocess
import sys
from collections.abc import Iterator
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path

import anyio
import pytest

from service.db.connection import open_connection
from service.postgres_embedded import EmbeddedPostgresError, binaries, embedded_postgres
from service.postgres_embedded.binaries import OLDEST_MAJOR, Installation
from service.postgres_embedded.home import SOCKET_NAME, Home
from service.postgres_embedded.keeper import remove_stale_pid_files
from service.postgres_embedded.locks import can_lock
from service.postgres_embedded.server_user import ServerUser, find_server_user, own_name
from tests.database import fast_directory
from tests.integration.db.conftest import environment, eventually, processes, working_directory
from tests.support.patience import PATIENCE_SECONDS
from tests.support.small_disk import small_disk

as_root = pytest.mark.skipif(os.geteuid() != 0, reason="about what root does")


@pytest.fixture
def directory() -> Iterator[Path]:
    with fast_directory() as directory:
        yield directory


def installed() -> list[Path]:
    """The directories of installed programs, each once."""
    return list(dict.fromkeys(path.resolve() for path in binaries._candidates() if (path / "initdb").is_file()))


async def version_in(directory: Path, bin_dir: Path | None) -> int:
    """The major version of the server that starts in `directory`."""
    async with embedded_postgres(directory, bin_dir=bin_dir, durable=False) as dsn, open_connection(dsn) as connection:
        return connection.get_server_version().major


@pytest.mark.parametrize("bin_dir", installed(), ids=lambda path: path.parent.name)
async def test_every_installed_version_serves(directory: Path, bin_dir: Path) -> None:
    """Every installed version from the oldest supported one creates data, starts and restarts."""
    versions = [await version_in(directory, bin_dir) for _ in range(2)]
    assert versions[0] == versions[1] >= OLDEST_MAJOR
    assert Home(directory / "postgres").kept_majors == {versions[0]}


async def test_a_full_disk_is_named(tmp_path: Path) -> None:
    """By whom it keeps from connecting, because a connection may have to write what it caches."""
    with small_disk(tmp_path / "disk", 256 << 10) as disk:
        async with embedded_postgres(disk, durable=False):
            for cached in disk.rglob("pg_internal.init"):
                cached.unlink()
            fill = disk / "fill"
            with suppress(OSError), fill.open("wb", buffering=0) as file:
                while True:
                    file.write(bytes(4096))
            with pytest.raises(EmbeddedPostgresError, match=r"full disk: .*No space left on device\. Free some"):
                async with embedded_postgres(disk, durable=False):
                    pass
            fill.unlink()


async def test_data_choose_the_version(directory: Path) -> None:
    """Existing data are served by the version that created them, even if a newer one is installed."""
    oldest = min(
        filter(None, (binaries._probe(path, find_server_user()) for path in installed())), key=lambda i: i.major
    )
    assert await version_in(directory, oldest.bin_dir) == oldest.major
    assert await version_in(directory, None) == oldest.major


async def test_no_programs_are_said_to_be_missing(directory: Path, tmp_path: Path) -> None:
    """Without PostgreSQL, the message names the ways to install it."""
    with pytest.raises(EmbeddedPostgresError, match=r"(?s)No PostgreSQL 15 or later.*GEOMILL_DATABASE_URL"):
        async with embedded_postgres(directory, bin_dir=tmp_path):
            pass


def test_programs_that_do_not_run_are_passed_over(tmp_path: Path) -> None:
    """Programs for another architecture, or of an unsupported version, are skipped."""
    for name in ("postgres", "initdb"):
        (tmp_path / name).write_bytes(b"\x7fELF of another machine")
        (tmp_path / name).chmod(0o755)
    user = ServerUser(own_name(), os.geteuid(), os.getegid(), switched=False)
    assert binaries._probe(tmp_path, user) is None
    (tmp_path / "postgres").write_text("#!/bin/sh\necho 'postgres (PostgreSQL) 14.9'\n")
    assert binaries._probe(tmp_path, user) is None
    (tmp_path / "postgres").write_text("#!/bin/sh\necho 'postgres (PostgreSQL) 17beta1 (Debian 17~beta1-1)'\n")
    assert binaries._probe(tmp_path, user) == Installation(tmp_path, 17)


@as_root
@pytest.mark.skipif(find_spec(binaries._WHEEL) is None, reason="the wheel is not installed")
async def test_programs_in_a_closed_home_are_copied_once(
    directory: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Programs that the server's user cannot reach, installed under a strict umask, serve through a copy."""
    copies = directory / "copies"
    monkeypatch.setattr(binaries, "_COPIES", copies)
    bin_dir = install_privately(tmp_path / "home")
    directory.chmod(0o711)  # noqa: ASYNC240 -- nothing else runs in this loop
    for _ in range(2):
        await version_in(directory / "data", bin_dir)
    assert stat.S_IMODE(bin_dir.stat().st_mode) == 0o700
    assert len(list(copies.iterdir())) == 1


def install_privately(home: Path) -> Path:
    """Install the wheel's newest PostgreSQL in `home`, accessible only to its owner; return its directory."""
    bin_dir = binaries._newest_first(binaries._wheel_directories())[0]
    package = bin_dir.parents[1]
    for source in (bin_dir.parent, package.with_name(f"{package.name}.libs")):
        shutil.copytree(source, home / source.relative_to(package.parent))
    for path in (home, *home.rglob("*")):
        path.chmod(stat.S_IMODE(path.stat().st_mode) & 0o700)
    return home / bin_dir.relative_to(package.parent)


@as_root
async def test_other_users_cannot_log_in(directory: Path) -> None:
    """Other users cannot reach the socket, and if they could, they could not log in as another user."""
    async with embedded_postgres(directory, durable=False):
        run = Home(directory / "postgres").socket_directory
        with pytest.raises(PermissionError):
            _log_in(run / SOCKET_NAME, "nobody")
        for path in (run, *run.parents[:2]):
            path.chmod(0o711)
        (run / SOCKET_NAME).chmod(0o777)
        assert b'Peer authentication failed for user "root"' in _log_in(run / SOCKET_NAME, "nobody")
        assert b"SFATAL" not in _log_in(run / SOCKET_NAME, "root")


def _log_in(socket_path: Path, as_user: str) -> bytes:
    """The server's response when `as_user` tries to log in as root."""
    request = struct.pack("!i", 3 << 16) + b"user\0root\0database\0postgres\0\0"
    with socket.socket(socket.AF_UNIX) as connection:
        os.seteuid(pwd.getpwnam(as_user).pw_uid)
        try:
            connection.connect(str(socket_path))
        finally:
            os.seteuid(0)
        connection.sendall(struct.pack("!i", len(request) + 4) + request)
        return connection.recv(4096)


@as_root
def test_user_of_the_server_is_the_configured_one_or_the_datas_owner() -> None:
    """The setting decides, then the data's owner; if they contradict each other, an error says so."""
    nobody = pwd.getpwnam("nobody").pw_uid
    assert find_server_user().uid != 0
    assert find_server_user("nobody").uid == nobody
    assert find_server_user("", nobody).uid == nobody
    with pytest.raises(EmbeddedPostgresError, match=r"belong to user id 4711, but nobody is to run it"):
        find_server_user("nobody", 4711)
    for impossible in ("root", "no such user"):
        with pytest.raises(EmbeddedPostgresError, match=f"there is no user {impossible} to run it as"):
            find_server_user(impossible)


async def test_errors_of_the_block_come_out_as_they_are(directory: Path) -> None:
    """Exceptions are not wrapped, and the server is stopped nevertheless."""
    with pytest.raises(ZeroDivisionError):
        async with embedded_postgres(directory, durable=False):
            raise ZeroDivisionError
    assert can_lock(Home(directory / "postgres").keeper_lock, exclusive=True)


async def test_cancelled_user_stops_the_server(directory: Path) -> None:
    """A cancelled user leaves nothing running."""
    with anyio.CancelScope() as scope:
        async with embedded_postgres(directory, durable=False):
            scope.cancel()
            await anyio.sleep_forever()
    assert can_lock(Home(directory / "postgres").keeper_lock, exclusive=True)


def test_pid_files_are_kept_while_a_server_works(tmp_path: Path) -> None:
    """While any PostgreSQL process works on the data, nothing is removed, whatever the pid file says."""
    data, sleeper = tmp_path / "data", tmp_path / "postgres"
    data.mkdir()
    (data / "postmaster.pid").write_text("1\n")
    shutil.copy("/bin/sleep", sleeper)
    with subprocess.Popen([sleeper, "60"], cwd=data) as server:
        try:
            assert eventually(lambda: Path(f"/proc/{server.pid}/comm").read_text() == "postgres\n")
            assert not remove_stale_pid_files(data, tmp_path / "socket", patience_seconds=0)
            assert (data / "postmaster.pid").exists()
        finally:
            server.kill()
    assert remove_stale_pid_files(data, tmp_path / "socket", patience_seconds=0)
    assert not (data / "postmaster.pid").exists()


def test_killed_test_run_leaves_no_server(tmp_path: Path) -> None:
    """A test run that is ended with kill -9 takes its server with it."""
    (tmp_path / "test_it.py").write_text(KILLED_RUN)
    (tmp_path / "pytest.ini").write_text("[pytest]\n")
    command = [sys.executable, "-m", "pytest", "-p", "tests.database", "-s", "-q", "test_it.py"]
    settings = {**environment(), "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}  # others take seconds to import
    run = subprocess.run(
        command, cwd=tmp_path, env=settings, capture_output=True, text=True, timeout=PATIENCE_SECONDS, check=False
    )
    assert run.returncode == -signal.SIGKILL, run.stdout
    home = Home(Path(run.stdout.split("HOME ")[1].splitlines()[0]))
    assert eventually(lambda: can_lock(home.keeper_lock, exclusive=True))
    assert not any(working_directory(process).startswith(str(home.root)) for process in processes())
    shutil.rmtree(home.root.parent)


KILLED_RUN = """
import os, signal
from urllib.parse import parse_qs, urlsplit

def test_that_is_killed(empty_database_url):
    run = parse_qs(urlsplit(empty_database_url).query)["host"][0]
    print("HOME", os.path.dirname(run), flush=True)
    os.kill(os.getpid(), signal.SIGKILL)
"""
