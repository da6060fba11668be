"""What a result in KML, GPX, GML, XLSX, ODS, TAB or CSV holds is counted in its bytes as its driver would count it."""

import shutil
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import pytest

from sandbox.command import Command, Limits
from sandbox.verdict import Verdict
from service.engine.environment import MEMORY_DRIVERS, converter_environment
from service.engine.rereading import Counted, CountedColumn, CountedLayer
from service.engine.session import Session
from service.formats.format import Reread, writing_of
from service.formats.registry import find_output
from tests.integration.formats.pipeline import Json, feature, geometry, write_geojson
from tests.integration.formats.samples import point
from tests.support.converters import Converters

pytestmark = pytest.mark.skipif(shutil.which("cc") is None, reason="no C compiler")
LINE, HIGH_LINE = geometry("LineString", [[0, 0], [1, 1]]), geometry("LineString", [[0, 0, 5], [1, 1, 6]])
RINGS = [[[0, 0], [4, 0], [4, 4], [0, 0]], [[1, 0.5], [2, 0.5], [2, 1], [1, 0.5]]]
AREAS = geometry("MultiPolygon", [RINGS, [[[9, 9], [8, 9], [8, 8], [9, 9]]]])
PLAIN = [point(1, 2, name="a", n=1, v=-0.5), point(3, 4, name=None, n=None, v=2.5e300)]
CONTENTS: Mapping[str, list[Json]] = {
    "points": PLAIN,
    "without geometry": [*PLAIN, feature(None, name="c", n=3)],
    "long names": [point(1, 2, **{"n" * 100: "x", "m" * 70 + "é": 1, "k" * 64: "ü" * 300, "k" * 63: 1.5})] * 2,
    "no geometry at all": [feature(None, name="c", n=3)],
    "no features": [],
    "heights": [point(1, 2, 3, a="x"), feature(HIGH_LINE, a="y")],
    "lines": [feature(LINE, a=1), feature(geometry("MultiLineString", [[[0, 0], [1, 1]], [[2, 2], [3, 3]]]), a=2)],
    "areas": [feature(AREAS, a=1), feature(geometry("Polygon", RINGS), a=2)],
    "collections": [feature({"type": "GeometryCollection", "geometries": [point(1, 2)["geometry"], LINE]}, a=1)],
    "empty texts": [point(1, 2, name="", description="", a="", b="0", c=" 1")],
    "texts": [point(1, 2, name="<b>&amp;</b>\n", description="ü" * 3000, a="1" * 70 + "?", b="]]>", Placemark="wpt")],
    "long digits": [point(1, 2, a="1" * 70)],
    "empty columns": [point(1, 2, a=None, b=1), point(1, 2, a=None, b=None)],
    "columns that come later": [point(1, 2, **{f"c{n}": n for n in range(at, 90, 7)}) for at in range(5)],
    "many": [point(n % 90, 1, name="ü" * (n % 61), v=n / 7) for n in range(4000)],
    "empty rows": [point(1, 2, a=None, b="x"), *[point(1, 2, a=None, b=None)] * 3, point(1, 2, a=5, b=None)],
    "empty rows at the end": [point(1, 2, a=1, b="x"), point(1, 2, a=None, b=None)],
    "types": [
        point(1, 2, d="2020-01-02", t="2020-01-02T03:04:05Z", o=True, n=2**53, r=1e-7, s="1e3", m="1"),
        point(1, 2, d=None, t=None, o=False, n=-7, r=-1.5, s="12", m="x"),
    ],
    "times": [point(1, 2, timestamp="2020-01-02T03:04:05Z", begin="2020-01-02T00:00:00Z", end=None)],
}
SOURCES = ("in.geojson", "two.gpkg")
LISTS = {
    "lists": [point(1, 2, a=[1, 2], b=["x"]), point(1, 2, a=[3], b=["y", "z"])],
}
BY_DRIVER = {
    ("Gml", "lists", "in.geojson"),
    *(("Ods", name, source) for name in ("empty rows at the end", "empty columns") for source in SOURCES),
}
"""What the text alone does not show, or the driver reads in part."""


def numbers_of(layer: CountedLayer) -> tuple[object, ...]:
    """What is compared with a plan: elevations only of what has places."""
    return layer.features, layer.geometries, layer.has_z and layer.geometries > 0, layer.has_m


