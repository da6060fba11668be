"""Mends times whose seconds were rounded up to 60. Runs in the sandbox."""

import sqlite3
from collections.abc import Collection

from service.engine.jailed.gpkg import columns, quoted

LAST = "substr({0}, 1, 17) || '59'"
"""The last second before a sixtieth one, of a time as GeoPackage writes it."""
JUNE = "1972 1981 1982 1983 1985 1992 1993 1994 1997 2012 2015"
DECEMBER = "1972 1973 1974 1975 1976 1977 1978 1979 1987 1989 1990 1995 1998 2005 2008 2016"
"""The years with a leap second at the end of the month; since 2016, none was added."""
LEAPS = ", ".join(
    f"'{year}-{day} 23:59'" for years, day in ((JUNE, "06-30"), (DECEMBER, "12-31")) for year in years.split()
)
IS_LEAP = f"strftime('%Y-%m-%d %H:%M', {LAST} || substr({{0}}, 20)) IN ({LEAPS})"
"""Whether a sixtieth second is a leap second: those are the last of a day in UTC."""
NEXT = f"strftime('%Y-%m-%dT%H:%M:%S', {LAST}, '+1 second') || substr({{0}}, 20)"
IS_CARRIED = f"substr({{0}}, 17, 3) = ':60' AND NOT ({IS_LEAP})"
LAST_OF_MINUTE = "substr({0}, 1, 6) || '59.999'"
IS_ROUNDED = "{0} GLOB '[0-2][0-9]:[0-5][0-9]:60.000'"
"""Whether a time of day is such a second. Those that the file has as 60 have no fraction."""


def carry_seconds(connection: sqlite3.Connection, table: str, clock_times: Collection[str]) -> None:
    """Make sixtieth seconds that are no leap seconds the next minute: the driver rounds 59.9995 up to 60.000.

    In the columns `clock_times`, whose texts are times of day, the minute stays, since the last one has no next.
    """
    for name, declared in columns(connection, table):
        if declared == "DATETIME":
            mended, is_wrong = NEXT, IS_CARRIED
        elif name in clock_times:
            mended, is_wrong = LAST_OF_MINUTE, IS_ROUNDED
        else:
            continue
        time = quoted(name)
        connection.execute(
            f"UPDATE {quoted(table)} SET {time} = {mended.format(time)} WHERE {is_wrong.format(time)}"  # noqa: S608 -- quoted
        )
