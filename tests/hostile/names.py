"""Names and fields of requests: what a client claims about its file."""

from tests.hostile.case import REFUSED, Case, constant
from tests.support.data import lakes

HARMLESS = {
    "a path upwards": "../../../../{slip}.geojson",
    "an absolute path": "{directory}/{slip}.geojson",
    "a drive": "C:\\Users\\{slip}.geojson",
    "an option": "--config.geojson",
    "a recipe": "<OGRVRTDataSource>.geojson",
    "a driver's prefix": "GeoJSONSeq:a.geojson",
    "an archive's prefix": "/vsizip/a.geojson",
    "right-to-left letters": "a\u202enosjoeg.geojson",
    "letters of no width": "a\u200b\ufeff.geojson",
    "a bell": "a\x07\x1b[31m.geojson",
    "line breaks": "a\r\nX-Evil: 1\r\n\r\n.geojson",
    "quotes": 'a";filename="b.exe".geojson',
    "a device": "CON.geojson",
    "signs only": "😀🗻.geojson",
    "240 letters": "n" * 240 + ".geojson",
    "240 letters of four bytes": "🗻" * 240 + ".geojson",
    "a formula": "=cmd|'/c calc'!A1.geojson",
    "markup": "<script>alert(1)</script>.geojson",
    "percent signs": "%2e%2e%2f%00%n%s.geojson",
    "braces": "{target}{0}{input.__class__}.geojson",
}
WRONG = {
    "no name": ".geojson",
    "dots": "...",
    "two extensions": "a.geojson.exe",
    "an extension with a path": "a.geojson/../../b",
    "an extension with braces": "a.{0}",
    "an extension of 240 letters": "a." + "x" * 240,
}
CHOICES = {
    "an option": "-sql",
    "a file": "@{txt}",
    "SQL": "x' UNION select * FROM sqlite_master --",
    "a path": "../../{slip}",
    "braces": "{input}{0}",
    "line breaks": "a\n-progress",
}
TWO_FOLDERS = (
    '<kml xmlns="http://www.opengis.net/kml/2.2"><Document>'
    + "".join(
        f"<Folder><name>{name}</name><Placemark><Point><coordinates>1,2</coordinates></Point></Placemark></Folder>"
        for name in ("a", "b")
    )
    + "</Document></kml>"
)

CASES = {
    **{f"named as {what}": Case(name, constant(lakes()), "") for what, name in HARMLESS.items()},
    **{
        f"named as {what}, unknown": Case(name, constant(lakes()), REFUSED if name != ".geojson" else None)
        for what, name in WRONG.items()
    },
    **{
        f"layer chosen as {what}": Case("a.kml", constant(TWO_FOLDERS), "layer", {"layer": name})
        for what, name in CHOICES.items()
    },
    **{
        f"output chosen as {what}": Case("a.kml", constant(TWO_FOLDERS), "not an output format", {"outputFormat": name})
        for what, name in CHOICES.items()
    },
}
