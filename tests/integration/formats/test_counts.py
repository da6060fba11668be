"""What is counted in the bytes or the columns of a result is what its driver reads in its features."""

import shutil
from collections.abc import Mapping
from pathlib import Path

import msgspec
import pytest

from service.engine.rereading import Counted, CountedLayer, Tallied
from service.engine.session import Session
from service.formats.verify import VerifiedColumn, VerifiedLayer
from tests.support.converters import Converters

pytestmark = pytest.mark.skipif(shutil.which("cc") is None, reason="no C compiler")
DRIVERS = ("ESRI Shapefile", "FlatGeobuf", "GPKG")
PLAIN = 'place;name;n;v;day;code\n"{}";a;1;0.5;2020-01-02;007\n;;;-1e300;;* \n"{}";ä  ;-20;1e-5;2021-12-31;"""0"""\n'
NO_GEOMETRY = ";"
"""How a row without geometry begins; FlatGeobuf has none."""
IN_SHAPEFILE: Mapping[str, tuple[str, str]] = {
    "points": ("POINT (1 2)", "POINT (3 4)"),
    "lines": ("LINESTRING (1 2,3 4)", "MULTILINESTRING ((1 2,3 4),(5 6,7 8))"),
    "areas": ("POLYGON ((0 0,0 1,1 1,0 0))", "POLYGON ((0 0,0 9,9 9,0 0),(1 2,1 3,2 3,1 2))"),
    "many points": ("MULTIPOINT (1 2,3 4)", "MULTIPOINT (5 6)"),
    "measures": ("LINESTRING M (1 2 3,4 5 6)", "LINESTRING M (1 2 3,4 5 6)"),
    "only tables": ("", ""),
}
IN_SPACE = ("POINT Z (1 2 3)", "POINT Z (4 5 6)")
IN_FLATGEOBUF: Mapping[str, tuple[str, str]] = {
    **{name: geometries for name, geometries in IN_SHAPEFILE.items() if all(geometries)},
    "in space": IN_SPACE,
    "measures in space": ("POINT ZM (1 2 3 4)", "POINT (1 2)"),
    "mixed": ("POINT (1 2)", "MULTIPOLYGON (((0 0,0 1,1 1,0 0)))"),
    "collections": ("GEOMETRYCOLLECTION (POINT (1 2))", "MULTIPOINT (1 2,3 4)"),
    "curves": ("CIRCULARSTRING (0 0,1 1,2 0)", "CURVEPOLYGON (CIRCULARSTRING (0 0,2 2,4 0,2 -2,0 0))"),
}


TYPES = {"measures": "LINESTRINGM", "measures in space": "POINTZM", "in space": "POINTZ", "curves": "GEOMETRY"}
"""The types of layers that FlatGeobuf has to be told."""


async def write(
    converters: Converters, geometries: tuple[str, str], path: Path, driver: str, *more: str, skipped: str = ""
) -> None:
    """Three rows with two geometries, but those that begin with `skipped`, by ogr2ogr; next to a table of them."""
    table = path.with_suffix(".csv")
    rows = PLAIN.format(*geometries).splitlines()
    table.write_text("\n".join(row for row in rows if not skipped or not row.startswith(skipped)))
    options: tuple[str, ...] = (
        "-oo",
        "GEOM_POSSIBLE_NAMES=place",
        "-oo",
        "KEEP_GEOM_COLUMNS=NO",
        "-oo",
        "AUTODETECT_TYPE=YES",
    )
    options += ("-oo", "SEPARATOR=SEMICOLON", "-oo", "EMPTY_STRING_AS_NULL=YES", "-a_srs", "EPSG:4326", "-nln", "it")
    assert await converters.ogr2ogr(path.parent, "-f", driver, *options, *more, path.name, table.name)


def parts(shapefile: Path) -> list[Path]:
    """The files of a Shapefile, as far as it has them."""
    return [path for path in (shapefile.with_suffix(f".{part}") for part in ("shp", "shx", "dbf")) if path.exists()]


async def count(held: Session, name: str, driver: str, most_cells: int = 1000) -> CountedLayer:
    """The only layer of a file."""
    counted = await held.ask(Counted, "count", name, str(most_cells), driver, "", "")
    assert counted.ok
    return msgspec.structs.replace(counted.layers[0], name="")


