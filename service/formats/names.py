"""Names of layers, files and columns in an output.

Names come from untrusted files. The names made here are safe as file names, as layer names and, under the rules that
require it, as XML names.
"""

import re
import unicodedata
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import lru_cache
from itertools import count
from operator import itemgetter
from xml.parsers import expat

from service.formats.dbf_names import clip, numbered, written_names
from service.formats.format import ColumnRule

STEM_BYTES = 60
DEFAULT_STEM = "data"
XML_NAME_BYTES = 200
LONGEST = 300
"""How many characters of a name are normalized, more than any rule keeps: thousands of accents take milliseconds."""
NAMELESS = "field"
NOT_IN_CELL = re.compile(r"[\x00-\x1f\"\ufffe\uffff]")
MAPINFO_NAME = 31
GEODATABASE_NAME = 62
"""Two less than the maximum, because a suffix may be added to a reserved name."""
NOT_IN_GEODATABASE = re.compile(r"\W")
NOT_IN_STEM = re.compile(r"[^\w.\-]+")
NOT_IN_XML = re.compile(r"[^\w.\-]")
NOT_IN_MAPINFO = re.compile(r"[^A-Za-z0-9_]")
XML_RESERVED = re.compile(r"^(xml)", re.IGNORECASE)
EDGES = "._- "
SHOWN = 60
LISTED = 20


def stem_of(untrusted_name: str) -> str:
    """A safe stem for output names, from the client's file name or a layer's name: letters, digits, `_`, `-`, `.`."""
    base = untrusted_name.replace("\\", "/").rstrip("/").rpartition("/")[2]
    return safe_name(base[: base.rfind(".")] if "." in base[1:] else base)


def safe_name(untrusted_name: str) -> str:
    """`untrusted_name` with everything but letters, digits, `_`, `-` and `.` replaced, at most 60 bytes."""
    text = untrusted_name[:LONGEST].encode("utf-8", "replace").decode()
    name = NOT_IN_STEM.sub("_", unicodedata.normalize("NFC", text))
    return clip(name.strip(EDGES), STEM_BYTES).strip(EDGES) or DEFAULT_STEM


def unique(names: Sequence[str], limit_bytes: int = XML_NAME_BYTES) -> tuple[str, ...]:
    """`names` made distinct without regard to case, by a number at the end."""
    return numbered(names, limit_bytes, 2)


def shown(untrusted_text: str) -> str:
    """`untrusted_text` as messages show it: printable, on one line, shortened."""
    text = untrusted_text
    if not text.isprintable():
        text = "".join(character if character.isprintable() else "?" for character in text)
    return text if len(text) <= SHOWN else f"{text[:SHOWN]}…"


def listed(items: Sequence[str], most: int = LISTED) -> str:
    """`items` with commas, and how many more there are than `most`."""
    more = f" and {len(items) - most} more" if len(items) > most else ""
    return ", ".join(items[:most]) + more


def quotes(untrusted_names: Iterable[str]) -> list[str]:
    """`untrusted_names` as messages show them, each once, in quotation marks."""
    return [repr(shown(name)) for name in dict.fromkeys(untrusted_names)]


def counted(count: int, noun: str) -> str:
    """How many there are of something, as in: 1 row, 2,500 rows."""
    return f"1 {noun}" if count == 1 else f"{count:,} {noun}s"


def values_of(counts: Mapping[str, int], most: int = LISTED) -> str:
    """How many values there are of which columns; `most` names at most."""
    return f"{counted(sum(counts.values()), 'value')} of {listed(quotes(counts), most)}"


def first_of(layers: Iterable[tuple[str, Iterable[int]]]) -> str:
    """The sentence about the first feature of a kind, of the first layer that has one; "" if none is known.

    Each layer comes with the numbers of its features, from 1; 0 if they are not known.
    """
    known = [(name, min(filter(None, numbers), default=0)) for name, numbers in layers]
    name, first = next(filter(itemgetter(1), known), ("", 0))
    where = f" of {shown(name)!r}" if len(known) > 1 else ""
    return f" The first is feature {first:,}{where}." if first else ""


def xml_name(name: str) -> str:
    """`name` turned into the name of an XML element without a prefix."""
    cleaned = NOT_IN_XML.sub("_", unicodedata.normalize("NFC", name[:LONGEST]))
    starts_well = cleaned[:1].isalpha() or cleaned.startswith("_")
    return clip(XML_RESERVED.sub(r"_\1", cleaned if starts_well else f"_{cleaned}"), XML_NAME_BYTES)


def element_name(name: str) -> str:
    """As `xml_name`, of characters that parsers of XML 1.0 know in names: many know none since Unicode 2, nor `²`."""
    cleaned = NOT_IN_XML.sub("_", unicodedata.normalize("NFC", name[:LONGEST]))
    made = xml_name("".join(map(_for_elements, cleaned)))
    return made if _is_element(made[:1]) else clip(f"_{made}", XML_NAME_BYTES)


