"""The embedded server, with real processes that are really killed."""

import os
import shutil
import signal
import stat
import subprocess
from pathlib import Path

import pytest

from service.postgres_embedded.home import SOCKET_NAME
from service.postgres_embedded.server_user import SpawnIdentity
from tests.integration.db.conftest import Site, eventually, kill, parent_of, uid_of, working_directory

INSERT = "INSERT INTO kept VALUES (1) RETURNING 'done'"
START_TIME = "SELECT pg_postmaster_start_time()"
COUNT = "SELECT count(*) FROM kept"


def test_first_user_starts_it_and_last_one_stops_it(site: Site) -> None:
    """The server runs while somebody uses it; afterwards nothing runs, and the data remain."""
    user = site.enter()
    assert user.ask(INSERT) == "done"
    assert user.leave() == 0
    assert site.is_quiet()
    again = site.enter()
    assert again.ask(COUNT) == "1"


def test_server_never_runs_as_root(site: Site) -> None:
    """PostgreSQL runs as an ordinary user, even if that user cannot traverse the path to its data."""
    site.enter()
    assert uid_of(site.postmaster) != 0
    assert {uid_of(process) for process in site.servers()} == {site.data.stat().st_uid}
    assert stat.S_IMODE(site.data_dir.parent.stat().st_mode) == 0o700


def test_socket_in_private_directory_is_the_only_way_in(site: Site) -> None:
    """There is no port, and the socket's directory is closed to other users."""
    user = site.enter()
    assert user.ask("SHOW listen_addresses") == ""
    assert stat.S_IMODE(site.home.socket_directory.stat().st_mode) == 0o700
    assert stat.S_IMODE(site.data.stat().st_mode) == 0o700
    assert f"{site.home.root}/run".replace("/", "%2F") in user.dsn


def test_many_start_at_once_and_share_one_server(site: Site) -> None:
    """Of six simultaneous processes, one starts the server and all use it."""
    users = [site.spawn() for _ in range(6)]
    ids = {user.wait_until_ready().ask(START_TIME) for user in users}
    assert len(ids) == 1
    assert len([process for process in site.servers() if parent_of(process) == site.keeper]) == 1
    for user in users:
        assert user.leave() == 0
    assert site.is_quiet()


def test_first_user_may_leave_first(site: Site) -> None:
    """The server outlives the process that started it as long as others use it."""
    first, second = site.enter(), site.enter()
    server = site.postmaster
    assert first.leave() == 0
    assert second.ask(INSERT) == "done"
    assert site.postmaster == server
    assert second.leave() == 0
    assert site.is_quiet()


def test_killed_user_leaves_nothing(site: Site) -> None:
    """After kill -9 of its only user, the server shuts down in order."""
    user = site.enter()
    user.ask(INSERT)
    user.kill()
    assert eventually(site.is_quiet)
    assert "database system is shut down" in site.home.log.read_text().splitlines()[-2]
    assert site.enter().ask(COUNT) == "1"


def test_killed_starter_does_not_take_it_from_others(site: Site) -> None:
    """After kill -9 of the process that started it, the server continues for the others."""
    first, second = site.enter(), site.enter()
    server = site.postmaster
    first.kill()
    assert second.ask(INSERT) == "done"
    assert site.postmaster == server


def test_killed_keeper_ends_the_server_and_is_replaced(site: Site) -> None:
    """After kill -9 of the keeper, the server shuts down, a user restarts both, and that user's end stops them."""
    user = site.enter()
    user.ask(INSERT)
    server, keeper, started = site.postmaster, site.keeper, user.ask(START_TIME)
    kill(keeper)
    assert eventually(lambda: working_directory(server) == "")
    assert eventually(lambda: user.ask(START_TIME) not in (started, "unavailable"))
    assert user.ask(COUNT) == "1"
    assert site.keeper != keeper
    assert user.leave() == 0
    assert site.is_quiet()


def test_killed_keeper_and_user_leave_nothing(site: Site) -> None:
    """After kill -9 of keeper and user at once, the server shuts down."""
    user = site.enter()
    kill(site.keeper)
    user.kill()
    assert eventually(site.is_quiet)


def test_killed_server_comes_back_under_its_users(site: Site) -> None:
    """After kill -9 of PostgreSQL, the keeper restarts it, and its users continue with every committed row."""
    user = site.enter()
    user.ask(INSERT)
    server, keeper, started = site.postmaster, site.keeper, user.ask(START_TIME)
    kill(server)
    assert eventually(lambda: user.ask(START_TIME) not in (started, "unavailable"))
    assert user.ask(COUNT) == "1"
    assert site.postmaster != server
    assert site.keeper == keeper