async def test_a_shapefile_is_counted_in_its_bytes(converters: Converters) -> None:
    """As its driver counts, which alone looks at files with extensions in capitals; values in any number."""
    written = converters.new_directory()
    for number, geometries in enumerate(IN_SHAPEFILE.values()):
        await write(converters, geometries, written / f"in{number}.shp", "ESRI Shapefile")
    async with converters.open_run(DRIVERS) as (held, directory):
        for number, name in enumerate(IN_SHAPEFILE):
            for part in parts(written / f"in{number}.shp"):
                shutil.copy(part, directory)
                shutil.copy(part, directory / f"capital{number}{part.suffix.upper()}")
            is_table = not (directory / f"in{number}.shp").exists()
            ending = ".dbf" if is_table else ".shp"
            by_driver = await count(held, f"capital{number}{ending.upper()}", "ESRI Shapefile")
            counted = await count(held, f"in{number}{ending}", "ESRI Shapefile", 1000 if is_table else 0)
            assert counted == by_driver, name


async def test_a_shapefile_with_something_unexpected_is_left_to_its_driver(converters: Converters) -> None:
    """Which counts the values of small tables only, and refuses what is no Shapefile."""
    written, contents = converters.new_directory(), {"elevations": IN_SPACE, "deleted": IN_SHAPEFILE["points"]}
    for name, geometries in contents.items():
        await write(converters, geometries, written / f"{name}.shp", "ESRI Shapefile")
    async with converters.open_run(DRIVERS) as (held, directory):
        for name in contents:
            for part in parts(written / f"{name}.shp"):
                shutil.copy(part, directory)
        table = directory / "deleted.dbf"
        content = bytearray(table.read_bytes())
        content[int.from_bytes(content[8:10], "little")] = ord("*")
        table.write_bytes(content)
        assert (await count(held, "elevations.shp", "ESRI Shapefile", 0)).columns is None
        assert (await count(held, "elevations.shp", "ESRI Shapefile")).has_z
        assert (await count(held, "deleted.shp", "ESRI Shapefile")).features == len(PLAIN.splitlines()) - 2
        shapes = directory / "elevations.shp"
        shapes.write_bytes(shapes.read_bytes()[:40])
        assert not (await held.ask(Counted, "count", "elevations.shp", "0", "ESRI Shapefile", "", "")).ok


async def test_flatgeobuf_is_counted_in_its_columns(converters: Converters) -> None:
    """As features of the same content are counted; values in any number."""
    written = converters.new_directory()
    for number, (name, geometries) in enumerate(IN_FLATGEOBUF.items()):
        kind = ("-select", "name,n,v,code", *(("-nlt", TYPES[name]) if name in TYPES else ()))
        for extension, driver in {".fgb": "FlatGeobuf", ".gpkg": "GPKG"}.items():
            path = written / f"in{number}{extension}"
            await write(converters, geometries, path, driver, *kind, skipped=NO_GEOMETRY)
    async with converters.open_run(DRIVERS) as (held, directory):
        for number, name in enumerate(IN_FLATGEOBUF):
            for extension in (".fgb", ".gpkg"):
                shutil.copy(written / f"in{number}{extension}", directory)
            by_features = await count(held, f"in{number}.gpkg", "GPKG")
            most_cells = 1000 if name.startswith("measures") else 0  # its columns have no measures
            assert await count(held, f"in{number}.fgb", "FlatGeobuf", most_cells) == by_features, name


async def test_times_of_a_flatgeobuf_are_left_to_features(converters: Converters) -> None:
    """Its columns hold times that the driver cannot read as a value; of booleans neither adds up any."""
    rows = "x,y,at,yes\n1,2,12:34:56,1\n3,4,,0\n"
    written = converters.new_directory()
    (written / "in.csv").write_text(rows)
    (written / "in.csvt").write_text("Real,Real,Time,Integer(Boolean)")
    options = ["-oo", "X_POSSIBLE_NAMES=x", "-oo", "Y_POSSIBLE_NAMES=y", "-f", "FlatGeobuf"]
    assert await converters.ogr2ogr(written, *options, "times.fgb", "in.csv")
    assert await converters.ogr2ogr(written, *options, "-select", "yes", "flags.fgb", "in.csv")
    async with converters.open_run(DRIVERS) as (held, directory):
        for name in ("times.fgb", "flags.fgb"):
            shutil.copy(written / name, directory)
        assert (await count(held, "times.fgb", "FlatGeobuf", 0)).columns is None
        times, flags = [await count(held, f"{name}.fgb", "FlatGeobuf") for name in ("times", "flags")]
        assert times.columns is not None
        assert flags.columns == {"yes": times.columns["yes"]}