def columns_of(layer: CountedLayer) -> dict[str, CountedColumn]:
    return {name.casefold(): column for name, column in (layer.columns or {}).items()}


async def count_both_ways(
    converters: Converters, how: Reread, written: Path
) -> tuple[Sequence[CountedLayer], Sequence[CountedLayer]]:
    """By the text, and by the driver, which finds the columns only of the latter."""
    host, directory = converters.engine.capabilities, written.parent
    if host.spare_for(how.drivers):
        pytest.skip("a program of ours takes the place of the driver")
    by_driver = directory / f"by_driver{written.suffix.upper()}"
    shutil.copy(written, by_driver)
    environment = converter_environment(host, (*how.drivers, *MEMORY_DRIVERS), how.environment)
    async with Session(converters.run, (), {}) as held:
        held.begin(host.ogr2ogr, directory, environment, Limits())
        asked = [
            await held.ask(Counted, "count", name, most_cells, *how.drivers, "", *how.options, "")
            for name, most_cells in ((written.name, "0"), (by_driver.name, "300000"))
        ]
    assert all(counted.ok for counted in asked)
    return asked[0].layers, asked[1].layers


def reread_of(output: str) -> Reread:
    how = writing_of(find_output(output)).reread
    assert how is not None
    return how


@pytest.mark.parametrize("name", CONTENTS)
async def test_kml_is_counted_as_by_its_driver(converters: Converters, name: str) -> None:
    """Its layers and their columns of data, in a file of one and of two layers."""
    directory = converters.new_directory()
    options = ("-f", "KML", "-mapFieldType", "DateTime=String", "-dsco", "AltitudeMode=absolute")
    write_geojson(directory / "in.geojson", CONTENTS[name])
    assert await converters.ogr2ogr(directory, *options, "out.kml", "in.geojson", "-nln", "a b")
    write_geojson(directory / "other.geojson", PLAIN)
    await converters.ogr2ogr(directory, "-f", "GPKG", "two.gpkg", "in.geojson", "-nln", "first")
    await converters.ogr2ogr(directory, "-f", "GPKG", "-update", "two.gpkg", "other.geojson", "-nln", "ünï <2>")
    assert await converters.ogr2ogr(directory, *options, "two.kml", "two.gpkg")
    for written in ("out.kml", "two.kml"):
        ours, drivers = await count_both_ways(converters, reread_of("Kml"), directory / written)
        by_name = {layer.name: layer for layer in ours}
        for layer in drivers:
            assert numbers_of(by_name[layer.name]) == numbers_of(layer)
            found, expected = columns_of(by_name[layer.name]), columns_of(layer)
            assert {
                column: expected.get(column) for column in found if column not in ("timestamp", "begin", "end")
            } == {column: told for column, told in found.items() if column not in ("timestamp", "begin", "end")}
        assert {layer.name for layer in ours if layer.features} <= {layer.name for layer in drivers}


@pytest.mark.parametrize("name", [name for name in CONTENTS if name not in {"areas", "collections"}])
async def test_gpx_is_counted_as_by_its_driver(converters: Converters, name: str) -> None:
    """All of its layers together, apart from the points of routes and tracks."""
    directory = converters.new_directory()
    write_geojson(directory / "in.geojson", CONTENTS[name])
    options = ("-f", "GPX", "-dsco", "GPX_USE_EXTENSIONS=YES", "-lco", "FORCE_GPX_TRACK=YES", "-skipfailures")
    await converters.ogr2ogr(directory, *options, "out.gpx", "in.geojson")
    (ours,), drivers = await count_both_ways(converters, reread_of("Gpx"), directory / "out.gpx")
    layers = [layer for layer in drivers if not layer.name.endswith("_points")]
    assert (ours.features, ours.geometries) == (
        sum(layer.features for layer in layers),
        sum(layer.geometries for layer in layers),
    )
    assert ours.has_z == any(layer.has_z and layer.geometries for layer in layers)
    assert ours.columns is None


