"""What a check of an installation found: one line of `geomill doctor`."""

from collections.abc import AsyncIterator, Callable
from typing import Literal

import msgspec

from service.settings import Settings
from service.usecases.services import Role

State = Literal["ok", "warn", "fail"]


class Finding(msgspec.Struct, frozen=True):
    """One thing that was checked; `advice` says what to do about it unless it is `ok`."""

    name: str
    state: State
    detail: str
    advice: str = ""


Check = Callable[[Settings, Role], AsyncIterator[Finding]]
"""Checks one part, one finding after the other; an exception means that it cannot be used."""


def judged(name: str, detail: str, complaint: str, *, holds: bool, otherwise: State = "warn") -> Finding:
    """Return a finding that is `ok` if something holds, and else `otherwise`, with `complaint` as advice."""
    return Finding(name, "ok", detail) if holds else Finding(name, otherwise, detail, complaint)
