"""Mends possessive repeats of groups in Pythons before 3.11.5, which find nothing with some (such as Debian 12's).

`(?:x)*+` means the same as `(?>(?:x)*)`, which these Pythons match rightly.
"""

import re
from collections.abc import Callable
from typing import Any


def mend_possessive_repeats() -> None:
    """Have `re` compile possessive repeats as atomic groups."""
    parser: Any = vars(re)["_parser"]
    parser.parse = _mended(parser.parse, parser)
    re.purge()


def _mended(parse: Callable[..., Any], parser: Any) -> Callable[..., Any]:
    def mend(part: Any) -> None:
        if isinstance(part, tuple | list):
            for one in part:
                mend(one)
        elif isinstance(part, parser.SubPattern):
            mend(part.data)
            part.data = [
                (parser.ATOMIC_GROUP, parser.SubPattern(part.state, [(parser.MAX_REPEAT, of)]))
                if kind is parser.POSSESSIVE_REPEAT
                else (kind, of)
                for kind, of in part.data
            ]

    def parse_mended(*arguments: Any, **others: Any) -> Any:
        pattern = parse(*arguments, **others)
        mend(pattern)
        return pattern

    return parse_mended
