"""CSV files of every kind."""

from pathlib import Path

import pytest

from service.engine.jailed import delimited
from service.engine.jailed.exits import Exit


@pytest.fixture(autouse=True)
def in_own_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def made(content: bytes) -> tuple[str, list[str], str]:
    """The table's first line, its types and the place of its positions."""
    Path("in.csv").write_bytes(content)
    (table,) = delimited.main("in.csv")
    types = [name.strip('"') for name in Path("t0.csvt").read_text().split(",")]
    return Path("t0.csv").read_text(encoding="utf-8"), types, table.places


@pytest.mark.parametrize(
    ("header", "places", "renamed"),
    [
        ("name,lon,lat", "xy", "name,__x,__y"),
        ("name,Longitude,LATITUDE", "xy", "name,__x,__y"),
        ("name,X,Y", "xy", "name,__x,__y"),
        ("name,Easting,Northing", "xy", "name,__x,__y"),
        ("name,x_coord,y_coord", "xy", "name,__x,__y"),
        ("name,a,b", "", "name,a,b"),
        ("name,lon,n", "", "name,lon,n"),
    ],
)
def test_coordinate_columns_are_found_by_name(header: str, places: str, renamed: str) -> None:
    """In any case and spelling; a single one is data."""
    text, _, kind = made(f"{header}\na,13.4,52.5\nb,13.5,\n".encode())
    assert (kind, text.splitlines()[0]) == (places, renamed)


@pytest.mark.parametrize(
    "value", ["POINT (1 2)", "SRID=4326;POLYGON((0 0,1 0,1 1,0 0))", "0101000000000000000000F03F0000000000000040"]
)
def test_a_column_of_geometry_is_found_by_its_values(value: str) -> None:
    """WKT or hexadecimal WKB, whatever its name."""
    text, types, kind = made(f'name,place\na,"{value}"\nb,\n'.encode())
    assert (kind, text.splitlines()[0], types[1]) == ("wkt", "name,__wkt", "String")


@pytest.mark.parametrize(
    ("first", "second", "is_header"),
    [
        ("country,2019,2020", "DE,5,7", True),
        ("2030,2020,2010,country", "1.5,,2,DE", True),
        ("country,2019,2020", "DE,,", False),
        ("country,2019,2020", "DE,many,7", False),
        ("country,2019,5", "DE,5,7", False),
        ("country,2019", "DE,5", False),
        ("built in,1850,1993", "sold in,12,7", False),
        ("1850,1851", "5,7", False),
        ("a,1850,1851", "b,1900,1902", False),
    ],
)
def test_years_in_turn_above_other_numbers_are_names(first: str, second: str, *, is_header: bool) -> None:
    """A first row with other numbers is data, and the service says so if it could be a header."""
    text = made(f"{first}\n{second}\n".encode())[0]
    assert (text.splitlines()[0] == first) is is_header
    (table,) = delimited.main("in.csv")
    assert table.lacks_names is (not is_header and any(map(str.isalpha, first)))


def test_other_text_called_geom_hides_no_coordinates() -> None:
    """The values decide."""
    text, _, kind = made(b"geom,x,y\nhill,1,2\n")
    assert (kind, text.splitlines()[0]) == ("xy", "geom,__x,__y")


def test_types_come_from_all_rows() -> None:
    """Codes keep their zeros, long numbers their digits, and one odd value turns a column into text."""
    header = b"zip,n,big,r,day,at,mixed\n"
    first = b"00501,1,123456789012345678901,1.5,2024-02-29,2024-02-29T01:02:03Z,1\n"
    second = b"10001,-2,1,2,2024-03-01,2024/03/01 00:00:00+01,x\n"
    assert made(header + first + second)[1] == ["String", "Integer64", "String", "Real", "Date", "DateTime", "String"]


