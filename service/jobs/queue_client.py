"""The client of NATS, as this service uses it."""

from typing import Any

from nats.aio.client import Client

from service.jobs.queue_faults import NoTlsError


class QueueClient(Client):
    """A client that tells a server nothing without TLS, not even its password, if its URL begins with tls://.

    It would otherwise follow the server, or whoever answers in its place, which need only say that it has no TLS.
    """

    async def _process_info(self, info: dict[str, Any], initial_connection: bool = False) -> None:  # noqa: FBT001, FBT002 -- as the client calls it
        """Process what a server says of itself, before anything is said to it.

        Raises:
            NoTlsError: its URL asks for TLS, which it does not offer.
        """
        if initial_connection and self._current_server is not None and self._current_server.uri.scheme == "tls":
            if not (info.get("tls_required") or info.get("tls_available")):
                raise NoTlsError
            info["tls_required"] = True
        await super()._process_info(info, initial_connection)

    async def close(self) -> None:
        """Close the connection, unless none was begun, because its URL names no server."""
        if self._flush_queue is not None:
            await super().close()
