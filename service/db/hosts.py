"""The hosts of a database: a primary and the standbys that may take over from it.

The driver tries all hosts of a URL within one time limit, so that a first host that has lost its network, and neither
accepts nor refuses, would keep it from ever reaching the second. Here each host has its share of the time.
"""

from typing import Any
from urllib.parse import urlsplit

import asyncpg

from service.db.faults import REFUSED


class Hosts:
    """The hosts that a URL names, the one that was suitable last first."""

    def __init__(self, dsn: str, connect_seconds: float) -> None:
        """Take at most `connect_seconds` to connect to any of the hosts of `dsn`."""
        self._addresses = _address_of_each(dsn)
        self._seconds_each = connect_seconds / len(self._addresses)

    async def connect(self, dsn: str | None = None, **options: Any) -> "asyncpg.Connection[asyncpg.Record]":  # noqa: ARG002 -- as pools call it
        """Connect to the first suitable host. `options` are those of `asyncpg.connect`; pools add `dsn`.

        Raises:
            Exception: one of `REFUSED`, from the last host.
        """
        *before, last = self._addresses
        for address in before:
            try:
                return await self._connect(address, options)
            except REFUSED:
                continue
        return await self._connect(last, options)

    async def _connect(self, address: str, options: dict[str, Any]) -> "asyncpg.Connection[asyncpg.Record]":
        connection: asyncpg.Connection[asyncpg.Record]
        connection = await asyncpg.connect(address, **{**options, "timeout": self._seconds_each})
        self._addresses = [address, *(other for other in self._addresses if other != address)]
        return connection


def _address_of_each(dsn: str) -> list[str]:
    """Return one URL for each host of `user@host:port,host:port`."""
    parts = urlsplit(dsn)
    if "," not in parts.netloc:
        return [dsn]
    login, at, hosts = parts.netloc.rpartition("@")
    return [parts._replace(netloc=f"{login}{at}{host}").geturl() for host in hosts.split(",")]
