"""Mends times whose seconds were rounded up to 60. Runs in the sandbox."""

import sqlite3

from service.engine.jailed.gpkg import columns, quoted

LAST = "substr({0}, 1, 17) || '59'"
"""The last second before a sixtieth one, of a time as GeoPackage writes it."""
IS_LEAP = f"{{0}} > '1972-' AND strftime('%m-%d %H:%M', {LAST} || substr({{0}}, 20)) IN ('06-30 23:59', '12-31 23:59')"
"""Whether a sixtieth second may be a leap second: those are at the ends of June and December since 1972, in UTC."""
NEXT = f"strftime('%Y-%m-%dT%H:%M:%S', {LAST}, '+1 second') || substr({{0}}, 20)"


def carry_seconds(connection: sqlite3.Connection, table: str) -> None:
    """Make sixtieth seconds that are no leap seconds the next minute: the driver rounds 59.9995 up to 60.000."""
    for name, declared in columns(connection, table):
        if declared == "DATETIME":
            time = quoted(name)
            carried = f"substr({time}, 17, 3) = ':60' AND NOT ({IS_LEAP.format(time)})"
            connection.execute(f"UPDATE {quoted(table)} SET {time} = {NEXT.format(time)} WHERE {carried}")  # noqa: S608 -- quoted