@pytest.mark.parametrize(
    ("output", "name"),
    [
        (output, name)
        for output in ("Gml", "Xlsx", "Ods")
        for name in (*CONTENTS, *LISTS)
        if (output, name) != ("Gml", "long digits")  # a number of 64 bits to its driver
    ],
)
async def test_what_has_columns_is_counted_as_by_its_driver(converters: Converters, output: str, name: str) -> None:
    """In a file of one and of two layers, with all columns but those that the driver makes itself."""
    writing, directory = writing_of(find_output(output)), converters.new_directory()
    write_geojson(directory / "in.geojson", {**CONTENTS, **LISTS}[name])
    write_geojson(directory / "other.geojson", PLAIN)
    await converters.ogr2ogr(directory, "-f", "GPKG", "two.gpkg", "in.geojson", "-nln", "first")
    await converters.ogr2ogr(directory, "-f", "GPKG", "-update", "two.gpkg", "other.geojson", "-nln", "ünï 2 & 3")
    for source in SOURCES:
        written = directory / f"of_{source}{writing.extension}"
        assert await converters.ogr2ogr(directory, "-f", writing.driver, *writing.options, written.name, source)
        ours, drivers = await count_both_ways(converters, reread_of(output), written)
        by_name = {layer.name: layer for layer in ours}
        assert {layer.name for layer in ours if layer.features} <= {layer.name for layer in drivers}
        for expected in drivers:
            found, columns = by_name[expected.name], columns_of(expected)
            assert numbers_of(found) == numbers_of(expected)
            assert (found.columns is None) == ((output, name, source) in BY_DRIVER)
            columns.pop("gml_id", None)
            assert columns_of(found) == columns or not found.features or found.columns is None


@pytest.mark.parametrize(
    ("name", "places"),
    [
        (name, places)
        for name in (*CONTENTS, *LISTS)
        for places in ("AS_WKT", "AS_XY", "AS_XYZ", "")
        if name != "no features" and (name, places[:-1]) not in {("collections", "AS_X"), ("collections", "AS_XY")}
    ],
)
async def test_csv_is_counted_as_by_its_driver(converters: Converters, name: str, places: str) -> None:
    """With all columns, unless it has collections, or one without a name, as some releases write beside one."""
    directory = converters.new_directory()
    write_geojson(directory / "in.geojson", {**CONTENTS, **LISTS}[name])
    options = ("-lco", "STRING_QUOTING=IF_NEEDED", *(("-lco", f"GEOMETRY={places}") if places else ()))
    assert await converters.ogr2ogr(directory, "-f", "CSV", *options, "out.csv", "in.geojson")
    first, *others = (directory / "out.csv").read_text().partition("\n")[0].split(",")
    is_left = not others or "" in others or (name == "collections" and first == "WKT")
    (ours,), (driver,) = await count_both_ways(converters, reread_of("Csv"), directory / "out.csv")
    assert numbers_of(ours) == numbers_of(driver)
    assert (ours.columns is None) == is_left
    assert columns_of(ours) == columns_of(driver) or ours.columns is None


AREA = b'"POLYGON ((0 0,1 0,1 1,0 0))",1'


