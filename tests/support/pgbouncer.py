"""A real PgBouncer in transaction mode in front of the tests' PostgreSQL."""

import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import pytest

from service.postgres_embedded.home import handed_over
from service.postgres_embedded.server_user import find_server_user
from tests.database import TestServer, database_name
from tests.support.patience import PATIENCE_SECONDS, polls
from tests.support.ports import free_port

SERVERS = 3
"""So few connections to PostgreSQL that clients share them, and so many that a statement may meet another one."""

_CONFIGURATION = """
[databases]
* = host={directory} user={role}
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = {port}
unix_socket_dir =
auth_type = any
pool_mode = transaction
default_pool_size = {servers}
max_client_conn = 200
"""


@contextmanager
def pgbouncer(server: TestServer) -> Iterator[int]:
    """Run PgBouncer in transaction mode in front of `server` inside the block; yield its port on loopback."""
    program = _program()
    socket_directory = Path(parse_qs(urlsplit(server.dsn).query)["host"][0])
    user = find_server_user(data_owner=socket_directory.stat().st_uid)
    if user.switched:  # the server believes the operating system's user, who then needs a role
        server.execute(_ROLE.format(role=user.name))
    with tempfile.TemporaryDirectory(prefix="geomill-pgbouncer-") as name, handed_over(socket_directory, user) as there:
        directory = Path(name)
        os.chown(directory, user.uid, user.gid)
        port = free_port()
        configuration = directory / "pgbouncer.ini"
        configuration.write_text(
            _CONFIGURATION.format(directory=there.name, role=user.name, port=port, servers=SERVERS), encoding="utf-8"
        )
        log = directory / "log"
        with log.open("wb") as output:
            process = subprocess.Popen(
                [program, str(configuration)], stderr=output, pass_fds=there.descriptors, cwd="/", **user.identity
            )
        try:
            _wait_for(port, process, log)
            yield port
        finally:
            process.terminate()
            process.wait(PATIENCE_SECONDS)


def through(port: int, dsn: str) -> str:
    """The address of the database `dsn` through a PgBouncer."""
    return f"postgresql://anybody@127.0.0.1:{port}/{database_name(dsn)}"


_ROLE = """
DO $$ BEGIN
    IF NOT EXISTS (SELECT FROM pg_roles WHERE rolname = '{role}') THEN
        CREATE ROLE "{role}" SUPERUSER LOGIN;
    END IF;
END $$
"""


def _program() -> str:
    """Find the program; on Debian, root can install it."""
    path = os.pathsep.join((os.environ["PATH"], "/usr/sbin", "/usr/local/sbin"))
    found = shutil.which("pgbouncer", path=path)
    if found is None and os.geteuid() == 0 and shutil.which("apt-get"):
        install = Path(__file__).parents[2] / "requirements" / "apt-install"
        quiet = {**os.environ, "RUNLEVEL": "1"}  # its service need not run
        subprocess.run([install, "pgbouncer"], env=quiet, check=True, capture_output=True)
        found = shutil.which("pgbouncer", path=path)
    if found is None:
        pytest.skip("PgBouncer is missing, and cannot be installed from here (package pgbouncer)")
    return found


def _wait_for(port: int, process: "subprocess.Popen[bytes]", log: Path) -> None:
    for _ in polls():
        if re.search(rf"listening on 127\.0\.0\.1:{port}", log.read_text()):
            return
        if process.poll() is not None:
            break
    raise AssertionError(log.read_text())
