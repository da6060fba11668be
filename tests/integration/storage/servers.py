"""Servers that the tests start on the loopback: a real S3 server that can be killed, and a wire that can be cut."""

import asyncio
import re
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from pathlib import Path

ACCESS_KEY, SECRET_KEY = "access-key-of-tests", "secret-key-of-tests"
BUCKET = "results-of-tests"
RCLONE = Path(sys.executable).with_name("rclone")


class S3Server:
    """`rclone serve s3`: checks signatures, expiry and keys like AWS, and keeps each bucket as a directory.

    Where it differs from AWS: a partial answer has status 200 with its Content-Range; an expired or unsigned link is
    refused with 400, not 403; If-None-Match: * is not heeded; there is no encryption at rest. What arrives is a file
    `.rclone_temp_multipart_…` or has its final name already; a server that is killed leaves it.
    """

    def __init__(self, directory: Path, *options: str) -> None:
        self.directory = directory
        self._options = options
        self._address = "127.0.0.1:0"
        (directory / BUCKET).mkdir()
        self.start()

    def start(self) -> None:
        """Start it; a second time on the port that it had."""
        log = self.directory.with_suffix(".log")
        options = ["--config", "", "--addr", self._address, "--auth-key", f"{ACCESS_KEY},{SECRET_KEY}", *self._options]
        with log.open("w") as errors:
            self._process = subprocess.Popen([str(RCLONE), "serve", "s3", *options, str(self.directory)], stderr=errors)
        for _ in range(1000):
            if started := re.search(r"Starting s3 server on \[(https?://([^/\]]+))", log.read_text()):
                self.url, self._address = started[1], started[2]
                return
            time.sleep(0.01)
        raise AssertionError(log.read_text())

    def kill(self) -> None:
        """End it at once, as a crash does."""
        self._process.kill()
        self._process.wait()

    def files(self) -> list[str]:
        """Return the names of all files that the bucket's directory holds, finished or not."""
        return [path.name for path in (self.directory / BUCKET).rglob("*") if path.is_file()]


@contextmanager
def s3_server(directory: Path, *options: str) -> Iterator[S3Server]:
    """Run a server until the end of the block."""
    server = S3Server(directory, *options)
    try:
        yield server
    finally:
        server.kill()


class Wire:
    """A TCP relay to a server: flows, or takes connections and bytes and gives nothing back."""

    def __init__(self, target: str) -> None:
        self._host, port = target.removeprefix("http://").split(":")
        self._port = int(port)
        self.flows = asyncio.Event()
        self.flows.set()
        self.url = ""

    async def relay(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Serve one connection."""
        with suppress(OSError):
            upstream_reader, upstream_writer = await asyncio.open_connection(self._host, self._port)
            try:
                async with asyncio.TaskGroup() as group:
                    group.create_task(self._pump(reader, upstream_writer))
                    group.create_task(self._pump(upstream_reader, writer))
            finally:
                upstream_writer.close()
                writer.close()

    async def _pump(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(OSError):
            while chunk := await reader.read(65536):
                await self.flows.wait()
                writer.write(chunk)
                await writer.drain()
            writer.write_eof()


@asynccontextmanager
async def wire_to(server: S3Server) -> AsyncIterator[Wire]:
    """Run a relay to the server until the end of the block."""
    wire = Wire(server.url)
    listener = await asyncio.start_server(wire.relay, "127.0.0.1", 0)
    host, port = listener.sockets[0].getsockname()
    wire.url = f"http://{host}:{port}"
    try:
        yield wire
    finally:
        wire.flows.set()
        listener.close()
