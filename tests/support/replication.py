"""Two PostgreSQL servers on loopback, one of which replicates the other; either can be killed, frozen and promoted."""

import os
import signal
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

import psutil

from service.postgres_embedded.binaries import find_installation
from service.postgres_embedded.server_user import find_server_user
from tests.database import fast_directory
from tests.support.ports import free_port

ROLE = "geomill"
SETTINGS = {
    "unix_socket_directories": "",
    "shared_buffers": "32MB",
    "max_connections": "60",
    "wal_receiver_timeout": "0",  # a connection that a test has frozen is not replaced
}


class PostgresServer:
    """One of the two, or any other; `prefix` is a program that replaces itself by those of the server."""

    def __init__(self, directory: Path, address: str = "127.0.0.1", prefix: Sequence[str] = ()) -> None:
        self.port = free_port()
        self._address = address
        self._prefix = prefix
        self._user = find_server_user()
        self._bin_dir = find_installation(self._user, ()).bin_dir
        self._data = directory / str(self.port)
        settings = {**SETTINGS, "listen_addresses": address}
        self._options = [part for name, value in settings.items() for part in ("-c", f"{name}={value}")]

    @property
    def dsn(self) -> str:
        """The address of its database."""
        return f"postgresql://{ROLE}@{self._address}:{self.port}/postgres"

    @property
    def pid(self) -> int:
        """The id of its first process."""
        return self._processes()[0].pid

    def create(self) -> None:
        """Create an empty cluster that survives processes, but not the host."""
        self._run("initdb", "-U", ROLE, "--auth=trust", "--locale=C", "--encoding=UTF8", "--no-sync")
        with (self._data / "pg_hba.conf").open("a") as rules:
            rules.write(f"host all all {self._address}/24 trust\n")

    def follow(self, primary: "PostgresServer") -> None:
        """Copy the primary, in order to stream from it."""
        source = f"host=127.0.0.1 port={primary.port} user={ROLE} application_name=standby"
        self._run(
            "pg_basebackup",
            f"--pgdata={self._data}",
            "--write-recovery-conf",
            "--checkpoint=fast",
            "--no-sync",
            f"--dbname={source}",
        )

    def start(self) -> None:
        """Start the server, and wait until it can be read from."""
        options = " ".join((*self._options, "-c", f"port={self.port}"))
        self._run("pg_ctl", "start", "--wait", "--silent", f"--log={self._data}.log", f"--options={options}")

    def execute(self, statement: str) -> None:
        """Run a statement outside of any transaction."""
        address = ("-h", self._address, "-p", str(self.port), "-U", ROLE, "-d", "postgres")
        self._run("psql", "--quiet", "--no-psqlrc", *address, "-c", statement)

    def stop(self) -> None:
        """Stop the server in order, but without waiting for those who are connected."""
        self._run("pg_ctl", "stop", "--wait", "--silent", "--mode=fast")

    def promote(self) -> None:
        """Promote a standby."""
        self._run("pg_ctl", "promote", "--wait", "--silent")

    def kill(self) -> None:
        """Kill all of its processes at once, as a host that loses its power does."""
        self._signal_all(signal.SIGKILL)

    def freeze(self) -> None:
        """Stop all of its processes, as a network that loses every packet does: connections open and nobody answers."""
        self._signal_all(signal.SIGSTOP)

    def freeze_sender(self) -> None:
        """Suspend only the process that sends to the standby, which receives nothing more."""
        [sender] = [one for one in self._processes() if "walsender" in " ".join(one.cmdline())]
        sender.send_signal(signal.SIGSTOP)

    def _processes(self) -> list[psutil.Process]:
        with suppress(OSError, IndexError, psutil.NoSuchProcess):
            postmaster = psutil.Process(int((self._data / "postmaster.pid").read_text().split()[0]))
            return [postmaster, *postmaster.children()]
        return []

    def _signal_all(self, number: int) -> None:
        for process in self._processes():
            with suppress(psutil.NoSuchProcess):
                process.send_signal(number)

    def _run(self, program: str, *arguments: str) -> None:
        is_ours = (
            not self._prefix or not self._user.switched
        )  # otherwise only root may do what comes before the program
        switch = ("setpriv", f"--reuid={self._user.uid}", f"--regid={self._user.gid}", "--clear-groups")
        subprocess.run(
            [*self._prefix, *(() if is_ours else switch), str(self._bin_dir / program), *arguments],
            check=True,
            cwd="/",
            env={"PATH": os.environ["PATH"], "LC_ALL": "C", "PGDATA": str(self._data)},
            stdout=subprocess.DEVNULL,
            **(self._user.identity if is_ours else {}),
        )


class Pair:
    """A primary and its standby."""

    def __init__(self, directory: Path) -> None:
        self.primary = PostgresServer(directory)
        self.standby = PostgresServer(directory)

    @property
    def dsn(self) -> str:
        """The address of both, which leads to the writable one."""
        hosts = f"127.0.0.1:{self.primary.port},127.0.0.1:{self.standby.port}"
        return f"postgresql://{ROLE}@{hosts}/postgres?target_session_attrs=read-write"

    def fail_over(self) -> None:
        """Kill the primary and promote the standby."""
        self.primary.kill()
        self.standby.promote()


@contextmanager
def running_pair(*, synchronous: bool) -> Iterator[Pair]:
    """Start both; a `synchronous` standby flushes each commit before the primary confirms it."""
    user = find_server_user()
    with fast_directory() as directory:
        if user.switched:
            os.chown(directory, user.uid, user.gid)
        pair = Pair(directory)
        try:
            pair.primary.create()
            pair.primary.start()
            pair.standby.follow(pair.primary)
            pair.standby.start()
            if synchronous:
                pair.primary.execute("ALTER SYSTEM SET synchronous_standby_names = 'standby'")
                pair.primary.execute("SELECT pg_reload_conf()")
            yield pair
        finally:
            pair.primary.kill()
            pair.standby.kill()
