"""Entities of DXF that its driver leaves out."""

from pathlib import Path

import pytest

from service.errors import Rejection
from tests.integration.formats import readers
from tests.integration.formats.pipeline import Pipeline

LINE = "0\nLINE\n8\n0\n10\n1\n20\n2\n11\n3\n21\n4\n"
NUMBERS = "71\n1\n72\n0\n73\n0\n74\n1\n"
STYLES = f"0\nSECTION\n2\nTABLES\n0\nTABLE\n2\nDIMSTYLE\n0\nDIMSTYLE\n2\na\n{NUMBERS}0\nENDTAB\n0\nENDSEC\n"
"""Numbers of texts of dimensions, which are like those of splines."""
DRAWN = STYLES + "0\nSECTION\n2\nENTITIES\n{}0\nENDSEC\n0\nEOF\n"
SKIPPED = (
    "RAY",
    "XLINE",
    "MESH",
    "REGION",
    "3DSOLID",
    "BODY",
    "SURFACE",
    "IMAGE",
    "MPOLYGON",
    "PDFUNDERLAY",
)
ENDLESS = "0\n{}\n8\n0\n10\n1\n20\n2\n11\n1\n21\n0\n"
SPLINE = (
    "0\nSPLINE\n8\n0\n100\nAcDbSpline\n70\n8\n71\n3\n72\n0\n73\n0\n74\n2\n11\n0\n21\n0\n31\n0\n11\n1\n21\n1\n31\n0\n"
)
MESH = "0\nPOLYLINE\n8\n0\n100\nAcDbPolygonMesh\n66\n1\n70\n16\n71\n2\n72\n2\n0\nSEQEND\n8\n0\n"
BLOCK = "0\nSECTION\n2\nBLOCKS\n0\nBLOCK\n8\n0\n2\n{0}\n10\n0\n20\n0\n" + LINE + "0\nENDBLK\n8\n0\n0\nENDSEC\n"
INSERT = "  0\nINSERT\n  8\nINSERT\n 62\n     2\n  2\n{}\n 10\n1\n 20\n2\n"
READ = {
    "SOLID": "0\nSOLID\n8\n0\n10\n0\n20\n0\n11\n1\n21\n0\n12\n0\n22\n1\n13\n1\n23\n1\n",
    "TEXT": "0\nTEXT\n8\nRAY\n10\n1\n20\n2\n40\n1\n1\nMESH\n",
}


def write(path: Path, entities: str, newline: str = "\n") -> Path:
    """A drawing of `entities`, and of a line."""
    path.write_text(DRAWN.format(entities + LINE), newline=newline)
    return path


@pytest.mark.parametrize("newline", ["\n", "\r\n"])
@pytest.mark.parametrize(
    ("entities", "told"),
    [
        ("".join(map(ENDLESS.format, SKIPPED)), f"Entities that cannot be read ({len(SKIPPED)}) were left out"),
        (MESH, "Entities that cannot be read (1) were left out"),
        (SPLINE, "Splines without control points (1) were left out"),
    ],
)
async def test_entities_that_are_left_out_are_counted(
    pipeline: Pipeline, tmp_path: Path, entities: str, told: str, newline: str
) -> None:
    """Only the line arrives, and a warning says how many other entities there were."""
    done = await pipeline.to("GeoJson", write(tmp_path / "a.dxf", entities, newline), source_epsg=4326)
    assert len(readers.geojson(done.path)) == 1
    (warning,) = done.source.warnings
    assert warning.startswith(told)


@pytest.mark.parametrize("group", [70, 71])
async def test_blocks_that_are_inserted_in_no_rows_or_columns_are_read_or_refused_with_a_remedy(
    either: Pipeline, tmp_path: Path, group: int
) -> None:
    """GDAL before 3.10 refuses the drawing, which was called damaged; others insert the block once."""
    inserted = DRAWN.removeprefix(STYLES).format(INSERT.format("a") + f"{group}\n0\n" + LINE)
    (tmp_path / "a.dxf").write_text(STYLES + BLOCK.format("a") + inserted)
    features, told = 0, ""
    try:
        features = len(readers.geojson((await either.to("GeoJson", tmp_path / "a.dxf", source_epsg=4326)).path))
    except Rejection as rejection:
        told = str(rejection)
    assert features == 2 or "inserted in 0 rows or columns (70 and 71 of INSERT). Make these 1" in told


