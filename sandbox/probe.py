"""A program that tries to reach what lies outside the jail, and writes what it reached to the file `reached`.

Run as `python -m sandbox.probe`, with the arguments of `attempts` as JSON in the file `targets`. It also runs as a
script, so that it can be tested where Python finds no packages.
"""

import json
import socket
from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import partial
from pathlib import Path

MODULE = f"{__package__}.probe"  # as a script it has another name, and no use for this one
TARGETS = "targets"
RESULT = "reached"
PROMISE = b"canary"


def attempts(paths: Mapping[str, str], tcp: int, udp: int, unix: str, abstract: str) -> dict[str, Callable[[], object]]:
    """The attempts by their name in reports: paths, two ports of this host, a socket's path and an abstract name."""
    return {
        **{name: partial(get_at, path) for name, path in paths.items()},
        "a TCP listener": lambda: _send(socket.AF_INET, socket.SOCK_STREAM, ("127.0.0.1", tcp)),
        "a UDP listener": lambda: _send(socket.AF_INET, socket.SOCK_DGRAM, ("127.0.0.1", udp)),
        "a Unix socket": lambda: _send(socket.AF_UNIX, socket.SOCK_STREAM, unix),
        "an abstract socket": lambda: _send(socket.AF_UNIX, socket.SOCK_STREAM, f"\0{abstract}"),
    }


def get_at(path: str) -> None:
    """List, read or connect to what is at `path`; one of these suffices.

    Raises:
        OSError: all three failed.
    """
    with suppress(OSError):
        list(Path(path).iterdir())
        return
    with suppress(OSError), open(path, "rb", buffering=0) as file:  # noqa: PTH123 - a path as it was given
        file.read(1)
        return
    _send(socket.AF_UNIX, socket.SOCK_STREAM, path)


def _send(family: int, kind: int, address: str | tuple[str, int]) -> None:
    with socket.socket(family, kind) as connection:
        connection.settimeout(1)
        connection.connect(address)
        connection.send(PROMISE)


def main() -> None:
    """Make all attempts and write down which succeeded."""
    reached = []
    for name, attempt in attempts(**json.loads(Path(TARGETS).read_text(encoding="utf-8"))).items():
        with suppress(OSError):
            attempt()
            reached.append(name)
    Path(RESULT).write_text(json.dumps(reached), encoding="utf-8")


if __name__ == "__main__":
    main()
