"""The open run reads a file of separated values like the program that reads it where no run is held open."""

import json
import random
import shutil
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

from service.engine.jailed import delimited
from service.engine.jailed.exits import Exit
from service.engine.jailed.places import Wanted
from service.engine.session import Session
from service.engine.session_csv import TYPES_OF_OURS, make_table
from service.errors import Rejection
from tests.integration.formats import readers
from tests.integration.formats.pipeline import Pipeline
from tests.support.converters import Converters

pytestmark = pytest.mark.skipif(shutil.which("cc") is None, reason="no C compiler")
FILES = 400
SEED = 7
CELLS = (
    "", "", " ", "1", "-1", "0", "007", "12345678901234567890", "-0", "+5", "1.5", "1,5", ".5", "-.5", "1.", "1e5",
    "1E5", "1E-5", "2e", "0.1e+10", "00.5", "1.5.2", " 7 ", "7\n", "n/a", "NaN", "inf", "x", "y", "lat", "lon", "wkt",
    "name", "Name", "na,me", "a;b", "a\tb", "a|b", 'a"b', '"', "a\nb", "2020-01-02", "2020/13/02", "2020-1-2",
    "2020-01-32", "2020-01-02T03:04", "2020/01-02 03:04:05.5Z", "2020-01-02T03:04:05+0200", "2020-01-02T03:04:05+2",
    "2020-01-02T29:59:69.", "POINT (1 2)", "point z (1 2 3)", "Point Street", "Pointer", "MULTIPOINT EMPTY",
    "LINESTRINGZM", "POLYGON_1", "MULTI", "multi point", "CURVEPOLYGON(", "Curve", "TIN", "tint", "MULTITIN",
    "1.234", "-12.345", "0529,090", "1e+400", "-1.8e+308", "1.7e+308", "1,5e0400", "3E0400", "1e400", "x1e+400",
    "1,234", "12,345.6", "-12,34", "0,123", "1234,567", "123456789012345", "1234567890123456", "-123456789012345678",
    "2024-02-29", "2023-02-29", "2024-04-31", "0000-00-00", "1900-02-29", "2024-01-02T24:00:00", "2024-01-02 23:59:60",
    "2024-01-02 03:04:05.123456", "2024-01-02T03:04:05.1230", "2024-01-02T03:04+05:30", "2024-01-02T03:04+05:17",
    "2024-01-02T03:04:05-15", "2024-01-02T03:04:05+5", "2024-01-02T03:04:05+05:", "sep=;",
    "TRIANGLEM ((0 0))", "GEOMETRYCOLLECTION Z", "0101000000000000000000F03F0000000000000040", "010100000000000000",
    '{"type": "Point", "coordinates": [1, 2]}', "{", "ä", "Ж", "日本", "50°30", "true", "e5", "-", "1-2", "m",
    " NULL", "#N/A", "\u2013", "k.a.", "5—7", "😀",
)  # fmt: skip
ODD = (
    "SRID=4326;POINT (1 2)",
    "PointZ (1 2 3)",
    "0101000020110F0000000000000000F03F0000000000000040",
    "002000000100000F113FF00000000000004000000000000000",
    "١٢",
    "1\u00a0",
    "\u00a0POINT (1 2)",
    "a\x0bb",
    "a\u2028b",
    "a\rb",
    "ends in\n",
    "POINTä",
    "a\0b",
    "\ufeffa",
    "-0.00123456789012345678",
)
"""What the open run does not judge."""


def texts() -> Iterator[str]:
    """Files with all kinds of cells, dialects and widths; deterministic."""
    chance = random.Random(SEED)
    for number in range(FILES):
        delimiter, end = chance.choice(",,;\t|"), chance.choice(("\n", "\n", "\r\n"))
        width, cells = chance.randint(1, 5), chance.sample(CELLS, 12)
        has_plain_header = chance.random() < 0.5
        rows = [[chance.choice(cells) for _ in range(width)] for _ in range(chance.randint(0, 6))]
        if has_plain_header:
            rows.insert(0, [chance.choice(("x", "y", "name", "wkt", "lat", "lon", "z", "")) for _ in range(width)])
        if rows and chance.random() < 0.3:
            chance.choice(rows).extend(chance.choices(cells, k=2))
        if chance.random() < 0.2:
            rows.insert(chance.randint(0, len(rows)), [])
        lines = [delimiter.join(_written(cell, chance) for cell in row) for row in rows]
        yield ("\ufeff" if number % 10 == 0 else "") + end.join(lines) + (end if chance.random() < 0.8 else "")


