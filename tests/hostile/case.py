"""A hostile file and its expected outcome."""

from collections.abc import Callable, Mapping
from functools import cache
from types import MappingProxyType
from typing import NamedTuple

from tests.hostile.bait import Bait

REFUSED = r"."
"""Any refusal in plain language."""
ANOTHER_KIND = r"not a valid .* file|holds no|is damaged|not a readable ZIP|not JSON|not valid JSON|GeoJSON"
LIMIT = r"longer than|computing time|more memory|larger than|more layers|too (deeply|many)|more columns"


class Case(NamedTuple):
    """A file, uploaded as `name`.

    `refused` is a pattern of the error that it has to end with, "" if it has to be converted, None if either is right
    as long as nothing leaks. `absent` must not be in the output.
    """

    name: str
    build: Callable[[Bait], bytes]
    refused: str | None = None
    fields: Mapping[str, str] = MappingProxyType({})
    absent: bytes = b"\x00 never \x00"


def constant(content: bytes | str) -> Callable[[Bait], bytes]:
    """Return a builder of a file without bait."""
    raw = content.encode() if isinstance(content, str) else content
    return lambda _: raw


def made(build: Callable[[], bytes]) -> Callable[[Bait], bytes]:
    """Return a builder of a file without bait that is slow to build, and is built on first use."""
    once = cache(build)
    return lambda _: once()


def text(template: str) -> Callable[[Bait], bytes]:
    """Return a builder that fills in bait: `{csv}`, `{geojson}`, `{txt}`, `{dtd}`, `{url}`, `{directory}`, `{slip}`."""
    return lambda bait: filled(template, bait).encode()


def filled(template: str, bait: Bait) -> str:
    """`template` with the bait's names filled in."""
    for extension in ("csv", "geojson", "txt", "dtd"):
        template = template.replace(f"{{{extension}}}", str(bait.file(f".{extension}")))
    replaced = template.replace("{url}", bait.url).replace("{directory}", str(bait.directory))
    return replaced.replace("{slip}", bait.marker)