@pytest.mark.parametrize(
    ("values", "kind"),
    [
        (("2024-02-29", "2024-03-01"), "Date"),
        (("2024-01-02", "0000-00-00"), "String"),
        (("2024-01-02", "2023-02-29"), "String"),
        (("2024-01-02 03:04:05", "2024-01-02 24:00:00"), "String"),
        (("2024-01-02 03:04:05", "2024-01-02 23:59:60"), "String"),
        (("2024-01-02 03:04:05+05:30", "2024-01-02"), "DateTime"),
        (("2024-01-02 03:04:05+05:17",), "String"),
        (("999999999999999", "1.5"), "Real"),
        (("123456789012345678", "1"), "Integer64"),
        (("123456789012345678", "1.5"), "String"),
        (("1e5", "1.5"), "Real"),
        (("1e5",), "String"),
        (("12e3", "7"), "String"),
        (("1E5", "1.5"), "Real"),
        (("1E+5", "7"), "Real"),
        (("1E5", "123"), "String"),
        (("e5", "e6"), "String"),
        (("២០២៤-០១-០២",), "String"),
        (("1.៥", "-.៥"), "String"),
    ],
)
def test_a_type_changes_no_value(values: tuple[str, ...], kind: str) -> None:
    """Days and hours that do not exist would be lost, long numbers beside decimals digits, and codes an E."""
    rows = "".join(f"{value},a\n" for value in values)
    assert made(f"value,other\n{rows}".encode())[1] == [kind, "String"]


@pytest.mark.parametrize(
    ("delimiter", "values", "kind"),
    [
        (",", ("1,234", "56,789"), "String"),
        ("\t", ("1,234", "987"), "String"),
        ("\t", ("1,234", "9,87"), "Real"),
        (";", ("1,234", "987"), "Real"),
        (",", ("1,5", "2,25"), "Real"),
    ],
)
def test_a_comma_before_three_digits_may_separate_thousands(delimiter: str, values: tuple[str, ...], kind: str) -> None:
    """Unless the file shows that its decimals have commas, the text is kept."""
    rows = "".join(f'"{value}"{delimiter}a\n' for value in values)
    assert made(f"value{delimiter}other\n{rows}".encode())[1] == [kind, "String"]


@pytest.mark.parametrize(
    ("values", "other", "kind"),
    [
        (("1.234", "-12.345"), "5,6", "String"),
        (("1.234", "7"), "5,6", "String"),
        (("1.234", "5,6"), "a", "String"),
        (("1.234", "1.5"), "5,6", "Real"),
        (("1.234", "12.345"), "a", "Real"),
        (("0.234", "12.345"), "5,6", "Real"),
        (("1.234", "12.345"), "1.112,5", "String"),
        (("1.234", "12.345"), "192.168.100.200", "Real"),
        (("1,234", "12,345"), "1,112.5", "String"),
        (("1,234", "12,345"), " +1,112.5 ", "String"),
        (("1,234", "12,345"), "a", "Real"),
    ],
)
def test_a_point_before_three_digits_may_separate_thousands(values: tuple[str, ...], other: str, kind: str) -> None:
    """If other numbers of a file with semicolons have decimal commas, the text is kept; the other way round as well."""
    rows = "".join(f"{value};{other}\n" for value in values)
    assert made(f"value;other\n{rows}".encode())[1][0] == kind


@pytest.mark.parametrize("delimiter", [",", "\t", "|"])
@pytest.mark.parametrize("cell", ["0529,090", "529,090", " 529,090", "+529,090 ", "-529,090"])
def test_coordinates_with_such_commas_are_refused(delimiter: str, cell: str) -> None:
    """Read as decimals, they would be elsewhere."""
    rows = [["name", "easting", "northing"], ["a", f'"{cell}"', "179645"], ["b", "?", "179646"]]
    with pytest.raises(SystemExit) as left:
        made("\n".join(map(delimiter.join, rows)).encode())
    assert left.value.code == Exit.AMBIGUOUS_COMMAS


@pytest.mark.parametrize("number", ["1.112,5", "-1.112.113,5", " 1.112,5 "])
def test_a_number_among_texts_shows_what_separates_thousands(number: str) -> None:
    assert made(f"value;other\n1.234;n/a\n12.345;{number}\n".encode())[1] == ["String", "String"]


@pytest.mark.parametrize("height", ["1,5", "4,500", "1.004,5"])
@pytest.mark.parametrize("cell", ["0529.090", "529.090", " 529.090", "+529.090 ", "-529.090"])
def test_coordinates_with_points_beside_decimal_commas_are_refused(cell: str, height: str) -> None:
    """A table with semicolons and decimal commas may separate thousands by points."""
    with pytest.raises(SystemExit) as left:
        made(f"easting;northing;height\n?;179645;2\n{cell};179646;{height}\n".encode())
    assert left.value.code == Exit.AMBIGUOUS_POINTS