def _written(cell: str, chance: random.Random) -> str:
    """A cell, quoted or as it is, in which case it may become several."""
    return '"' + cell.replace('"', '""') + '"' if chance.random() < 0.4 else cell


Seen = tuple[object, bytes, bytes]
"""What a table is, the table of ours and its types."""


async def seen_both_ways(
    held: Session, directory: Path, other: Path, content: bytes, wanted: Wanted
) -> tuple[Seen | None, Seen | Exit]:
    """The results of the open run, or None if it leaves the file to the program, and of the program or its refusal."""
    for place in (directory, other):
        (place / "in.csv").write_bytes(content)
    table = await make_table(held, "in.csv", wanted, "")
    found = None if table is None else (plain(table), *written(directory))
    try:
        (told,) = delimited.main("in.csv", msgspec.json.encode(wanted).decode())
    except SystemExit as refusal:
        return found, Exit(int(str(refusal.code)))
    return found, (plain(told), *written(other))


def written(directory: Path) -> tuple[bytes, bytes]:
    return (directory / delimited.OURS).read_bytes(), (directory / TYPES_OF_OURS).read_bytes()


def plain(record: object) -> object:
    """A record after a round trip through JSON."""
    return msgspec.json.decode(msgspec.json.encode(record))


async def test_the_open_run_sees_what_the_program_sees(
    converters: Converters, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Columns, types, positions, names and the table itself, in files of every kind, many of which the run reads."""
    monkeypatch.chdir(tmp_path)
    seen = 0
    async with converters.open_run(("CSV",)) as (held, directory):
        for number, text in enumerate(texts()):
            if not text.strip("\ufeff\r\n"):
                continue
            wanted = Wanted(x="name", y="lat") if number % 7 == 0 else Wanted()
            found, expected = await seen_both_ways(held, directory, tmp_path, text.encode(), wanted)
            seen += found is not None
            assert found in (None, expected), text
    assert seen > FILES / 3


@pytest.mark.parametrize("cell", ODD)
async def test_what_it_cannot_judge_is_left_to_the_program(
    converters: Converters, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, cell: str
) -> None:
    """Unusual line ends, digits and letters of other scripts, and geometries that name their system."""
    monkeypatch.chdir(tmp_path)
    async with converters.open_run(("CSV",)) as (held, directory):
        content = f'x,y,name\n1,2,"{cell}"\n3,4,b\n'.encode()
        found, _ = await seen_both_ways(held, directory, tmp_path, content, Wanted())
    assert found is None


OPEN = {
    b'a,b\n1,"x\n2,y\n': ([["1", "x\n2,y"]], 1),
    b'a,b\r\n1,x\r\n2,"y': ([["1", "x"], ["2", "y"]], 2),
    b'a,b\n1,"x ""y""\n': ([["1", 'x "y"']], 1),
    b'a,b\n1,"x"\n2,"y"': ([["1", "x"], ["2", "y"]], 0),
    b'a,b\n1,"x\ny"\n': ([["1", "x\ny"]], 0),
}
"""Files, their rows without line ends at the end, and the row in which a text does not end."""


@pytest.mark.parametrize("content", OPEN)
async def test_a_quoted_text_that_does_not_end_is_told(either: Pipeline, tmp_path: Path, content: bytes) -> None:
    """The rows after its quotation mark became one cell without a warning."""
    (tmp_path / "a.csv").write_bytes(content)
    done = await either.to("GeoJson", tmp_path / "a.csv")
    rows, expected = OPEN[content]
    found = [json.loads(json.dumps(feature["properties"])) for feature in readers.geojson(done.path)]
    assert [[str(row["a"]), str(row["b"]).rstrip()] for row in found] == rows
    told = [text for text in done.output.warnings if "is not closed" in text]
    assert [f"in row {expected}, not counting" in text for text in told] == [True] * bool(expected)


@pytest.mark.parametrize("content", [b'a,"b\n1,x\n2,y\n', b'"a;b\n1;x\n'])
async def test_a_quoted_name_that_does_not_end_is_refused(either: Pipeline, tmp_path: Path, content: bytes) -> None:
    """The whole table became the name of a column, and the result had no row."""
    (tmp_path / "a.csv").write_bytes(content)
    with pytest.raises(Rejection, match="in the first row of the file is not closed"):
        await either.to("GeoJson", tmp_path / "a.csv")


@pytest.mark.parametrize("name", ["a,,b", "a\tb", "a|b,c"])
async def test_names_may_have_other_delimiters(either: Pipeline, tmp_path: Path, name: str) -> None:
    """The driver took them for the delimiter of the file, and found no coordinates."""
    (tmp_path / "a.csv").write_text(f'wkt;"{name}"\nPOINT (1 2);x\n', encoding="utf-8")
    done = await either.to("GeoJson", tmp_path / "a.csv", source_epsg=4326)
    (found,) = readers.geojson(done.path)
    assert (found["geometry"], found["properties"]) == ({"type": "Point", "coordinates": [1, 2]}, {name: "x"})


async def test_zero_bytes_in_texts_are_left_out_and_told(either: Pipeline, tmp_path: Path) -> None:
    """What follows them was lost without a warning."""
    (tmp_path / "a.csv").write_bytes(b"a,b\n1,x\n2,y\0z\0\n")
    done = await either.to("GeoJson", tmp_path / "a.csv")
    assert [feature["properties"] for feature in readers.geojson(done.path)] == [
        {"a": 1, "b": "x"},
        {"a": 2, "b": "yz"},
    ]
    assert sum("(2, first in line 3)" in text for text in done.output.warnings) == 1


MANY = ("a,b\n" + ";".join(["n"] * 2100) + ",c\n1,2\n", "".join(",".join([cell] * 2001) + "\n" for cell in "nb1"))
"""Files of which rows have more cells than are kept, with another delimiter or with their own."""


@pytest.mark.parametrize("text", MANY, ids=["another delimiter", "its own"])
async def test_a_row_of_many_cells_does_not_end_the_open_run(
    converters: Converters, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str
) -> None:
    """Cells beyond those that are kept were looked at while the delimiter was sought, and the run crashed."""
    monkeypatch.chdir(tmp_path)
    async with converters.open_run(("CSV",)) as (held, directory):
        for content, is_seen in ((text, False), ("a,b\n1,x\n", True)):
            found, _ = await seen_both_ways(held, directory, tmp_path, content.encode(), Wanted())
            assert (found is not None) == is_seen


QUOTED = {
    '"old" town': ("old town", True),
    '"a, b"c': ("a, bc", True),
    '"""old"" town"': ('"old" town', False),
    'a "b" c': ('a "b" c', False),
    '"a\nb"': ("a\nb", False),
    '"a" ': ("a ", False),
    '""': (None, False),
}


