"""The hosts of a fleet: network namespaces on one bridge where this user may make them, else all on the loopback.

A partition loses every packet between two hosts silently, as a broken switch does: each of them sends to an
address of the link layer that nobody has. Connections stay open on both sides.
"""

import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import msgspec

_NOBODY = "02:00:00:00:00:01"


class Host(msgspec.Struct, frozen=True):
    """Where a process runs; `prefix` is what its command begins with."""

    name: str
    address: str = "127.0.0.1"
    prefix: tuple[str, ...] = ()


LOOPBACK = Host("loopback")


class Network:
    """Hosts that can be parted."""

    def __init__(self, bridge: str, subnet: str) -> None:
        self._bridge = bridge
        self._subnet = subnet
        self._hosts: list[Host] = []
        self._parted: list[tuple[Host, Host]] = []

    @property
    def can_part(self) -> bool:
        """Whether there are hosts to part."""
        return bool(self._bridge)

    def host(self, name: str) -> Host:
        """Make a host."""
        if not self._bridge:
            return msgspec.structs.replace(LOOPBACK, name=name)
        number = len(self._hosts) + 2
        space, link = f"{self._bridge}-{number}", f"{self._bridge}v{number}"
        host = Host(name, f"{self._subnet}.{number}", (str(shutil.which("nsenter")), f"--net=/run/netns/{space}"))
        _run("ip", "netns", "add", space)
        self._hosts.append(host)
        _run("ip", "link", "add", link, "type", "veth", "peer", "name", "eth0", "netns", space)
        _run("ip", "link", "set", link, "master", self._bridge, "up")
        _run(*host.prefix, "ip", "link", "set", "lo", "up")
        _run(*host.prefix, "ip", "link", "set", "eth0", "up")
        _run(*host.prefix, "ip", "address", "add", f"{host.address}/24", "dev", "eth0")
        return host

    @property
    def address(self) -> str:
        """The address of this program for the hosts."""
        return f"{self._subnet}.1"

    def part(self, one: Host, other: Host) -> None:
        """Lose every packet between two hosts."""
        for here, there in ((one, other), (other, one)):
            self.lose(here, there.address)
        self._parted.append((one, other))

    def lose(self, host: Host, address: str) -> None:
        """Lose every packet from a host to an address."""
        neighbour = ("ip", "neigh", "replace", address, "lladdr", _NOBODY, "dev", "eth0", "nud", "permanent")
        _run(*host.prefix, *neighbour)

    def mend(self) -> None:
        """Lose nothing any more."""
        while self._parted:
            one, other = self._parted.pop()
            for here, there in ((one, other), (other, one)):
                _run(*here.prefix, "ip", "neigh", "del", there.address, "dev", "eth0")

    def remove(self) -> None:
        """Remove all hosts; what runs there keeps its network until it ends."""
        for number in range(2, len(self._hosts) + 2):
            with suppress(subprocess.CalledProcessError):
                _run("ip", "netns", "del", f"{self._bridge}-{number}")


@contextmanager
def network() -> Iterator[Network]:
    """Make a network with no hosts yet, and remove it in the end; this program has the address .1 on its bridge."""
    number = os.getpid() % 16_000
    bridge, subnet = f"gm{number}", f"10.{192 + number // 250}.{number % 250}"
    if not _made(bridge, subnet):
        yield Network("", "")
        return
    made = Network(bridge, subnet)
    try:
        yield made
    finally:
        made.remove()
        _run("ip", "link", "del", bridge)


def _made(bridge: str, subnet: str) -> bool:
    """Make the bridge; return whether this user may do that, and make namespaces."""
    if os.geteuid() or not shutil.which("ip") or not shutil.which("nsenter"):
        return False
    with suppress(subprocess.CalledProcessError):
        _run("ip", "link", "add", bridge, "type", "bridge")
        with suppress(subprocess.CalledProcessError):
            _run("ip", "link", "set", bridge, "up")
            _run("ip", "address", "add", f"{subnet}.1/24", "dev", bridge)
            _run("ip", "netns", "add", f"{bridge}-probe")
            _run("ip", "netns", "del", f"{bridge}-probe")
            return Path("/run/netns").is_dir()
        _run("ip", "link", "del", bridge)
    return False


def _run(*command: str) -> None:
    subprocess.run(command, check=True, capture_output=True)
