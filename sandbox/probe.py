"""A program that tries to get out, and writes into `reached` what it got at.

`python -m sandbox.probe FILE TCP UDP UNIX ABSTRACT`: the arguments are a canary file, two ports of the loopback
address, the path of a socket and an abstract name.
"""

import json
import socket
import sys
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

MODULE = "sandbox.probe"
RESULT = "reached"
PROMISE = b"canary"


def attempts(file: str, tcp: str, udp: str, unix: str, abstract: str) -> dict[str, Callable[[], object]]:
    """What is tried, by what a report calls it."""
    return {
        "a file outside": lambda: Path(file).read_bytes(),
        "the listing of a directory outside": lambda: list(Path(file).parent.iterdir()),
        "a TCP listener": lambda: _send(socket.AF_INET, socket.SOCK_STREAM, ("127.0.0.1", int(tcp))),
        "a UDP listener": lambda: _send(socket.AF_INET, socket.SOCK_DGRAM, ("127.0.0.1", int(udp))),
        "a Unix socket": lambda: _send(socket.AF_UNIX, socket.SOCK_STREAM, unix),
        "an abstract socket": lambda: _send(socket.AF_UNIX, socket.SOCK_STREAM, f"\0{abstract}"),
    }


def _send(family: int, kind: int, address: str | tuple[str, int]) -> None:
    with socket.socket(family, kind) as connection:
        connection.settimeout(1)
        connection.connect(address)
        connection.send(PROMISE)


def main() -> None:
    """Try everything."""
    reached = []
    for name, attempt in attempts(*sys.argv[1:]).items():
        with suppress(OSError):
            attempt()
            reached.append(name)
    Path(RESULT).write_text(json.dumps(reached), encoding="utf-8")


if __name__ == "__main__":
    main()