async def test_quotation_marks_before_the_end_of_a_cell_are_told(either: Pipeline, tmp_path: Path) -> None:
    """Drivers leave them out, without a word."""
    lines = [f"{cell},{number}" for number, cell in enumerate(QUOTED)]
    path = tmp_path / "a.csv"
    path.write_text("\n".join(["text,n", *lines, ""]))
    done = await either.to("GeoJson", path)
    read = [each["properties"]["text"] for each in json.loads(done.path.read_text())["features"]]
    assert read == [text for text, _ in QUOTED.values()]
    (told,) = (words for words in done.output.warnings if "only the beginning of cells" in words)
    assert "(2, first in row 1, not counting a header) were left out" in told
    kept = [line for line, (_, is_lost) in zip(lines, QUOTED.values(), strict=True) if not is_lost]
    path.write_text("\n".join(["text,n", *kept, ""]))
    assert not any(
        "only the beginning of cells" in words for words in (await either.to("GeoJson", path)).output.warnings
    )


STOOD_IN = {
    "n": ("5", "n/a", "", "7", " NULL "),
    "d": ("2024-01-02", "-", "2024-01-03", "", "\u2013"),
    "c": ("5,5", "#DIV/0!", "6,5", "k.a.", "7,25"),
}
UNITS = {
    "n": ("m", "5", "7", "9"),
    "name": ("long name", "a", "b", "c"),
    "d": ("date", "2024-01-02", "", "2024-01-02 03:04"),
}
NONE_STAND_IN = {
    "house": ("12", "12a", "-", "14"),
    "code": ("007", "n/a", "008", "9"),
    "word": ("-", "n/a", "x", ""),
    "none": ("-", "n/a", "", "NULL"),
    "number": ("5", "6", "", "7"),
    "first": ("7a", "5", "6", "8"),
    "endless": ("-Infinity", "5", "6", "8"),
    "n.a.": ("1.234", "n.a.", "1,5", "5"),
}


