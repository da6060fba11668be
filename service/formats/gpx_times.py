"""Writes times of GPX as its schema has them: releases of the driver differ in what else they read, and do not tell."""

import re

from service.formats.mending import Mending

_MONTH, _DAY, _HOUR, _SIXTY = rb"(?:0[1-9]|1[0-2])", rb"(?:0[1-9]|[12]\d|3[01])", rb"(?:[01]\d|2[0-3])", rb"[0-5]\d"
PLAIN_TIME = (
    rb"\d{4}-" + _MONTH + rb"-" + _DAY + rb"(?:T" + _HOUR + rb":" + _SIXTY + rb":(?:" + _SIXTY + rb"|60)(?:\.\d+)?+"
    rb"(?:Z|[+-]\d\d:\d\d)?+)?+"
)
"""A time, or a day, that every release reads in full."""
FINE = rb"[^<.]*+\.\d{3}0*+[1-9]"
"""The beginning of a time with digits beyond milliseconds, which no driver keeps."""
FINE_TOLD = "Times with digits beyond milliseconds ({count}) were rounded to these, or left out."
_OPEN, _CLOSE = b"<time>", b"</time>"
ODD = re.compile(_OPEN + rb"(?!" + PLAIN_TIME + _CLOSE + rb")[^<]*+" + _CLOSE)
"""Another time, up to its end: one that a piece of a file cuts off is not odd."""
TIME = re.compile(
    _OPEN + rb"\s*+(?P<year>\d{4})(?P<mark>[-/])(?P<month>\d\d?)(?:(?P=mark)(?P<day>\d\d?))?+"
    rb"(?:(?:[Tt]|\s++)(?P<hour>\d\d?):(?P<minute>\d\d?)(?::(?P<second>\d\d?)(?:[.,](?P<part>\d+))?+)?+"
    rb"\s*+(?P<zone>[Zz]|(?P<sign>[+-])(?P<hours>\d\d?)(?::?+(?P<minutes>\d\d))?+)?+)?+\s*+" + _CLOSE
)


def _plain(time: re.Match[bytes]) -> bytes:
    found = time.groupdict()
    text = b"%b-%02d-%02d" % (found["year"], int(found["month"]), int(found["day"] or 1))
    if found["hour"]:
        text += b"T%02d:%02d:%02d" % (int(found["hour"]), int(found["minute"]), int(found["second"] or 0))
        text += b"." + found["part"] if found["part"] else b""
        text += b"Z" if found["zone"] in {b"Z", b"z"} else b""
    if found["sign"]:
        text += b"%b%02d:%02d" % (found["sign"], int(found["hours"]), int(found["minutes"] or 0))
    return _OPEN + text + _CLOSE


with_plain_times = Mending(ODD, _plain, within=_OPEN, end=_CLOSE, replaced=TIME)
"""Texts that are no times stay as they are."""