@pytest.mark.parametrize(
    ("rows", "is_left"),
    [
        (b"a,b\n1,2\n", False),
        (b'a,b\n1,"x, ""y""\nz"\n,', False),
        (b"X,Y,a\n1,2,3\n,,\n", False),
        (b"WKT,a\n" + AREA + b"\n,2\n", False),
        (b'WKT,a\n"MULTIPOINT ZM ((1 2 3 4),(-1 2.5 1E+20 4))",1\nLINESTRING M (1 2 3),2', False),
        (b"", True),
        (b"a\n1\n", True),
        (b"a,\n1,\n", True),
        (b"a,a\n1,2\n", True),
        (b"a,b\n1\n", True),
        (b"a,b\n1,2,3\n", True),
        (b"a,b\n\n1,2\n", True),
        (b'a,b\n1,x"y\n', True),
        (b'a,b\n1,"x"y\n', True),
        (b'a,b\n1,2\n1,"x\n', True),
        (b"a,b\n1,x\0y\n", True),
        (b"a,b\n1," + b"x" * (1 << 20) + b"\n", True),
        (b"a,x,y\n1,2,3\n", True),
        (b"a,_WKTb\n1,2\n", True),
        (b"X,a\n1,2\n", True),
        (b"WKT,a\nPOINT EMPTY,1\n", True),
        (b"WKT,a\nPOINT (1),1\n", True),
        (b"WKT,a\nPOINT Z (1 2),1\n", True),
        (b"WKT,a\nPOINT (1 2,1\n", True),
        (b"WKT,a\nPOINT (1 2)),1\n", True),
        (b"WKT,a\nPOINT (a b),1\n", True),
        (b"WKT,a\n" + AREA.replace(b"POLYGON", b"LINESTRING") + b"\n", True),
        (b"WKT,a\n" + AREA.replace(b"POLYGON", b"POLYGONS") + b"\n", True),
        (b"WKT,a\n" + AREA.replace(b",1 0", b",(1 0)") + b"\n", True),
        (b"WKT,a\n" + AREA.replace(b"((", b"(1 1,(") + b"\n", True),
        (b'WKT,a\n"CIRCULARSTRING (0 0,1 1,2 0)",1\n', True),
    ],
)
async def test_csv_that_we_would_not_write_is_left_to_its_driver(
    converters: Converters, rows: bytes, is_left: bool
) -> None:
    """Of the rest, it counts the same as we do."""
    how, host, directory = reread_of("Csv"), converters.engine.capabilities, converters.new_directory()
    environment = converter_environment(host, (*how.drivers, *MEMORY_DRIVERS), how.environment)
    async with Session(converters.run, (), {}) as held:
        held.begin(host.ogr2ogr, directory, environment, Limits())
        told = []
        for name, most_cells in (("a.csv", "0"), ("by_driver.CSV", "300000")):
            (directory / name).write_bytes(rows)
            told.append(await held.ask(Counted, "count", name, most_cells, *how.drivers, "", *how.options, ""))
    assert told[0].ok == told[1].ok
    for ours, driver in zip(told[0].layers, told[1].layers, strict=True):
        assert numbers_of(ours) == numbers_of(driver)
        assert (ours.columns is None) == is_left
        assert columns_of(ours) == columns_of(driver) or is_left


async def write_tab(converters: Converters, features: list[Json]) -> Path:
    """A table of MapInfo, and its definition once more under a name by which the driver counts it."""
    writing, directory = writing_of(find_output("MapInfo")), converters.new_directory()
    write_geojson(directory / "in.geojson", features)
    assert await converters.ogr2ogr(
        directory, "-f", writing.driver, *writing.options, "out.tab", "in.geojson", "-nln", "out"
    )
    shutil.copy(directory / "out.tab", directory / "out.TAB")
    return directory / "out.tab"


async def count_tab(converters: Converters, path: Path, most_values: int) -> list[list[tuple[object, ...]]]:
    """By its bytes, unless a driver must count so many values, and by its driver; values are not compared."""
    how, host = reread_of("MapInfo"), converters.engine.capabilities
    environment = converter_environment(host, (*how.drivers, *MEMORY_DRIVERS), how.environment)
    async with Session(converters.run, (), {}) as held:
        held.begin(host.ogr2ogr, path.parent, environment, Limits())
        asked = [
            await held.ask(Counted, "count", name, most, *how.drivers, "", *how.options, "")
            for name, most in ((path.name, str(most_values)), ("out.TAB", "300000"))
        ]
    return [[(layer.name, numbers_of(layer), *columns_of(layer)) for layer in counted.layers] for counted in asked]


@pytest.mark.parametrize("name", [name for name in CONTENTS if name not in {"collections", "no features"}])
async def test_a_table_of_mapinfo_is_counted_as_by_its_driver(converters: Converters, name: str) -> None:
    """Its features, those with a geometry, and the names of its columns, unless these are in other letters."""
    ours, drivers = await count_tab(converters, await write_tab(converters, CONTENTS[name]), 0)
    assert ours == drivers


DAMAGE: Mapping[str, tuple[str, Callable[[bytes], bytes]]] = {
    "rows are cut off": (".dat", lambda rows: rows[:-9]),
    "a row is deleted": (".dat", lambda rows: rows[: 32 + 3 * 32 + 1] + b"*" + rows[32 + 3 * 32 + 2 :]),
    "a row has no object": (".id", lambda places: bytes(4) + places[4:]),
    "a row has the object of another": (".id", lambda places: places[4:8] + places[4:]),
    "an object is elsewhere": (".id", lambda places: (1 << 20).to_bytes(4, "little") + places[4:]),
    "places are cut off": (".id", lambda places: places[:-4]),
    "there are no places": (".id", lambda _: b""),
    "objects are cut off": (".map", lambda objects: objects[:-512]),
    "a column is not defined": (".tab", lambda text: text.replace(b"Fields 3", b"Fields 2")),
    "a definition ends early": (".tab", lambda text: text[: text.index(b" v ") + 2]),
}
"""What is done to a table, in which of its files."""


