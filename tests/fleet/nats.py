"""A real NATS server with JetStream that can be killed and lose its data."""

import json
import shutil
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from nats.aio.client import Client
from nats.errors import NoRespondersError

from tests.support.patience import PATIENCE_SECONDS
from tests.support.ports import free_port
from tests.support.processes import start_companion

NOBODY = "nobody.answers"
NATS_SERVER = Path(sys.executable).with_name("nats-server")


async def caught_up(connection: Client) -> None:
    """Return when the server has handled all that `connection` was told to send. The client's `flush` overtakes it."""
    with suppress(NoRespondersError):
        await connection.request(NOBODY, timeout=PATIENCE_SECONDS)


class NatsServer:
    """`nats-server` on a free port, which it keeps."""

    def __init__(
        self, directory: Path, address: str = "127.0.0.1", prefix: Sequence[str] = (), options: Sequence[str] = ()
    ) -> None:
        self._directory = directory
        self._line = [*prefix, str(NATS_SERVER), "-js", "-sd", str(self._store), "-a", address, *options]
        self._port = str(free_port())
        self.start()

    def start(self) -> None:
        """Start the server, on the same port every time."""
        arguments = ["-p", self._port, "--ports_file_dir", str(self._directory)]
        for old in self._directory.glob("*.ports"):
            old.unlink()
        with (self._directory / "log").open("a") as log:
            self._process = start_companion([*self._line, *arguments], stderr=log, stdout=log)
        give_up_at = time.monotonic() + PATIENCE_SECONDS
        while not (found := "".join(file.read_text() for file in self._directory.glob("*.ports"))):
            assert self._process.poll() is None, (self._directory / "log").read_text()
            assert time.monotonic() < give_up_at, "the NATS server did not start"
            time.sleep(0.01)
        self.url: str = json.loads(found)["nats"][0]

    @property
    def pid(self) -> int:
        """The id of its process."""
        return self._process.pid

    def kill(self) -> None:
        """End it at once, like a crash."""
        self._process.kill()
        self._process.wait()

    def lose_data(self) -> None:
        """Remove everything that it has stored, while it is down."""
        shutil.rmtree(self._store)

    @property
    def _store(self) -> Path:
        return self._directory / "store"


@contextmanager
def nats_server(
    directory: Path, address: str = "127.0.0.1", prefix: Sequence[str] = (), options: Sequence[str] = ()
) -> Iterator[NatsServer]:
    """Run a server inside the block; `prefix` is a program that replaces itself by the server."""
    server = NatsServer(directory, address, prefix, options)
    try:
        yield server
    finally:
        server.kill()
