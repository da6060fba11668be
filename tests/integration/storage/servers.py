"""Servers on loopback for tests: a real S3 server that can be killed, and a wire that can be cut."""

import asyncio
import re
import sys
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path

from tests.support.patience import polls
from tests.support.ports import free_port
from tests.support.processes import start_companion
from tests.support.relay import CHUNK, Pump, Relay, Way, listening

ACCESS_KEY, SECRET_KEY = "access-key-of-tests", "secret-key-of-tests"
BUCKET = "results-of-tests"
RCLONE = Path(sys.executable).with_name("rclone")


class S3Server:
    """`rclone serve s3`: checks signatures, expiry and keys like AWS, and keeps each bucket as a directory.

    Where it differs from AWS: a partial answer has status 200 with its Content-Range; an expired or unsigned link is
    refused with 400, not 403; If-None-Match: * is not heeded; there is no encryption at rest. What arrives is a file
    `.rclone_temp_multipart_…` or has its final name already; a server that is killed leaves it.
    """

    def __init__(self, directory: Path, *options: str, address: str = "127.0.0.1", prefix: Sequence[str] = ()) -> None:
        self.directory = directory
        self._options = options
        self._address = f"{address}:{free_port()}"
        self._prefix = prefix
        (directory / BUCKET).mkdir()
        self.start()

    def start(self) -> None:
        """Start the server, on the same port every time."""
        log = self.directory.with_suffix(".log")
        with log.open("w") as errors:
            self._process = start_companion([*self._prefix, *self.command(self._address)], stderr=errors)
        for _ in polls():
            if started := re.search(r"Starting s3 server on \[(https?://[^/\]]+)", log.read_text()):
                self.url = started[1]
                return
            if self._process.poll() is not None:
                break
        raise AssertionError(log.read_text())

    def command(self, address: str) -> list[str]:
        """The program that serves the directory at `address`, with its arguments."""
        options = ["--config", "", "--addr", address, "--auth-key", f"{ACCESS_KEY},{SECRET_KEY}", *self._options]
        return [str(RCLONE), "serve", "s3", *options, str(self.directory)]

    @property
    def pid(self) -> int:
        """The id of its process."""
        return self._process.pid

    def kill(self) -> None:
        """End it at once, like a crash."""
        self._process.kill()
        self._process.wait()

    def host_and_port(self) -> tuple[str, int]:
        """The address on which it listens."""
        host, port = self._address.split(":")
        return host, int(port)

    def files(self) -> list[str]:
        """The names of all files in the bucket's directory, complete or not."""
        return [path.name for path in (self.directory / BUCKET).rglob("*") if path.is_file()]


@contextmanager
def s3_server(
    directory: Path,
    *options: str,
    address: str = "127.0.0.1",
    prefix: Sequence[str] = (),
    kind: type[S3Server] = S3Server,
) -> Iterator[S3Server]:
    """Run a server inside the block; `prefix` is a program that replaces itself by the server."""
    server = kind(directory, *options, address=address, prefix=prefix)
    try:
        yield server
    finally:
        server.kill()


class Wire(Relay):
    """A relay that passes data on but for what is `withheld` and `damaged` once, or keeps it until it `flows` again."""

    def __init__(self, server: S3Server) -> None:
        super().__init__(lambda: asyncio.open_connection(*server.host_and_port()))
        self.flows = asyncio.Event()
        self.flows.set()
        self.withheld = b""
        self.damaged = b""
        self.sent = bytearray()
        self.url = ""

    def pumps(self, up: Way, down: Way) -> tuple[Pump, Pump]:
        """See `Relay`."""
        return self._pump(*up, self.sent), self._pump(*down, bytearray())

    async def _pump(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, seen: bytearray) -> None:
        while chunk := await reader.read(CHUNK):
            await self.flows.wait()
            seen += chunk
            if self.damaged and self.damaged in chunk:
                chunk, self.damaged = chunk.replace(self.damaged, self.damaged.swapcase()), b""
            writer.write(chunk.replace(self.withheld, b""))
            await writer.drain()


@asynccontextmanager
async def wire_to(server: S3Server) -> AsyncIterator[Wire]:
    """Run a relay to the server inside the block."""
    wire = Wire(server)
    async with listening(wire) as port:
        wire.url = f"http://127.0.0.1:{port}"
        yield wire