def test_killed_backend_does_not_end_the_server(site: Site) -> None:
    """After kill -9 of a backend, the server recovers by itself."""
    user = site.enter()
    user.ask(INSERT)
    server = site.postmaster
    kill(int(user.ask("SELECT pg_backend_pid()")))
    assert eventually(lambda: user.ask(COUNT) == "1")
    assert site.postmaster == server


def test_all_killed_at_once_recovers_at_the_next_start(site: Site) -> None:
    """After kill -9 of everything, the next start finds every committed row."""
    site.enter().ask(INSERT)
    site.kill_all()
    assert (site.data / "postmaster.pid").exists()
    assert site.enter().ask(COUNT) == "1"


@pytest.mark.parametrize("file", ["postmaster.pid", f"{SOCKET_NAME}.lock"])
def test_pid_of_a_stranger_is_no_server(site: Site, file: str) -> None:
    """A stale pid file does not prevent the next start, although another process has that id now."""
    site.enter()
    server, owner = site.postmaster, uid_of(site.postmaster)
    site.kill_all()
    left = site.data / "postmaster.pid" if file == "postmaster.pid" else site.home.socket_directory / file
    identity = SpawnIdentity(user=owner) if os.geteuid() == 0 else SpawnIdentity()
    with subprocess.Popen(["sleep", "60"], **identity) as stranger:
        left.write_text(left.read_text().replace(str(server), str(stranger.pid), 1))
        try:
            assert site.enter().ask(COUNT) == "0"
            assert stranger.poll() is None
        finally:
            stranger.kill()


def test_interrupting_everybody_leaves_the_server_to_its_draining_users(site: Site) -> None:
    """Ctrl-C, or SIGTERM to every process, does not take the database from processes that use it."""
    user = site.enter()
    server = site.postmaster
    os.killpg(user.process.pid, signal.SIGINT)
    for process in (user.process.pid, site.keeper):
        os.kill(process, signal.SIGTERM)
    assert user.ask(INSERT) == "done"
    assert site.postmaster == server
    assert os.getsid(server) != os.getsid(user.process.pid)


def test_half_made_data_are_made_anew(site: Site) -> None:
    """The next start begins anew after a first start that was killed midway."""
    shutil.rmtree(site.data)
    first = site.spawn()
    assert eventually(lambda: any(site.home.root.glob("*.new/base")))
    first.kill()
    user = site.enter()
    assert user.ask("SELECT to_regclass('kept') IS NULL") == "True"
    assert not any(site.home.root.glob("*.new"))


def test_long_path_is_no_obstacle(site: Site) -> None:
    """A data directory works even if its path is too long for a socket address, and others find the same server."""
    deep = site.data_dir / ("löng % +&? path" * 6) / "data"
    deep.parent.mkdir()
    os.chown(deep.parent, site.data_dir.stat().st_uid, -1)
    long = Site(deep, site._python, site._identity)
    try:
        first, second = long.enter(), long.enter()
        assert first.ask("CREATE TABLE here ()") == "None"
        assert second.ask("SELECT count(*) FROM here") == "0"
        assert stat.S_IMODE(long.home.socket_directory.stat().st_mode) == 0o700
        assert (first.leave(), second.leave()) == (0, 0)
        assert not long.home.socket_directory.exists()
    finally:
        long.end()


def test_server_that_cannot_start_says_why(site: Site) -> None:
    """If data are damaged, the start fails with PostgreSQL's reason and the log's path, and leaves nothing behind."""
    site.enter().leave()
    (site.data / "global" / "pg_control").unlink()
    complaint = site.refusal()
    assert "The embedded database does not start" in complaint
    assert "pg_control" in complaint
    assert str(site.home.log) in complaint
    assert eventually(site.is_quiet)


def test_data_of_another_version_are_not_passed_over(site: Site) -> None:
    """Data that no installed version can read stop the start; they are not hidden by an empty database."""
    site.enter().leave()
    site.data.rename(site.home.root / "14")
    assert site.refusal().startswith("The data were written by PostgreSQL 14, but only ")
    assert not any(Path(site.home.root).glob("1[5-9]"))


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a directory away")
def test_somebody_elses_database_is_left_alone(site: Site) -> None:
    """A database of another user is refused, with what to do; even root does not take it over."""
    os.chown(site.home.root, 4711, -1)
    assert "belongs to user id 4711" in site.refusal()


def test_unusable_data_directory_is_named(site: Site) -> None:
    """A path that is not a directory is refused with its name and the setting to change."""
    shutil.rmtree(site.home.root)
    site.home.root.touch()
    assert f"{site.home.root} cannot be used" in site.refusal()
    assert "GEOMILL_DATA_DIR" in site.refusal()