ARCS = "0\nLWPOLYLINE\n8\n0\n90\n{0}\n70\n0\n{1}0\nPOLYLINE\n8\n0\n66\n1\n70\n0\n{2}0\nSEQEND\n8\n0\n"
SCALED = "0\nINSERT\n8\n0\n2\na\n10\n1\n20\n2\n{}42\n2.5\n"
WEIGHTS = "94\n2\n73\n1\n74\n0\n95\n6\n96\n3\n" + "40\n0\n" * 6 + "10\n0.5\n20\n1\n42\n1.5\n" * 3
ELLIPTIC = "72\n3\n10\n0\n20\n0\n11\n2\n21\n0\n40\n0.5\n50\n0\n51\n360\n73\n1\n"
HATCH = f"0\nHATCH\n8\n0\n10\n0\n20\n0\n30\n0\n2\nSOLID\n70\n1\n71\n0\n91\n1\n92\n1\n93\n1\n72\n4\n{WEIGHTS}97\n0\n"
INSERTED = SCALED.format("41\n2\n") + SCALED.format("")
OTHERS = (
    INSERTED
    + HATCH
    + ENDLESS.format("POINT")
    + "0\nMTEXT\n8\n0\n10\n0\n20\n0\n30\n0\n40\n1\n41\n9\n1\na\n42\n7.5\n43\n1\n"
)


@pytest.mark.parametrize("newline", ["\n", "\r\n"])
@pytest.mark.parametrize(
    ("bulge", "is_told"),
    [("1.0", False), ("1.0000001", False), ("-3", False), ("2.5e-1", False), ("1.5", True), ("12", True)],
)
async def test_arcs_of_which_the_driver_may_lose_a_part_are_told(
    pipeline: Pipeline, tmp_path: Path, bulge: str, newline: str, *, is_told: bool
) -> None:
    """It ends those of more than half a circle early, in directions that depend on its release."""
    points = [(0, 0), (0, -2), (0, -4)]
    light = "".join(f"10\n{x}\n20\n{y}\n40\n0.0\n41\n0.0\n42\n{bulge}\n" for x, y in points)
    heavy = "".join(f"0\nVERTEX\n8\n0\n10\n{x}\n20\n{y}\n30\n0\n42\n  {bulge}\n" for x, y in points)
    path = write(tmp_path / "a.dxf", OTHERS + ARCS.format(len(points), light, heavy), newline)
    done = await pipeline.to("GeoJson", path, source_epsg=4326)
    told = [
        text for text in done.output.warnings if text.startswith("Arcs of more than half a circle in polylines and")
    ]
    assert [f"({2 * len(points)}) may have lost a part" in text for text in told] == [True] * is_told


def spline(*elevations: str) -> str:
    """A spline whose control points have such elevations."""
    knots = "".join(f"40\n{knot}\n" for knot in (0, 0, 0, 0, 1, 1, 1, 1))
    points = "".join(f"10\n{at}\n20\n{at % 2}\n30\n{z}\n" for at, z in enumerate(elevations))
    head = "0\nSPLINE\n8\n30\n100\nAcDbSpline\n210\n0\n220\n0\n230\n1\n70\n8\n71\n3\n72\n8\n73\n4\n74\n0\n"
    return f"{head}{knots}{points}"


