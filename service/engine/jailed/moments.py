"""Mends times whose seconds were rounded up to 60. Runs in the sandbox."""

import sqlite3

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


def carry_seconds(connection: sqlite3.Connection, table: str) -> None:
    """Make sixtieth seconds that are no leap seconds the next minute: the driver rounds 59.9995 up to 60.000."""
    for name, declared in columns(connection, table):
        if declared == "DATETIME":
            time = quoted(name)
            carried = f"substr({time}, 17, 3) = ':60' AND NOT ({IS_LEAP.format(time)})"
            connection.execute(f"UPDATE {quoted(table)} SET {time} = {NEXT.format(time)} WHERE {carried}")  # noqa: S608 -- quoted