@pytest.mark.parametrize("rows", ["13.405;52.125;a", "13.405;52.125;1.5", "13.4;52.125;1,5\n13.405;52.1;2"])
def test_clear_points_in_coordinates_are_decimal(rows: str) -> None:
    """No commas, or other cells of the column, show it."""
    assert made(f"lon;lat;c\n{rows}\n".encode())[2] == "xy"


def test_clear_commas_in_coordinates_are_decimal() -> None:
    """The delimiter, or other cells, show it."""
    assert made(b"name;easting;northing\na;529,090;179,645\n")[2] == "xy"
    assert made(b'name,lon,lat\na,"13,4","52,125"\nb,"13,405","52,5"\n')[2] == "xy"


@pytest.mark.parametrize("line", [b"sep=;\r\n", b'"sep=;"\n', b"SEP=;\n"])
def test_a_first_line_may_declare_the_delimiter(line: bytes) -> None:
    """It is no part of the table; without delimiters in its rows, nothing else would show it."""
    text, types, kind = made(line + b"name;x;y\na,b;1;2\n")
    assert (text, types, kind) == ("name;__x;__y\na,b;1;2\n", ["String", "Real", "Real"], "xy")


@pytest.mark.parametrize("delimiter", [",", ";", "\t", "|"])
def test_every_delimiter(delimiter: str) -> None:
    """Even one that the converter does not know, and delimiters inside quotes."""
    text, types, kind = made(
        delimiter.join(['"a,b;c"', "x", "y"]).encode() + b"\n" + delimiter.join(["q", "1", "2"]).encode()
    )
    assert (kind, types) == ("xy", ["String", "Real", "Real"])
    assert text.splitlines()[1] in {delimiter.join(["q", "1", "2"]), "q,1,2"}


@pytest.mark.parametrize(
    ("encoding", "start"), [("utf-8", b""), ("utf-8", b"\xef\xbb\xbf"), ("cp1252", b""), ("utf-16", b"")]
)
def test_every_encoding_becomes_utf8(encoding: str, start: bytes) -> None:
    """Windows' encoding if it is not UTF-8."""
    text, _, _ = made(start + "Straße,x,y\nKöln,1,2\n".encode(encoding))
    assert text == "Straße,__x,__y\nKöln,1,2\n"


def test_a_file_without_a_header_gets_one() -> None:
    """Numbers are not names."""
    assert made(b"1,2.5\n3,4.5\n")[0].splitlines() == ["field_1,field_2", "1,2.5", "3,4.5"]


@pytest.mark.parametrize(
    "value", ["POINT (1 2)", "SRID=4326;POINT Z(1 2 3)", "MULTIPOLYGON EMPTY", "point zm (1 2 3 4)"]
)
def test_geometry_is_no_name_either(value: str) -> None:
    """The first row of a file of geometries is a feature."""
    text, _, kind = made(f'"{value}"\n"POINT (3 4)"\n'.encode())
    assert (kind, text.splitlines()[:2]) == ("wkt", ["__wkt,", f"{value.removeprefix('SRID=4326;')},"])


@pytest.mark.parametrize("name", ["Point", "POLYGON", "multipoint", "triangle", "point name", "Tin (kg)", "Point (1)"])
def test_names_may_begin_like_geometry(name: str) -> None:
    """Or be geometry words themselves."""
    assert made(f"{name},n\na,1\n".encode())[0].splitlines()[0] == f"{name},n"


def test_a_single_column_is_a_table() -> None:
    """Its rows are kept, beside an empty column without which the driver would not see a table."""
    assert made(b"name\na\nb\n")[0].splitlines() == ["name,", "a,", "b,"]


def test_line_breaks_inside_quotes_survive() -> None:
    """In the rows; in the header, the driver would take them for its end."""
    text, _, _ = made(b'"two\nlines",x,y\n"a\nb",1,2\n')
    assert text == 'two lines,__x,__y\n"a\nb",1,2\n'


@pytest.mark.parametrize("ending", ["\x1a", "\r\n\x1a", "\r\n\x1a\r\n"])
def test_the_mark_of_dos_at_the_end_of_a_file_is_no_row(ending: str) -> None:
    """It would be another one, and make texts of numbers."""
    text, types, _ = made(f"id,n\r\na,1\r\nb\x1a,2{ending}".encode())
    assert (text.splitlines(), types) == (["id,n", "a,1", "b\x1a,2"], ["String", "Integer64"])


def test_an_empty_table_is_refused() -> None:
    """Through the exit code."""
    with pytest.raises(SystemExit):
        made(b"\n")