ODD_SHAPES: Mapping[str, tuple[str, int, bytes]] = {
    "a number": ("dbf", 0, b"oops"),
    "the points of a line": ("shp", 40, b"\x03"),
    "the parts of a line": ("shp", 36, b"\x02"),
}
"""What is changed in the first record: the file, where, and into what."""


@pytest.mark.parametrize("name", ODD_SHAPES)
async def test_a_record_that_contradicts_itself_is_left_to_its_driver(converters: Converters, name: str) -> None:
    """Which counts the values of small tables only."""
    written = converters.new_directory()
    await write(converters, IN_SHAPEFILE["lines"], written / "in.shp", "ESRI Shapefile")
    extension, at, odd = ODD_SHAPES[name]
    changed = written / f"in.{extension}"
    content = bytearray(changed.read_bytes())
    start = content.index(b"0.5") if extension == "dbf" else 100 + 8
    content[start + at : start + at + len(odd)] = odd
    changed.write_bytes(content)
    async with converters.open_run(DRIVERS) as (held, directory):
        for part in parts(written / "in.shp"):
            shutil.copy(part, directory)
        assert (await count(held, "in.shp", "ESRI Shapefile", 0)).columns is None


async def test_an_empty_flatgeobuf_is_counted(converters: Converters) -> None:
    """Some versions of its driver never stop handing over batches without a row."""
    written = converters.new_directory()
    await write(converters, IN_FLATGEOBUF["points"], written / "in.fgb", "FlatGeobuf", "-where", "n > 1000")
    async with converters.open_run(DRIVERS) as (held, directory):
        shutil.copy(written / "in.fgb", directory)
        counted = await count(held, "in.fgb", "FlatGeobuf")
        assert (counted.features, counted.geometries) == (0, 0)


PIECE = '{"type":"Feature","properties":{"name":"%s","n":%d},"geometry":{"type":"Point","coordinates":[1,2]}}'
ODD_TEXTS: Mapping[str, bytes] = {
    "zero": b"a\0",
    "escaped zero": b"a\\\0",
    "control": b"a\x1f",
    "no UTF-8": b"a\xff",
    "cut off": b"\xc3",
    "open": b'a"b',
    "escaped end": b"a\\",
}


@pytest.mark.parametrize("name", ODD_TEXTS)
@pytest.mark.parametrize("rows", [1, 8, 30_000])
async def test_texts_of_geojson_are_checked_wherever_they_are(converters: Converters, name: str, rows: int) -> None:
    """A sequence with a text that is none is left to another program; without it, all is counted."""
    lines = [(PIECE % (f'{n}ü\\\\ \\"' if n % 5 else f"{n}", n)).encode() for n in range(rows)]
    odd = (PIECE % ("TEXT", 0)).encode().replace(b"TEXT", ODD_TEXTS[name])
    async with converters.open_run(DRIVERS) as (held, directory):
        (directory / "whole").write_bytes(b"\n".join(lines))
        (directory / "odd").write_bytes(b"\n".join([*lines, odd, *lines]))
        found = await held.ask(Tallied, "tally", "whole")
        columns = {"name": VerifiedColumn(rows), "n": VerifiedColumn(rows)}
        assert (found.ok, found.layer) == (
            True,
            VerifiedLayer(features=rows, geometries=rows, has_z=False, columns=columns),
        )
        assert not (await held.ask(Tallied, "tally", "odd")).ok


WHOLE_LINES = ("POINT (1 2)", "POINT EMPTY", "POLYGON Z ((0 0 1,1 1 1,0 1 1,0 0 1),(0 0 1,1 1 1,0 1 1,0 0 1))")
CUT_LINES = ("POINT", "LINESTR", "POINT (1 2", "POLYGON ((0 0,1 1,0 1,0 0)", "MULTIPOINT (1 2,EMPTY", "EMPTY", "")


async def test_a_line_of_wkt_that_is_cut_is_no_geometry(converters: Converters) -> None:
    """Also one that ends before its first bracket, or behind one of several."""
    async with converters.open_run(()) as (held, directory):
        (directory / "whole").write_text("\n".join([*WHOLE_LINES, "GEOMETRYCOLLECTION EMPTY"]))
        found = await held.ask(Tallied, "tally_lines", "whole")
        assert (found.ok, found.layer) == (True, VerifiedLayer(features=4, geometries=3, has_z=True, has_m=False))
        for number, line in enumerate(CUT_LINES):
            (directory / f"cut{number}").write_text(f"{WHOLE_LINES[0]}\n{line}\n")
            assert not (await held.ask(Tallied, "tally_lines", f"cut{number}")).ok, line