@lru_cache(maxsize=4096)
def _for_elements(character: str) -> str:
    """`character`, or what resembles it, as in t for ț, if no name of an element may have it."""
    if character.isascii() or _is_element(f"_{character}"):
        return character
    parts = filter(str.isalnum, unicodedata.normalize("NFKD", character))
    return "".join(part for part in parts if _is_element(f"_{part}")) or "_"


def _is_element(name: str) -> bool:
    try:
        expat.ParserCreate().Parse(f"<{name}/>", True)
    except expat.ExpatError:
        return False
    return True


def column_names(rule: ColumnRule, names: Sequence[str], reserved: Sequence[str] = ()) -> tuple[str, ...]:
    """The written name of each column of `names` under `rule`, in the same order.

    Args:
        rule: what the target allows.
        names: the columns of one dataset.
        reserved: names that the target uses itself.
    """
    written = _RULES[rule](names)
    blocked = set(map(str.casefold, reserved))
    if blocked.isdisjoint(map(str.casefold, written)):
        return written
    return unique([f"{name}_" if name.casefold() in blocked else name for name in written])


def free_name(candidates: Sequence[str], taken: Sequence[str]) -> str:
    """The first of `candidates` that is not among the columns `taken`, or a numbered one."""
    used = set(map(str.casefold, taken))
    numbered = (f"{candidates[0]}_{number}" for number in range(1, len(used) + 2))
    return next(name for name in (*candidates, *numbered) if name.casefold() not in used)


def _as_they_are(names: Sequence[str]) -> tuple[str, ...]:
    return unique([name or NAMELESS for name in names]) if "" in names else tuple(names)


def _member_names(names: Sequence[str]) -> tuple[str, ...]:
    """Names as the converter writes them: a number follows names that differ from others only in the case of ASCII."""
    keys = [name.encode("utf-8", "replace").upper() for name in names]
    used, seen, following, written = set(keys), set[bytes](), dict[bytes, int](), list[str]()
    if len(used) == len(keys):
        return tuple(names)
    for name, key in zip(names, keys, strict=True):
        number = next(number for number in count(following.get(key, 2)) if b"%s%d" % (key, number) not in used)
        is_taken = key in seen
        written.append(f"{name}{number}" if is_taken else name)
        following[key] = number + is_taken
        seen.add(key)
        used.add(b"%s%d" % (key, number) if is_taken else key)
    return tuple(written)


def _cell_names(names: Sequence[str]) -> tuple[str, ...]:
    cleaned = [NOT_IN_CELL.sub("_", name).strip(" ") or NAMELESS for name in names]
    return tuple(names) if cleaned == list(names) else unique(cleaned)


def _gml_names(names: Sequence[str]) -> tuple[str, ...]:
    """Names of elements as the driver of GML writes them: without the hyphens that XML allows."""
    return unique([element_name(name).replace("-", "_") for name in names])


def _mapinfo_name(name: str) -> str:
    plain = unicodedata.normalize("NFKD", name[:LONGEST])
    without_marks = "".join(character for character in plain if not unicodedata.combining(character))
    cleaned = NOT_IN_MAPINFO.sub("_", without_marks) or "field"
    return f"_{cleaned}"[:MAPINFO_NAME] if cleaned[0].isdigit() else cleaned[:MAPINFO_NAME]


def _geodatabase_names(names: Sequence[str]) -> tuple[str, ...]:
    """Letters of any language, digits and `_`; at most 64, and no digit first."""
    cleaned = [NOT_IN_GEODATABASE.sub("_", unicodedata.normalize("NFC", name[:LONGEST])) or NAMELESS for name in names]
    started = [f"_{name}" if name[0].isdigit() else name for name in cleaned]
    return unique([name[:GEODATABASE_NAME] for name in started], GEODATABASE_NAME)


_RULES: Mapping[ColumnRule, Callable[[Sequence[str]], tuple[str, ...]]] = {
    ColumnRule.ANY: _as_they_are,
    ColumnRule.MEMBER: _member_names,
    ColumnRule.CASED_MEMBER: tuple,
    ColumnRule.CELL: _cell_names,
    ColumnRule.XML: lambda names: unique(list(map(xml_name, names))),
    ColumnRule.ELEMENT: lambda names: unique(list(map(element_name, names))),
    ColumnRule.GML: _gml_names,
    ColumnRule.DBF: written_names,
    ColumnRule.MAPINFO: lambda names: unique(list(map(_mapinfo_name, names)), MAPINFO_NAME),
    ColumnRule.GEODATABASE: _geodatabase_names,
}
