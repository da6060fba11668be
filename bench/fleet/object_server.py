"""An S3 server for measurements that share its cores: it stores, gives and deletes objects with little CPU.

python -m bench.fleet.object_server DIRECTORY HOST PORT

It compares what it gets with the SHA-256 that the client has signed, as every S3 server does, and computes nothing
else: no MD5, which takes longer than the rest. It checks no signatures, and knows no listings, parts or ranges.
"""

import hashlib
import os
import secrets
import sys
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import BinaryIO
from urllib.parse import unquote, urlsplit
from xml.etree import ElementTree as ET

from tests.integration.storage.servers import S3Server

_PIECE_BYTES = 256 << 10
_KEYS = ".//{*}Key"


class ObjectServer(S3Server):
    """This server as a process; each bucket is a directory, as for `S3Server`."""

    def command(self, address: str) -> list[str]:
        """See `S3Server.command`."""
        return [sys.executable, "-m", "bench.fleet.object_server", str(self.directory), *address.split(":")]


class _Objects(ThreadingHTTPServer):
    """The objects under a directory."""

    def __init__(self, directory: Path, address: tuple[str, int]) -> None:
        super().__init__(address, _Connection)
        self.directory = directory


class _Connection(BaseHTTPRequestHandler):
    """One connection, in a thread of its own."""

    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    def do_HEAD(self) -> None:
        """Say whether there is a bucket, or how large an object is."""
        if self._path.is_file():
            self._begin(HTTPStatus.OK, self._path.stat().st_size)
        else:
            self._answer(HTTPStatus.OK if self._path.is_dir() else HTTPStatus.NOT_FOUND)

    def do_PUT(self) -> None:
        """Store an object under its name once all of it is there and is what the client has signed."""
        draft = self._directory / secrets.token_hex(16)
        try:
            with draft.open("xb", buffering=0) as file:
                digest = self._receive(file)
            if digest != self.headers["x-amz-content-sha256"]:
                self._refuse(HTTPStatus.BAD_REQUEST, "XAmzContentSHA256Mismatch")
                return
            self._path.parent.mkdir(parents=True, exist_ok=True)
            draft.replace(self._path)
        finally:
            draft.unlink(missing_ok=True)
        self._answer(HTTPStatus.OK, etag=digest)

    def do_GET(self) -> None:
        """Give an object."""
        try:
            file = self._path.open("rb")
        except (FileNotFoundError, IsADirectoryError):
            self._refuse(HTTPStatus.NOT_FOUND, "NoSuchKey")
            return
        with file:
            self._begin(HTTPStatus.OK, os.fstat(file.fileno()).st_size)
            self.connection.sendfile(file)

    def do_POST(self) -> None:
        """Delete the objects that the body lists; one that was not there is gone, too."""
        body = ET.fromstring(self.rfile.read(self._length))  # noqa: S314 - only our own clients reach it
        answer = ET.Element("DeleteResult")
        for key in body.iterfind(_KEYS):
            (self._path / (key.text or "")).unlink(missing_ok=True)
            ET.SubElement(ET.SubElement(answer, "Deleted"), "Key").text = key.text
        self._answer(HTTPStatus.OK, ET.tostring(answer))

    def log_message(self, *_: object) -> None:
        """Log nothing."""

    @property
    def _directory(self) -> Path:
        assert isinstance(self.server, _Objects)
        return self.server.directory

    @property
    def _path(self) -> Path:
        return self._directory / unquote(urlsplit(self.path).path).lstrip("/")

    @property
    def _length(self) -> int:
        return int(self.headers["Content-Length"])

    def _receive(self, file: BinaryIO) -> str:
        """Write the body to the file; return its SHA-256 in hexadecimal digits."""
        found, left, buffer = hashlib.sha256(), self._length, memoryview(bytearray(_PIECE_BYTES))
        while left:
            size = self.rfile.readinto(buffer[:left])
            if not size:
                raise ConnectionError("the client has gone")
            found.update(buffer[:size])
            file.write(buffer[:size])
            left -= size
        return found.hexdigest()

    def _refuse(self, status: HTTPStatus, code: str) -> None:
        self._answer(status, f"<Error><Code>{code}</Code></Error>".encode())

    def _answer(self, status: HTTPStatus, content: bytes = b"", *, etag: str = "") -> None:
        self._begin(status, len(content), etag=etag)
        if content:
            self.wfile.write(content)

    def _begin(self, status: HTTPStatus, size: int, *, etag: str = "") -> None:
        self.send_response_only(status)
        self.send_header("Content-Length", str(size))
        if etag:
            self.send_header("ETag", f'"{etag}"')
        self.end_headers()


if __name__ == "__main__":
    _, _directory, _host, _port = sys.argv
    with _Objects(Path(_directory), (_host, int(_port))) as _server:
        print(f"Starting s3 server on [http://{_host}:{_port}/]", file=sys.stderr, flush=True)
        _server.serve_forever()
