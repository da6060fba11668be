"""Limits on request headers: their total length, and a single declaration of the body's length.

The server limits the length as well, but only of headers that arrive in several pieces. If a request declares two
lengths, the server and a gateway in front of it may use different ones; RFC 9112, 6.1 requires closing the connection.
"""

from starlette.types import Scope

from service.errors import HeadersTooLarge, MalformedRequest, RequestFault

_LENGTHS = frozenset({b"content-length", b"transfer-encoding"})


def fault_of(scope: Scope, most_bytes: int) -> RequestFault | None:
    """Return what is wrong with a header that has two lengths, or more than `most_bytes` of path, query and fields."""
    size = len(scope["path"]) + len(scope["query_string"])
    lengths = 0
    for name, value in scope["headers"]:
        size += len(name) + len(value)
        lengths += name in _LENGTHS
    if size > most_bytes:
        return HeadersTooLarge(f"The request header exceeds {most_bytes} bytes. Send fewer header fields.")
    if lengths > 1:
        return MalformedRequest("The request has both Content-Length and Transfer-Encoding. Send only one of them.")
    return None
