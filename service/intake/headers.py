"""Parsers for two header values of a form, as clients write them in practice.

Content-Disposition has three dialects: browsers and most libraries percent-encode only `"`, CR and LF (WHATWG), older
versions of curl escape `"` and a backslash with a backslash, and some libraries add `filename*` (RFC 8187), which takes
precedence. A backslash before any other character is literal: browsers send Windows names as is.
"""

import re
from collections.abc import Mapping
from typing import NamedTuple
from urllib.parse import unquote_to_bytes

from service.errors import MalformedRequest

MAX_NAME_CHARACTERS = 255

_WORD = r"[!#$%&'*+\-.^_`|~0-9A-Za-z]+"
# Possessive throughout (`*+`), so that a header of thousands of blanks or backslashes takes linear time.
_PARAMETER = re.compile(
    rf"(?:;[ \t]*+)++(?:(?P<key>{_WORD}+)[ \t]*+=[ \t]*+"
    r'(?:"(?P<quoted>(?:[^"\\]|\\.)*+)"[ \t]*+(?=;|\Z)|(?P<bare>[^;]*+)))?',
    re.DOTALL,
)
_MEDIA_TYPE = re.compile(rf"{_WORD}/{_WORD}")
_BOUNDARY = re.compile(r"[0-9A-Za-z'()+_,\-./:=? ]{0,69}[0-9A-Za-z'()+_,\-./:=?]")
_EXTENDED = re.compile(r"(?P<charset>utf-8|iso-8859-1)'[^']*'(?P<text>[^']*)", re.IGNORECASE)
_ESCAPES = re.compile(r'\\(["\\])|%(22|0D|0A)')
_PERCENT = {"22": '"', "0D": "\r", "0A": "\n"}
# Characters that control a terminal, break a log line, change the text direction, or that PostgreSQL rejects.
_UNPRINTABLE = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069\ufffe\uffff]")


class Disposition(NamedTuple):
    """The Content-Disposition of a part; `untrusted_name` is None if there is no usable file name."""

    field: str
    untrusted_name: str | None


def read_boundary(content_type: str | None) -> bytes:
    """Return the boundary that `content_type`, the request's header, declares.

    Raises:
        MalformedRequest: the body is not multipart/form-data, or its boundary is missing or invalid (RFC 2046 5.1.1).
    """
    media_type, parameters = _split(content_type or "")
    if media_type != "multipart/form-data":
        came_as = f"it came as {media_type}" if _MEDIA_TYPE.fullmatch(media_type[:100]) else "it has no Content-Type"
        raise MalformedRequest(f"The request must be sent as multipart/form-data; {came_as}.")
    boundary = parameters.get("boundary", "")
    if not _BOUNDARY.fullmatch(boundary):
        raise MalformedRequest(
            "The Content-Type header has no valid boundary. Let the HTTP client write this header itself."
        )
    return boundary.encode("ascii")


def read_disposition(value: str) -> Disposition:
    """Return the field name and file name in `value`, the Content-Disposition of a part.

    Raises:
        MalformedRequest: it is not `form-data`, has no field name, is malformed, or its file name is too long.
    """
    kind, parameters = _split(value)
    if kind != "form-data" or "name" not in parameters:
        raise MalformedRequest('Each part of the form needs a Content-Disposition: form-data header with a "name".')
    file_name = _file_name(parameters)
    return Disposition(parameters["name"], None if file_name is None else clean_name(file_name))


def clean_name(file_name: str) -> str | None:
    r"""Return the last component of `file_name` without unprintable characters; None if nothing is left.

    Clients on Windows may send a path with `\`; unprintable characters become `_`.

    Raises:
        MalformedRequest: it is longer than 255 characters.
    """
    name = _UNPRINTABLE.sub("_", re.split(r"[/\\]", file_name)[-1]).strip()
    if len(name) > MAX_NAME_CHARACTERS:
        raise MalformedRequest(f"A file name is longer than {MAX_NAME_CHARACTERS} characters; shorten it.")
    return None if name in {"", ".", ".."} else name


def _file_name(parameters: Mapping[str, str]) -> str | None:
    if "filename*" not in parameters:
        return parameters.get("filename")
    extended = _EXTENDED.fullmatch(parameters["filename*"])
    try:
        return unquote_to_bytes(extended["text"]).decode(extended["charset"]) if extended else None
    except UnicodeDecodeError:
        raise MalformedRequest("A file name (filename*) is not in the character set that it declares.") from None


def _split(value: str) -> tuple[str, Mapping[str, str]]:
    """Split a header value into its first token and its parameters, with keys in lower case."""
    head, semicolon, _ = value.partition(";")
    parameters: dict[str, str] = {}
    position = len(head)
    while semicolon and position < len(value):
        match = _PARAMETER.match(value, position)
        if match is None or (match["key"] and match["key"].lower() in parameters):
            raise MalformedRequest("A Content-Type or Content-Disposition header has parameters that cannot be read.")
        if match["key"]:
            parameters[match["key"].lower()] = _value(match)
        position = match.end()
    return head.strip().lower(), parameters


def _value(match: re.Match[str]) -> str:
    if match["quoted"] is None:
        return match["bare"].strip().strip('"')
    return _ESCAPES.sub(lambda escape: escape[1] or _PERCENT[escape[2]], match["quoted"])
