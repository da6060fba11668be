"""A client of a mixed load, and how it judges what it gets."""

import itertools
import random
import re
from collections.abc import Awaitable, Callable, Mapping
from http import HTTPStatus
from typing import Any

import httpx
import msgspec

from bench.load.documents import small_document
from bench.load.load import OK
from bench.load.paths import SINGLE
from bench.load.site import Site

TARGETS = {
    "Shapefile": "shapefile",
    "Csv": "csv",
    "Kml": "kml",
    "Gml": "gml",
    "GeoPackage": "gpkg",
    "FlatGeobuf": "flatgeobuf",
}
"""Formats that every GDAL has, by the names and tokens that the interface has for them."""
UNDERSTOOD = range(200, 300)
_FILE_NAME = re.compile(r'filename="([^"]+)"')


class Visitor:
    """A client with the keys of several accounts and one file of each format."""

    def __init__(self, site: Site, client: httpx.AsyncClient, seed: int) -> None:
        self.site = site
        self.client = client
        self.random = random.Random(seed)
        self.files: dict[str, tuple[str, bytes]] = {"geojson": ("places.geojson", small_document())}
        self._keys = itertools.cycle((site.key, *site.crowd))

    async def prepare(self) -> None:
        """Get a file of each format: the results of first conversions.

        Raises:
            SystemExit: the server does not convert.
        """
        for target, token in TARGETS.items():
            answer = await self.convert("places.geojson", small_document(), {"outputFormat": target})
            if (verdict := converted(answer)) != OK:
                raise SystemExit(f"The server does not convert to {target}: {verdict}")
            result = await self.client.get(answer.json()["downloadUrl"])
            named = _FILE_NAME.search(result.headers["content-disposition"])
            assert named is not None
            self.files[token] = (named[1], result.content)

    def key(self) -> dict[str, str]:
        """The header of the next account's key."""
        return {"X-API-Key": next(self._keys)}

    async def convert(
        self,
        name: str,
        content: bytes,
        fields: Mapping[str, str] | None = None,
        *,
        headers: Mapping[str, str] | None = None,
        path: str = SINGLE,
    ) -> httpx.Response:
        """Upload one file."""
        files = {"file": (name, content)}
        sent = {**self.key(), **(headers or {})}
        return await self.client.post(self.site.prefix + path, files=files, data=fields, headers=sent)

    async def get(self, path: str, headers: Mapping[str, str] | None = None) -> httpx.Response:
        """Ask for a path of the service."""
        return await self.client.get(self.site.prefix + path, headers=headers)


class Row(msgspec.Struct, frozen=True):
    """One action of clients, and its weight."""

    weight: int
    act: Callable[[Visitor], Awaitable[str]]


def converted(response: httpx.Response) -> str:
    """Every file is to be converted."""
    return OK if response.status_code in UNDERSTOOD and response.json().get("success") else what(response)


def rejected(response: httpx.Response) -> str:
    """The file is to be rejected."""
    return OK if response.status_code == HTTPStatus.OK and response.json()["success"] is False else what(response)


def with_status(response: httpx.Response, status: int) -> str:
    """The response is to have a status."""
    return OK if response.status_code == status else what(response)


def first_wrong(*verdicts: str) -> str:
    """Return the first verdict that is not `OK`."""
    return next((verdict for verdict in verdicts if verdict != OK), OK)


def what(response: httpx.Response) -> str:
    """Name what else a response is."""
    if "json" not in response.headers.get("content-type", ""):
        return f"status {response.status_code}"
    members: dict[str, Any] = response.json()
    return f"status {response.status_code}: {members.get('code') or members.get('error') or ''}"
