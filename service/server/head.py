"""The header of a request, parsed strictly and in one pass.

h11's reader accepts the same headers (`tests/unit/server/test_head.py` compares them), but makes several objects per
field, which costs a seventh of a small request. Servers and gateways interpret ambiguous framing differently, which
allows one request to be hidden in another, so such a header is refused even if RFC 9112 lets recipients tolerate it.
"""

import re
from collections.abc import Mapping
from typing import NamedTuple

from service.http.unserved import UNREADABLE, WEBSOCKET
from service.server.inbox import Inbox, Refused, refused

HOST, DECLARED, ENCODING = b"host", b"content-length", b"transfer-encoding"
_TOKEN = rb"[!#$%&'*+.^_`|~0-9A-Za-z-]+"
_HEAD = re.compile(rb"(%s) ([!-~]+) HTTP/([0-9]\.[0-9])\r\n((?:%s:[\t -~\x80-\xff]*\r\n)*)\r\n" % (_TOKEN, _TOKEN))
_FIELD = re.compile(rb"([^:]+):([^\r]*)\r\n")
_HOST = re.compile(rb"(?:[A-Za-z0-9._~-]*|\[[0-9A-Fa-f:.]+\])(?::[0-9]{0,5})?")
_LENGTH = re.compile(rb"[0-9]{1,20}")
_VERSIONS = frozenset({b"1.0", b"1.1"})
_ABSOLUTE = re.compile(rb"https?://([^/?]*)(.*)", re.IGNORECASE)


class RequestHead(NamedTuple):
    """A request without its body; names of fields are in lower case, values without the blanks around them."""

    method: bytes
    target: bytes
    version: bytes
    """The version of HTTP, such as `1.1`."""
    headers: list[tuple[bytes, bytes]]
    fields: Mapping[bytes, bytes]
    """The last value of each field."""


def read_head(inbox: Inbox) -> RequestHead | None:
    """Remove and return the header at the start of `inbox`; None if it is incomplete.

    Raises:
        Refused: it is not the header of a request, or an ambiguous or too long one.
    """
    if not inbox:
        return None
    text = inbox.take_head()
    if text is None:
        if inbox.starts_badly:
            raise Refused(UNREADABLE)
        return None
    found = _HEAD.fullmatch(text)
    if found is None:
        raise Refused(UNREADABLE)
    method, target, version, lines = found.groups()
    headers = [(name.lower(), value.strip(b" \t")) for name, value in _FIELD.findall(lines)]
    fields = dict(headers)
    if len(fields) < len(headers):
        _check_repeated(headers)
    if version == b"1.1" and HOST not in fields:
        raise Refused(UNREADABLE)
    _check_framing(fields, version)
    return RequestHead(method, target, version, headers, fields)


def target_of(request: RequestHead) -> bytes:
    """Return the path and query of an unambiguous request.

    Raises:
        Refused: the request names two hosts, its target is not a path, or its method has small letters, which gateways
            take for another method.
    """
    if request.version not in _VERSIONS:
        raise Refused(UNREADABLE)
    if request.method != request.method.upper():
        raise refused("The method of the request has lower-case letters. Send it in upper case, such as GET.")
    if request.fields.get(b"upgrade", b"").lower() == b"websocket":
        raise Refused(WEBSOCKET)
    target = request.target
    if absolute := _ABSOLUTE.fullmatch(target):
        if absolute[1].lower() != request.fields.get(HOST, absolute[1]).lower():
            raise refused("The target and the header Host name different hosts. Send the same.")
        target = absolute[2] if absolute[2].startswith(b"/") else b"/" + absolute[2]
    if b"#" in target or not (target.startswith(b"/") or (target == b"*" and request.method == b"OPTIONS")):
        raise refused("The target of the request is not a path. Send a path that begins with /.")
    return target


def _check_repeated(headers: list[tuple[bytes, bytes]]) -> None:
    names = [name for name, _ in headers]
    for name in (HOST, DECLARED, ENCODING):
        if names.count(name) > 1:
            raise refused(f"The header {name.decode().title()} occurs twice. Send it once.")


def _check_framing(fields: Mapping[bytes, bytes], version: bytes) -> None:
    """Check that at most one field defines the end of the body, and does so unambiguously."""
    length, encoding = fields.get(DECLARED), fields.get(ENCODING)
    if length is not None:
        if encoding is not None:
            raise refused("The request has both Content-Length and Transfer-Encoding. Send only one of them.")
        if not _LENGTH.fullmatch(length):
            raise refused("The header Content-Length is not a number. Send only digits.")
    if encoding is not None:
        if encoding.lower() != b"chunked":
            raise refused("The service supports no Transfer-Encoding other than chunked. Send the body without it.")
        if version == b"1.0":
            raise refused("An HTTP/1.0 request cannot have a Transfer-Encoding. Send Content-Length.")
    if not _HOST.fullmatch(fields.get(HOST, b"")):
        raise refused("The header Host does not name a host. Send the name and the port of the service.")
