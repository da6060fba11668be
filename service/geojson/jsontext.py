"""Objects and arrays as the JSON text that the converter writes into a column."""

import json
import math
import re
from collections.abc import Iterator
from typing import Any

from service.geojson.features import INT64_MAX
from service.geojson.refusals import MAX_NESTING, Reason, Unreadable

_ESCAPES = str.maketrans({"/": "\\/"})


class _FinishedText(str):
    """A finished piece of text, as opposed to a string value."""

    __slots__ = ()


_STEPS = {"{ ": 1, "[ ": 1, " }": -1, " ]": -1}
LONG_NEGATIVE = -(10**18)
"""Whole numbers from here down have a minus and 19 digits."""
LIKE_LONG_NEGATIVE = re.compile(r"-\d{19}")
NUL_IN_REPR = r"\x00"
LARGEST = (str(INT64_MAX), str(-INT64_MAX - 1))


def holds_clamped(value: Any, text: str) -> bool:
    """Whether a number in `value`, whose JSON text is `text`, exceeds 64 bits and is written clamped."""
    if not any(number in text for number in LARGEST):
        return False
    return any(not -INT64_MAX - 1 <= number <= INT64_MAX for number in _scalars(value) if isinstance(number, int))


def holds_long_negative(value: Any, text: str) -> bool:
    """Whether a number in `value`, whose JSON text is `text`, is whole and negative with 19 digits."""
    if LIKE_LONG_NEGATIVE.search(text) is None:
        return False
    return any(number <= LONG_NEGATIVE for number in _scalars(value) if isinstance(number, int))


def holds_nul(value: Any) -> bool:
    """Whether a text in `value`, of no more than `MAX_NESTING` levels, has a NUL, at which it is cut off."""
    return NUL_IN_REPR in repr(value) and any("\0" in text for text in _scalars(value) if isinstance(text, str))


def _scalars(value: Any) -> Iterator[Any]:
    """All that `value` holds except objects and arrays, with the names of members."""
    pending = [value]
    while pending:
        item = pending.pop()
        if isinstance(item, dict):
            pending += [*item, *item.values()]
        elif isinstance(item, list):
            pending += item
        else:
            yield item


def json_text(value: Any) -> str:
    """`value` as JSON text, as json-c writes it with spaces.

    Iterative, so that depth costs no stack.

    Raises:
        Unreadable: it is nested too deeply.
    """
    pieces: list[str] = []
    pending = [value]
    depth = 0
    while pending:
        item = pending.pop()
        if isinstance(item, _FinishedText):
            pieces.append(item)
            depth += _STEPS.get(item, 0)
        elif depth == MAX_NESTING and isinstance(item, dict | list):
            raise Unreadable(Reason.TOO_DEEP)
        elif isinstance(item, dict):
            pending.extend(reversed(_object_pieces(item)))
        elif isinstance(item, list):
            pending.extend(reversed(_array_pieces(item)))
        else:
            pieces.append(_scalar_text(item))
    return "".join(pieces)


def _object_pieces(members: dict[str, Any]) -> list[Any]:
    pieces: list[Any] = [_FinishedText("{ ")]
    for name, value in members.items():
        if len(pieces) > 1:
            pieces.append(_FinishedText(", "))
        pieces += [_FinishedText(_string_text(name) + ": "), value]
    return [*pieces, _FinishedText(" }")] if members else [_FinishedText("{ }")]


def _array_pieces(elements: list[Any]) -> list[Any]:
    pieces: list[Any] = [_FinishedText("[ ")]
    for value in elements:
        if len(pieces) > 1:
            pieces.append(_FinishedText(", "))
        pieces.append(value)
    return [*pieces, _FinishedText(" ]")] if elements else [_FinishedText("[ ]")]


def _scalar_text(value: Any) -> str:
    if isinstance(value, str):
        return _string_text(value)
    if isinstance(value, float):
        return _real_text(value)
    if isinstance(value, int) and not isinstance(value, bool):
        return str(max(-INT64_MAX - 1, min(INT64_MAX, value)))
    return json.dumps(value)


def _string_text(value: str) -> str:
    return json.dumps(value.partition("\0")[0], ensure_ascii=False).translate(_ESCAPES)


def _real_text(value: float) -> str:
    if not math.isfinite(value):
        return json.dumps(value)
    text = f"{value:.17g}"
    return text if any(mark in text for mark in ".e") else text + ".0"
