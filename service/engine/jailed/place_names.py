"""Finds columns of a table that hold coordinates by their names. Runs in the sandbox.

A name is split into words. One word says which coordinate it is; the others may name the place (`stop_lat`) or the unit
(`Latitude (deg)`), but nothing else, so that `longitude_quality` is not a longitude.
"""

import re
import unicodedata
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import filterfalse, product

GEOGRAPHIC = (
    ("longitude", "latitude"),
    ("lon", "lat"),
    ("long", "lat"),
    ("lng", "lat"),
    ("laengengrad", "breitengrad"),
    ("langengrad", "breitengrad"),
    ("laenge", "breite"),
    ("lange", "breite"),
    ("longitud", "latitud"),
    ("longitudine", "latitudine"),
    ("lengtegraad", "breedtegraad"),
    ("lengdegrad", "breddegrad"),
    ("laengdegrad", "breddegrad"),
    ("pituusaste", "leveysaste"),
    ("dlugosc", "szerokosc"),
    ("delka", "sirka"),
    ("hosszusag", "szelesseg"),
    ("boylam", "enlem"),
    ("bujur", "lintang"),
    ("долгота", "широта"),
    ("довгота", "широта"),
    ("μηκος", "πλατος"),
    ("经度", "纬度"),
    ("經度", "緯度"),
    ("経度", "緯度"),
    ("경도", "위도"),
    ("kinhdo", "vido"),
    ("देशांतर", "अक्षांश"),
    ("ลองจิจูด", "ละติจูด"),
    ("קואורך", "קורוחב"),
    ("خطالطول", "خطالعرض"),
)
PROJECTED = (
    ("easting", "northing"),
    ("eastings", "northings"),
    ("rechtswert", "hochwert"),
    ("ostwert", "nordwert"),
    ("xcoord", "ycoord"),
    ("coordx", "coordy"),
    ("xcoordinate", "ycoordinate"),
    ("coordinatex", "coordinatey"),
    ("xkoord", "ykoord"),
    ("pointx", "pointy"),
    ("lonwgs84", "latwgs84"),
    ("declongva", "declatva"),  # of the USGS, whose `lat_va` has degrees, minutes and seconds in one number
)
SHORT = (("x", "y"), ("e", "n"), ("east", "north"))
"""Ambiguous words, so that fewer others may accompany them."""
OPPOSITES: Mapping[str, frozenset[str]] = {
    "e": frozenset({"w", "s"}),
    "n": frozenset({"w", "s"}),
    "east": frozenset({"west", "south"}),
    "north": frozenset({"west", "south"}),
}
"""Words that are the edges of an area, not a coordinate, if columns have all these names, too."""
UNITS = frozenset(
    {
        *("deg", "degree", "degrees", "grad", "dd", "dec", "decimal", "dezimal"),
        *("m", "meter", "meters", "metre", "metres"),
        *("wgs", "wgs84", "84", "wgs1984", "1984", "etrs89", "nad83", "nad27", "gps", "lv95", "lv03", "gk", "utm"),
        *("epsg", "4326", "4258", "3857", "25832", "25833", "31n", "32n", "33n"),
        *("rd", "lambert", "lambert93", "l93", "utm30", "utm31", "utm32", "utm33", "utm34", "utm35"),
        *("coord", "coords", "coordinate", "coordinates", "koord", "koordinate", "num", "value"),
        *("coordenada", "coordonnee", "coordinata", "coordinaat"),
        *("geo", "geographisch", "geographiczna", "geograficzna", "zemepisna", "foldrajzi"),
    }
)
"""Words for the unit or system of a coordinate, or for a coordinate as such."""
SPOTS = UNITS | {
    *("point", "pt", "pos", "position", "loc", "location", "place", "map", "center", "centre", "centroid"),
    *("shape", "geom", "geometry", "xy"),
    *("site", "station", "stop"),
}
NOT_PLACES = frozenset(
    {
        *("min", "max", "delta", "diff", "d", "err", "error", "std", "sd", "sigma", "accuracy", "precision", "quality"),
        *("offset", "span", "range", "count", "is", "has", "id"),
    }
)
"""Words that make a name describe a property of a coordinate instead of the coordinate."""
LONGEST, MOST_WORDS = 256, 16
"""How many letters of a name are compared, and how many words one of a coordinate may have."""
MOST_ALIKE = 20
"""How many columns with the same words are tried as the coordinate of a pair."""
UNDECOMPOSED = str.maketrans({"ł": "l", "ø": "o", "æ": "ae", "ß": "ss", "đ": "d", "\u0131": "i"})
SPLIT = re.compile(r"[^\w]+|_")
CAMEL = re.compile(r"(?<=[a-z])(?=[A-Z])")
OTHER_THAN_LETTERS = re.compile(r"[\W_]+")