@pytest.mark.parametrize("newline", ["\n", "\r\n"])
@pytest.mark.parametrize("count", [0, 1, 2])
async def test_elevations_of_splines_are_read_or_told(
    pipeline: Pipeline, tmp_path: Path, newline: str, count: int
) -> None:
    """They are told of releases whose driver leaves them out, and if any is not 0."""
    level = spline("0", "0.0", "-0.0", "0.00E+00") + LINE.replace("20\n2", "20\n2\n30\n5")
    raised = spline("0.0", "0.0", "1.5", "-2")
    done = await pipeline.to("GeoPackage", write(tmp_path / "a.dxf", level + raised * count, newline), source_epsg=4326)
    told = [warning for warning in done.output.warnings if warning.startswith(f"Elevations of splines ({count})")]
    curves = [row for row in readers.geopackage(done.path)["a"] if "Spline" in str(row["SubClasses"])]
    raised_in_result = sum(bytes(row["geom"])[3] & 0x0E == 0x04 for row in curves)  # type: ignore[call-overload]  # a blob
    assert len(curves) == 1 + count
    assert (len(told) == 1) == (count > 0 and not raised_in_result)


async def test_a_wipeout_is_read_or_told(pipeline: Pipeline, tmp_path: Path) -> None:
    """Since GDAL 3.11, its driver reads it."""
    done = await pipeline.to("GeoJson", write(tmp_path / "a.dxf", ENDLESS.format("WIPEOUT")), source_epsg=4326)
    told = [text for text in done.output.warnings if text.startswith("Wipeouts (1), which hide what lies below them")]
    assert len(readers.geojson(done.path)) + len(told) == 1 + 1


@pytest.mark.parametrize("kind", READ)
async def test_entities_that_are_read_are_not_reported(pipeline: Pipeline, tmp_path: Path, kind: str) -> None:
    """Neither solids, which are areas, nor texts and layers that are called like an entity."""
    done = await pipeline.to("GeoJson", write(tmp_path / "a.dxf", READ[kind]), source_epsg=4326)
    assert len(readers.geojson(done.path)) == 1 + 1
    assert done.source.warnings == ()


@pytest.mark.parametrize("newline", ["\n", "\r\n"])
@pytest.mark.parametrize(("name", "is_told"), [("TREE", True), ("2", True), ("*U1", False), ("_Dot", False)])
async def test_names_of_blocks_are_told_but_not_those_that_programs_give(
    pipeline: Pipeline, tmp_path: Path, name: str, newline: str, *, is_told: bool
) -> None:
    """A block arrives as what it consists of, with nothing that says what it is."""
    path = tmp_path / "a.dxf"
    drawn = DRAWN.removeprefix(STYLES).format(2 * INSERT.format(name))
    path.write_text(STYLES + BLOCK.format(name) + drawn, newline=newline)
    done = await pipeline.to("GeoJson", path, source_epsg=4326)
    assert len(readers.geojson(done.path)) == 1 + 1
    told = [warning for warning in done.source.warnings if warning.startswith("Insertions of blocks (2) became")]
    assert list(done.source.warnings) == told
    assert bool(told) is is_told


async def test_curves_that_become_lines_are_told(pipeline: Pipeline, tmp_path: Path) -> None:
    """Straight polylines and splines, and insertions with scales, have none."""
    circle, arc = "0\nCIRCLE\n8\n0\n10\n1\n20\n2\n40\n3\n", "0\nARC\n8\n0\n10\n1\n20\n2\n40\n3\n50\n0\n51\n90\n"
    vertices = "".join(f"10\n{x}\n20\n0\n42\n{bulge}\n" for x, bulge in enumerate(("0.5", "0.0", "-0.1", "0")))
    polyline = f"0\nLWPOLYLINE\n8\n0\n90\n4\n70\n0\n{vertices}"
    old = "0\nPOLYLINE\n8\n0\n66\n1\n" + "".join(
        f"0\nVERTEX\n8\n0\n10\n{x}\n20\n0\n30\n0\n42\n{bulge}\n" for x, bulge in enumerate(("1e-1", "0.00"))
    )
    insertion = "0\nINSERT\n8\n0\n2\na\n10\n0\n20\n0\n41\n2\n42\n2\n"
    straight = (
        spline("0", "0").replace("71\n3\n72\n8\n73\n4\n", "71\n1\n72\n4\n73\n2\n").replace("40\n0\n40\n0\n", "", 1)
    )
    splines = spline("0", "0", "0", "0") + straight.replace("40\n1\n40\n1\n", "", 1)
    edges = ("72\n1\n10\n0\n20\n0\n11\n1\n21\n0\n", "72\n2\n10\n0\n20\n0\n40\n1\n50\n0\n51\n180\n73\n1\n", ELLIPTIC)
    hatch = "".join(HATCH.replace(f"72\n4\n{WEIGHTS}", edge) for edge in edges) + HATCH
    drawing = hatch + circle + arc + polyline + old + "0\nSEQEND\n8\n0\n" + splines + insertion
    path = tmp_path / "a.dxf"
    path.write_text(STYLES + BLOCK.format("a") + DRAWN.removeprefix(STYLES).format(drawing))
    warnings = (await pipeline.to("GeoJson", path, source_epsg=4326)).output.warnings
    curves = "Circles, arcs, ellipses and splines (3; those of a block once) became lines of short segments."
    assert {curves, "Arcs and other curves in polylines and hatches (6) became lines of short segments."} <= set(
        warnings
    )
    assert not [told for told in warnings if "rcs" in told and "became" not in told]


