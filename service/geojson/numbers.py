"""Numbers beyond 64 bits as JSON text: GDAL before 3.13 clamps them, newer ones refuse some and keep others.

All read them alike where they are written as the older ones read them.
"""

import math
import mmap
import re
from collections.abc import Iterator

from service.geojson.features import INT64_DIGITS, INT64_MAX, integer

_MAY_EXCEED = re.compile(
    rb'"(?:[^"\\]++|\\.)*+"'  # a text, in which numbers do not count
    rb"|(?<![\d.eE+-])-?+(\d++(?:\.\d++)?+[eE][+-]?+\d{3,}+|\d{%d,}+(?:\.\d++)?+(?:[eE][+-]?+\d++)?+)" % INT64_DIGITS,
    re.DOTALL,
)
_IN_NUMBERS = b"-0123456789"


def pieces_within_64_bits(text: bytes | mmap.mmap) -> Iterator[bytes]:
    """JSON text in pieces, with the numbers in it as the converter is to read them; `text` starts outside a text."""
    done = 0
    for found in _MAY_EXCEED.finditer(text):
        if found.group(1):
            yield text[done : found.start()]
            yield _limited(found.group())
            done = found.end()
    yield text[done:]


def _limited(number: bytes) -> bytes:
    if not number.translate(None, _IN_NUMBERS):
        return b"%d" % max(-INT64_MAX - 1, min(INT64_MAX, integer(number.decode())))
    value = float(number)
    if math.isinf(value):
        return b"-Infinity" if value < 0 else b"Infinity"
    is_too_small = value == 0 and bool(re.split(b"[eE]", number)[0].strip(b"-0."))
    return b"0.0" if is_too_small else number