@pytest.mark.parametrize(
    ("columns", "told"),
    [
        (STOOD_IN, "(7 values of 'n', 'd', 'c')"),
        (UNITS, "(5 values of 'n', 'd')"),
        (NONE_STAND_IN, ""),
        ({"endless": ("-Infinity", "5", "6"), "name": ("a", "b", "c")}, ""),
    ],
)
async def test_texts_that_make_texts_of_numbers_are_told(
    either: Pipeline, tmp_path: Path, columns: dict[str, tuple[str, ...]], told: str
) -> None:
    """Those that say that a value is missing, and units below the header; codes and house numbers are texts anyway."""
    path = tmp_path / "a.csv"
    path.write_text("\n".join(map(";".join, [tuple(columns), *zip(*columns.values(), strict=True), ()])))
    for content in (
        path.read_text(),
        path.read_text().replace("name", "na\ufeffme"),
    ):  # which the open run does not read
        path.write_text(content)
        done = await either.to("GeoJson", path)
        words = [words for words in done.output.warnings if "turned the numbers" in words]
        assert [told in words for words in words] == [True] * bool(told)


SPLIT_OTHERWISE = {
    "id^x^y\n1^2.5^3\n4^5^6\n": "carets (^)",
    "a~b\nx~y\n": "tildes (~)",
    "id:x:y\n1:2:3\n4:5:6\n": "colons",
    "id  x y n\n1 2  3 a\n4 5 6 b\n": "blanks",
    "2.5 3 4\n5 6 7\n": "blanks",
    "ID    Name\n1     San Jose\n22    Rome\n": "blanks",
    **dict.fromkeys(
        (
            "time\n10:30:00\n11:30:00\n",
            "10:30:00\n11:30:00\n",
            "full name\nSan Jose\nLos Angeles\n",
            "street number\nMain 12\nHigh 4\n",
            "one two three\nred green blue\n",
            "a^b\nx\n",
            "id^x,n\n1^2,3\n",
            "n\n",
        )
    ),
}


@pytest.mark.parametrize("text", SPLIT_OTHERWISE)
async def test_a_single_column_that_something_else_separates_is_told(
    either: Pipeline, tmp_path: Path, text: str
) -> None:
    """Each row would be one text; words, times and addresses have such characters too."""
    path = tmp_path / "a.csv"
    path.write_text(text)
    done = await either.to("GeoJson", path)
    found = [told for told in done.output.warnings if "a single column" in told]
    by = SPLIT_OTHERWISE[text]
    assert [f"although {by} separate parts of each row" in told for told in found] == [True] * bool(by)


@pytest.mark.parametrize("separator", ",;\t|")
async def test_rows_of_separators_alone_are_told(either: Pipeline, tmp_path: Path, separator: str) -> None:
    """Spreadsheet programs write them for empty rows; empty lines are no rows, single columns have no separators."""
    path = tmp_path / "a.csv"
    path.write_text("n,m\n1,2\n\n,\n3,\n,,\n".replace(",", separator))
    done = await either.to("GeoJson", path)
    assert len(json.loads(done.path.read_text())["features"]) == 4
    (told,) = (words for words in done.output.warnings if "separators" in words)
    assert told.startswith("Rows of separators alone (2, first in row 2, not counting a header) became features")
    for silent in ('n\n1\n""\n3\n', f"n{separator}m\n1{separator}2\n\n{separator}4\n\n"):
        path.write_text(silent)
        assert not any("separators" in words for words in (await either.to("GeoJson", path)).output.warnings)