def _folded(text: str) -> str:
    decomposed = unicodedata.normalize("NFKD", text[:LONGEST].casefold().translate(UNDECOMPOSED))
    return "".join(filterfalse(unicodedata.combining, decomposed))


def plain(name: str) -> str:
    """`name` as it is compared: without case, accents and punctuation."""
    return OTHER_THAN_LETTERS.sub("", _folded(name))


@dataclass(frozen=True, slots=True)
class Role:
    """What a name says about its column: a coordinate of one pair of words, and the other words in it."""

    is_x: bool
    pair: int
    beside: tuple[str, ...]


_PAIRS = tuple((plain(x), plain(y)) for x, y in (*GEOGRAPHIC, *PROJECTED, *SHORT))
_BOTH = {
    *(first + second for x, y in _PAIRS[: len(GEOGRAPHIC)] for first, second in ((x, y), (y, x))),
    *("gps", "gpscoordinates", "coordinate", "coordinates", "coords", "koordinaten", "coordenadas", "coordonnees"),
    *("geolocation", "geocoordinates", "geopoint", "geopoint2d"),
}
"""Names of columns that hold both coordinates."""
_FIRST_SHORT = len(GEOGRAPHIC) + len(PROJECTED)
_ROLES: Mapping[str, tuple[tuple[bool, int], ...]] = {
    word: tuple((word == x, at) for at, (x, y) in enumerate(_PAIRS) if word in {x, y})
    for pair in _PAIRS
    for word in pair
}


def roles_of(name: str) -> list[Role]:
    """The possible roles of the column `name`; empty if it is not a coordinate."""
    whole = plain(name)
    if whole in _ROLES:
        return [Role(is_x, pair, ()) for is_x, pair in _ROLES[whole]]
    words = _words(name)
    if len(words) > MOST_WORDS:
        return []
    return [
        Role(is_x, pair, (*words[:at], *words[at + 1 :]))
        for at, word in enumerate(words)
        for is_x, pair in _ROLES.get(word, ())
        if _may_stand_beside(pair, words[:at], words[at + 1 :])
    ]


def find_pairs(names: Sequence[tuple[int, str]]) -> list[tuple[int, int]]:
    """The pairs of columns, by position, that hold x and y; those with the plainest names first.

    Args:
        names: the columns whose values are numbers.
    """
    every = {plain(name) for _, name in names}
    edges = {word for word, opposites in OPPOSITES.items() if opposites <= every}
    roles = [(at, role) for at, name in names if plain(name) not in edges for role in roles_of(name)]
    alike: defaultdict[tuple[int, tuple[str, ...]], tuple[list[int], list[int]]] = defaultdict(lambda: ([], []))
    for at, role in roles:
        alike[role.pair, role.beside][role.is_x].append(at)
    found = [
        (len(beside), pair, x, y)
        for (pair, beside), (ys, xs) in alike.items()
        for x, y in product(xs[:MOST_ALIKE], ys[:MOST_ALIKE])
    ]
    taken: set[int] = set()
    pairs = []
    for _, _, x, y in sorted(found):
        if not {x, y} & taken:
            taken |= {x, y}
            pairs.append((x, y))
    return pairs


def holds_both(name: str) -> bool:
    """Whether the column `name` holds both coordinates by its name."""
    return plain(name) in _BOTH


def is_height(name: str, beside: Sequence[str] = ()) -> bool:
    """Whether the column `name` is the third coordinate of a pair whose names have the other words `beside`."""
    return plain(name) == "z" or (bool(beside) and _words(name) in [("z", *beside), (*beside, "z")])


def _may_stand_beside(pair: int, before: Sequence[str], after: Sequence[str]) -> bool:
    if NOT_PLACES & {*before, *after}:
        return False
    if pair >= _FIRST_SHORT:
        return SPOTS.issuperset((*before, *after))
    return UNITS.issuperset(after)


def _words(name: str) -> tuple[str, ...]:
    return tuple(_folded(word) for word in SPLIT.split(CAMEL.sub("_", name[:LONGEST])) if word)
