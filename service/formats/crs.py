"""Which EPSG codes are coordinate systems for maps, asked of PROJ's own database (interface 9)."""

import sqlite3
from contextlib import closing
from functools import lru_cache, partial
from pathlib import Path

from service.errors import Rejection

WGS84 = 4326
SYSTEM = "SELECT name, type, deprecated FROM crs_view WHERE auth_name = 'EPSG' AND code = ?"
SUCCESSORS = """
SELECT replacement_code FROM deprecation
WHERE deprecated_auth_name = 'EPSG' AND deprecated_code = ? AND replacement_auth_name = 'EPSG'
  AND table_name IN ('geodetic_crs', 'projected_crs', 'compound_crs')
"""
MAP_TYPES = frozenset({"geographic 2D", "geographic 3D", "projected", "compound"})
MAX_CODE = (1 << 31) - 1

REMEMBERED = 4096
"""Answers that are kept: most requests name one of a few systems, and opening the database is what takes the time."""


class CrsCatalogue:
    """The coordinate systems of one PROJ database, which does not change. A first look-up takes about a millisecond."""

    def __init__(self, database: Path) -> None:
        uri = f"{database.resolve().as_uri()}?mode=ro&immutable=1"
        self._ask = lru_cache(REMEMBERED)(partial(_ask, uri))

    def is_geographic(self, epsg: int) -> bool:
        """Whether the coordinates of `epsg` are degrees of longitude and latitude, or the like."""
        row = self._find(epsg)
        return row is not None and row[1].startswith("geographic")

    def resolve(self, epsg: int, parameter: str) -> int:
        """The code under which GDAL uses `epsg`, the value of `parameter`: deprecated codes have a successor.

        Raises:
            Rejection: the code is unknown, or its system is vertical, geocentric or of an engineering kind.
        """
        row = self._find(epsg)
        if row is None:
            raise Rejection(
                f"EPSG:{epsg} ({parameter}) is not a known coordinate system. Codes are listed at https://epsg.io; "
                "4326 (WGS 84) is the default."
            )
        name, kind, deprecated = row
        if kind not in MAP_TYPES:
            raise Rejection(
                f"EPSG:{epsg} ({parameter}, {name}) is of the type {kind!r} and cannot hold a map. Choose a "
                "geographic or projected one, such as 4326 or 3857."
            )
        successors = self._ask(SUCCESSORS, epsg) if deprecated else []
        return int(successors[0][0]) if len(successors) == 1 else epsg

    def _find(self, epsg: int) -> tuple[str, str, int] | None:
        rows = self._ask(SYSTEM, epsg) if 0 < epsg <= MAX_CODE else []
        return rows[0] if rows else None


def _ask(uri: str, query: str, epsg: int) -> list[tuple[str, str, int]]:
    with closing(sqlite3.connect(uri, uri=True)) as connection:
        return connection.execute(query, (str(epsg),)).fetchall()