@pytest.mark.parametrize("damage", DAMAGE)
async def test_a_damaged_table_of_mapinfo_is_left_to_its_driver(converters: Converters, damage: str) -> None:
    """It counts what it can read, if it can open the table at all."""
    path = await write_tab(converters, [point(n, 2, name="a", n=n, v=0.5) for n in range(50)])
    extension, spoil = DAMAGE[damage]
    damaged = path.with_suffix(extension)
    damaged.write_bytes(spoil(damaged.read_bytes()))
    shutil.copy(path, path.with_suffix(".TAB"))
    ours, drivers = await count_tab(converters, path, 300_000)
    assert ours == drivers


@pytest.mark.parametrize(
    "text",
    [
        b"<kml><Document><Folder><name>a</name><Placemark></Folder></Document></kml>",
        b"<kml><Document><Folder><name>a</name><Folder><name>b</name><Placemark/></Folder></Folder></Document></kml>",
        b"<kml><Document><name>a</name><Placemark/></Document></kml>",
        b"<kml><Document><Folder><Placemark/></Folder></Document></kml>",
        b"<kml><Document><Folder><name>" + b"a" * 2000 + b"</name><Placemark/></Folder></Document></kml>",
        b"<kml>" + b"<Document>" * 40 + b"</Document>" * 40 + b"</kml>",
        b"<kml><Document><Folder><name>a</name><Placemark><name><b>c</b></name></Placemark></Folder></Document></kml>",
        b"\xff" * 64,
        b"",
    ],
)
async def test_kml_that_we_would_not_write_is_left_to_its_driver(converters: Converters, text: bytes) -> None:
    """And nothing of what was counted before that is told."""
    how, host, directory = reread_of("Kml"), converters.engine.capabilities, converters.new_directory()
    if host.spare_for(how.drivers):
        pytest.skip("a program of ours takes the place of the driver")
    (directory / "a.kml").write_bytes(text)
    (directory / "by_driver").write_bytes(text)
    environment = converter_environment(host, (*how.drivers, *MEMORY_DRIVERS), how.environment)
    async with Session(converters.run, (), {}) as held:
        held.begin(host.ogr2ogr, directory, environment, Limits())
        told = [
            await held.ask(Counted, "count", name, "300000", *how.drivers, "", "") for name in ("a.kml", "by_driver")
        ]
    assert told[0].layers == told[1].layers
    assert told[0].ok == told[1].ok


async def test_counting_a_large_kml_takes_little_memory(converters: Converters) -> None:
    """The driver would keep the whole document as objects: 90 MB of GeoJSON to KML took 1.4 GB."""
    how, host, directory, peaks = (
        reread_of("Kml"),
        converters.engine.capabilities,
        converters.new_directory(),
        list[int](),
    )
    if host.spare_for(how.drivers):
        pytest.skip("a program of ours takes the place of the driver")
    write_geojson(directory / "in.geojson", [point(1, 2, name="a", n=1)] * 30_000)
    assert await converters.ogr2ogr(directory, "-f", "KML", "out.kml", "in.geojson")
    (directory / "small.kml").write_text("<kml/>")

    async def run(command: Command) -> Verdict:
        verdict = await converters.run(command)
        peaks.append(verdict.peak_memory_bytes)
        return verdict

    environment = converter_environment(host, (*how.drivers, *MEMORY_DRIVERS), how.environment)
    for name in ("small.kml", "out.kml"):
        async with Session(run, (), {}) as held:
            held.begin(host.ogr2ogr, directory, environment, Limits())
            await held.ask(Counted, "count", name, "300000", *how.drivers, "", "")
    assert peaks[1] - peaks[0] < 8 << 20


GML_HEAD = b'<?xml version="1.0" encoding="utf-8" ?>\n<ogr:FeatureCollection xmlns:ogr="o" xmlns:gml="g">'
GML_END = b"</ogr:FeatureCollection>"
FEATURE = (
    b"<ogr:featureMember><ogr:in><ogr:geom><gml:Point><gml:pos>1 2</gml:pos></gml:Point></ogr:geom><ogr:a>1</ogr:a>"
    b"</ogr:in></ogr:featureMember>"
)