@pytest.mark.parametrize("newline", ["\n", "\r\n"])
@pytest.mark.parametrize(
    ("flags", "is_constant"), [("     2", True), ("10", True), ("3", False), ("0", False), ("8", False)]
)
async def test_attributes_that_are_the_same_in_all_insertions_are_read_or_told(
    pipeline: Pipeline, tmp_path: Path, flags: str, newline: str, *, is_constant: bool
) -> None:
    """Programs show such texts unless they are invisible; GDAL does since 3.7.1."""
    path = tmp_path / "a.dxf"
    attribute = f"0\nATTDEF\n8\n0\n10\n0\n20\n0\n40\n1\n1\nsame\n3\nprompt\n2\nTAG\n70\n{flags}\n"
    block = BLOCK.format("a").replace("0\nENDBLK", f"{attribute}0\nENDBLK")
    drawn = STYLES + block + DRAWN.removeprefix(STYLES).format(INSERT.format("a"))
    path.write_text(drawn, newline=newline)
    done = await pipeline.to("GeoJson", path, source_epsg=4326)
    texts = [row["properties"]["Text"] for row in readers.geojson(done.path)]  # type: ignore[index]  # JSON is untyped
    told = "Constant attributes of blocks (1) were left out. Make them texts to keep them."
    assert texts.count("same") + done.output.warnings.count(told) == is_constant


DEFINED = "0\nBLOCK\n8\n0\n2\n{0}\n70\n{1}\n10\n0\n20\n0\n{2}0\nENDBLK\n8\n0\n"
UNDEFINED = {
    "missing": "gone",
    "with other capitals": "TREE",
    "in another file": "site",
    "one letter longer": "trees",
}


@pytest.mark.parametrize("newline", ["\n", "\r\n"])
@pytest.mark.parametrize("kind", UNDEFINED)
async def test_insertions_of_blocks_that_are_not_there_are_told(
    pipeline: Pipeline, tmp_path: Path, kind: str, newline: str
) -> None:
    """They were only said to have become the parts of their blocks."""
    blocks = DEFINED.format("tree", 0, LINE) + DEFINED.format("site", 4, "")
    entities = INSERT.format("tree") + 2 * INSERT.format(UNDEFINED[kind])
    drawing = f"{STYLES}0\nSECTION\n2\nBLOCKS\n{blocks}0\nENDSEC\n" + DRAWN.removeprefix(STYLES).format(entities)
    (tmp_path / "a.dxf").write_text(drawing, newline=newline)
    done = await pipeline.to("GeoJson", tmp_path / "a.dxf", source_epsg=4326)
    assert len(readers.geojson(done.path)) == 1
    told = [warning for warning in done.source.warnings if "does not define" in warning]
    assert [warning.partition(", were")[0] for warning in told] == [
        f"Insertions of blocks that the file does not define (2), such as {UNDEFINED[kind]!r}"
    ]
