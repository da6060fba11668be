"""What an attack would read, call or overwrite, with checks of whether it did."""

import io
import secrets
import tempfile
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from socket import socket
from threading import Thread
from typing import Any

from tests.support.data import collection, feature, point

GREETING = "bait-"


class Bait:
    """A world-accessible directory with files that hold a secret, and a listener."""

    def __init__(self, directory: Path) -> None:
        self.secret = secrets.token_hex(12)
        self.marker = f"slipped-{secrets.token_hex(6)}"
        self.directory = directory
        self.listener = _Listener(self.secret)
        self._before = self._fill()

    @property
    def url(self) -> str:
        """The listener's address."""
        return f"http://127.0.0.1:{self.listener.server_port}"

    def file(self, extension: str) -> Path:
        """The file with the secret in a format that GDAL can read."""
        return self.directory / f"secret{extension}"

    def is_in(self, content: bytes) -> bool:
        """Whether `content`, or an archive's member in it, contains the secret."""
        return any(self.secret.encode() in part for part in unpacked(content))

    def touched(self) -> list[str]:
        """What was called, written or changed."""
        now = {path.name: path.read_bytes() for path in self.directory.iterdir()}
        changed = [name for name in now.keys() | self._before.keys() if now.get(name) != self._before.get(name)]
        return [*self.listener.visitors, *changed]

    def _fill(self) -> dict[str, bytes]:
        table = f"WKT,secret\nPOINT (1 2),{self.secret}\n"
        document = collection(feature(point(1, 2), secret=self.secret)).decode()
        for extension, text in {".csv": table, ".txt": table, ".geojson": document, ".dtd": table}.items():
            self.file(extension).write_text(text)
        for path in (self.directory, *self.directory.iterdir()):
            path.chmod(0o777)
        return {path.name: path.read_bytes() for path in self.directory.iterdir()}


class _Listener(ThreadingHTTPServer):
    """Records every connection, and responds with the secret."""

    def __init__(self, secret: str) -> None:
        super().__init__(("127.0.0.1", 0), _Teller)
        self.secret = secret
        self.visitors: list[str] = []

    def verify_request(self, request: socket | tuple[bytes, socket], client_address: Any) -> bool:  # noqa: ARG002 - the library's
        self.visitors.append(f"a connection from {client_address}")
        return True


class _Teller(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        secret = self.server.secret if isinstance(self.server, _Listener) else ""
        body = f"WKT,secret\nPOINT (1 2),{secret}\n".encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Log nothing."""


@contextmanager
def laid_out() -> Iterator[Bait]:
    """Create bait where every user of this host can reach it."""
    with tempfile.TemporaryDirectory(prefix=GREETING, dir="/var/tmp") as directory:
        bait = Bait(Path(directory))
        thread = Thread(target=bait.listener.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)
        thread.start()
        try:
            yield bait
        finally:
            bait.listener.shutdown()
            bait.listener.server_close()
            thread.join()


def unpacked(content: bytes) -> Iterator[bytes]:
    """`content`, followed by its members if it is a ZIP archive."""
    yield content
    if content.startswith(b"PK"):
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            for name in archive.namelist():
                yield archive.read(name)