async def count_gml(converters: Converters, texts: Sequence[bytes]) -> list[Counted]:
    """What the session tells of each text, with columns only if it is not the driver that counts."""
    how, host, directory = reread_of("Gml"), converters.engine.capabilities, converters.new_directory()
    environment = converter_environment(host, (*how.drivers, *MEMORY_DRIVERS), how.environment)
    async with Session(converters.run, (), {}) as held:
        held.begin(host.ogr2ogr, directory, environment, Limits())
        told = []
        for number, text in enumerate(texts):
            (directory / f"{number}.gml").write_bytes(text)
            told.append(await held.ask(Counted, "count", f"{number}.gml", "0", *how.drivers, "", *how.options, ""))
        return told


def is_counted(told: Counted) -> bool:
    return told.ok and all(layer.columns is not None for layer in told.layers)


async def test_xml_is_counted_only_if_it_is_well_formed(converters: Converters) -> None:
    """Others are all beginnings of such a text, and texts with one mistake each, or with what we do not write."""
    right = [
        GML_HEAD + FEATURE + GML_END,
        GML_HEAD + FEATURE.replace(b"<ogr:a>1", b"<ogr:a>&#xfc;&amp;&#8364;\xc3\xbc\n") + GML_END + b"\n",
        (GML_HEAD + FEATURE + GML_END).replace(b"<ogr:a>", b"<ogr:a  b = 'x>' >").replace(b" = ", b"="),
        GML_HEAD + FEATURE * 5000 + GML_END,
        GML_HEAD + FEATURE.replace(b">1 2<", b">1 2" + b" " * 300_000 + b"<") + GML_END,
    ]
    mistakes = [
        (b"<ogr:a>1", b"<ogr:a>" + wrong)
        for wrong in (
            *(b"&b;", b"&", b"& ", b"&#0;", b"&#xD800;", b"&#x110000;", b"&#;", b"&amp", b"<", b"<>", b"</>", b"< b>"),
            *(b"\x00", b"\x01", b"\x0b", b"\xff", b"\xc3", b"\xc0\x80", b"<!-- b -->", b"<![CDATA[b]]>", b"<?b c?>"),
            *(b"<b/>", b"<gml:b>", b"</ogr:b><ogr:b>", b"</ogr:a></ogr:a>", b"<gml:b c=d/>", b"<gml:b c='d\"/>"),
            *(
                b"<gml:b c='<'/>",
                b"<gml:b c/>",
                b"<gml:b c='d'e='f'/>",
                b"<gml:b c='&f;'/>",
                b"<gml:1/>".replace(b"gml:", b""),
            ),
            b"<gml:b c='" + b"d" * 200_000 + b"'/>",
        )
    ]
    wrong = [
        *((GML_HEAD + FEATURE + GML_END)[:size] for size in range(len(GML_HEAD + FEATURE + GML_END))),
        *((GML_HEAD + FEATURE + GML_END).replace(*mistake) for mistake in mistakes),
        GML_HEAD + FEATURE + GML_END + GML_END,
        GML_HEAD + FEATURE + GML_END + b"<b/>",
        GML_HEAD + FEATURE + GML_END + b"b",
        GML_HEAD.replace(b"utf-8", b"iso-8859-1") + FEATURE + GML_END,
        GML_HEAD.replace(b"<ogr:F", b"<!DOCTYPE b><ogr:F") + FEATURE + GML_END,
        GML_HEAD + FEATURE + b"<b>" * 2000 + b"</b>" * 2000 + GML_END,
        GML_HEAD + FEATURE.replace(b"1 2", b"1 b") + GML_END,
        GML_HEAD + FEATURE.replace(b"1 2", b"1") + GML_END,
        GML_HEAD + FEATURE.replace(b"1 2", b"1 2 3 4") + GML_END,
        GML_HEAD + FEATURE.replace(b"ogr:", b"other:") + GML_END,
    ]
    assert list(map(is_counted, await count_gml(converters, right))) == [True] * len(right)
    counted = await count_gml(converters, wrong)
    assert [text for text, told in zip(wrong, counted, strict=True) if told.layers and is_counted(told)] == []
