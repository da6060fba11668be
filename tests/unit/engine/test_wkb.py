"""Parsing geometry bytes."""

import math
import struct

import pytest

from service.engine.jailed.flaws import may_be_flawed, mended
from service.engine.jailed.geoarrow import to_wkb
from service.engine.jailed.wkb import as_polygons, is_curved, parts_by_family

POINT = struct.pack("<BI2d", 1, 1, 1.0, 2.0)
POINT_Z = struct.pack("<BI3d", 1, 1001, 1.0, 2.0, 3.0)
LINE = struct.pack("<BII4d", 1, 2, 2, 0.0, 0.0, 1.0, 1.0)
POLYGON = struct.pack("<BIII8d", 1, 3, 1, 4, 0.0, 0.0, 1.0, 0.0, 1.0, 1.0, 0.0, 0.0)


def many(code: int, *parts: bytes) -> bytes:
    return struct.pack("<BII", 1, code, len(parts)) + b"".join(parts)


def test_a_collection_falls_apart_by_family() -> None:
    """One Multi geometry each, including nested ones."""
    nested = many(7, POINT, LINE, many(7, POLYGON, many(4, POINT, POINT)))
    assert parts_by_family(nested) == {
        "MultiPoint": many(4, POINT, POINT, POINT),
        "MultiLineString": many(5, LINE),
        "MultiPolygon": many(6, POLYGON),
    }


def test_heights_are_kept() -> None:
    """The parts are marked as having them."""
    assert parts_by_family(many(1007, POINT_Z)) == {"MultiPoint": many(1004, POINT_Z)}


CURVE = struct.pack("<BII6d", 1, 8, 3, 0.0, 0.0, 1.0, 1.0, 2.0, 0.0)


def test_curves_are_gathered_under_types_that_take_them() -> None:
    """So that they can become lines afterwards."""
    found = parts_by_family(many(7, CURVE, LINE, many(10, CURVE)))
    assert found == {"MultiLineString": many(11, CURVE, LINE), "MultiPolygon": many(12, many(10, CURVE))}
    assert all(map(is_curved, found.values()))


NO_POINT = struct.pack("<BI3d", 1, 2001, *[math.nan] * 3)
NO_LINE = struct.pack("<BII", 1, 3002, 0)


@pytest.mark.parametrize(
    ("hollow", "filled"),
    [
        (many(4, NO_POINT, POINT), many(4, POINT)),
        (many(3005, LINE, NO_LINE), many(3005, LINE)),
        (many(6, many(3), POLYGON), many(6, POLYGON)),
        (many(7, many(7, many(4), POINT), many(7, many(6, many(3)))), many(7, many(7, POINT))),
        (many(11, many(9), CURVE), many(11, CURVE)),
        (many(5, *[LINE] * 9, many(2)), many(5, *[LINE] * 9)),
        (many(6, *[POLYGON] * 9, many(3)), many(6, *[POLYGON] * 9)),
    ],
)
def test_parts_without_any_position_are_left_out(hollow: bytes, filled: bytes) -> None:
    """Others are as they were, and few of them are read to see that."""
    assert mended(hollow) == (filled, ["hollow"])
    assert mended(filled) == (filled, [])
    assert may_be_flawed(hollow)
    assert not may_be_flawed(filled)


NAN, INF = math.nan, math.inf
ANOTHER_NAN = bytes.fromhex("010000000000f4ff")
LINE_ZM = struct.Struct("<BII8d")


@pytest.mark.parametrize(
    ("wkb", "expected"),
    [
        (
            LINE_ZM.pack(1, 3002, 2, 1, 2, INF, NAN, 5, 6, 7, 8),
            (LINE_ZM.pack(1, 3002, 2, 1, 2, 0, NAN, 5, 6, 7, 8), ["heightless"]),
        ),
        (many(1004, NO_POINT, POINT_Z), (many(1004, POINT_Z), ["hollow"])),
        (many(7, POINT, struct.pack("<BI2d", 1, 1, 1, -INF)), (None, ["nowhere"])),
        (many(4, *[POINT] * 9, POINT[:-8] + ANOTHER_NAN), (None, ["nowhere"])),
        (many(6, *[POLYGON] * 9, POLYGON[:-8] + ANOTHER_NAN), (None, ["nowhere"])),
        (POINT[:-16] + ANOTHER_NAN * 2, (None, ["nowhere"])),
    ],
)
def test_coordinates_that_are_no_finite_numbers_are_mended(
    wkb: bytes, expected: tuple[bytes | None, list[str]]
) -> None:
    """Elevations become 0, other coordinates leave no geometry; empty parts and measures do not matter."""
    assert may_be_flawed(wkb)
    found = mended(wkb)
    assert found == expected


OPEN = POLYGON[:-8] + struct.pack("<d", 5)
OPEN_Z = struct.pack("<BIII12d", 1, 1003, 1, 4, 0, 0, 9, 1, 0, 9, 1, 1, 9, 0, 2, 9)


@pytest.mark.parametrize(
    "wkb", [OPEN, many(6, *[POLYGON] * 9, OPEN), many(7, POINT, many(6, OPEN)), many(1015, OPEN_Z)]
)
def test_rings_that_do_not_end_where_they_begin_are_told(wkb: bytes) -> None:
    """They stay as they are."""
    assert may_be_flawed(wkb)
    mended_wkb, flaws = mended(wkb)
    assert (mended_wkb, {*flaws} - {"nested", "ambiguous"}) == (wkb, {"unclosed"})


TRIANGLE = struct.pack("<BI", 1, 17) + POLYGON[5:]


@pytest.mark.parametrize(
    ("surface", "polygons"),
    [
        (many(15, POLYGON, POLYGON), many(6, POLYGON, POLYGON)),
        (many(16, TRIANGLE), many(6, POLYGON)),
        (TRIANGLE, POLYGON),
        (many(7, many(16, TRIANGLE), LINE, many(7, TRIANGLE)), many(7, many(6, POLYGON), LINE, many(7, POLYGON))),
        (LINE, LINE),
    ],
)
def test_surfaces_become_polygons(surface: bytes, polygons: bytes) -> None:
    """With the same positions; everything else is unchanged."""
    assert as_polygons(surface) == polygons


@pytest.mark.parametrize("wkb", [many(7, struct.pack("<BII", 1, 99, 0)), many(7, b"\x00" + POINT[1:])])
def test_what_is_unknown_is_an_error(wkb: bytes) -> None:
    """So is the other byte order, which does not occur in the work file."""
    with pytest.raises(ValueError, match="not"):
        parts_by_family(wkb)


def test_a_lying_count_is_an_error() -> None:
    """Nothing is read beyond the bytes."""
    with pytest.raises(struct.error):
        parts_by_family(struct.pack("<BII", 1, 7, 1 << 30) + POINT)


@pytest.mark.parametrize(
    ("encoding", "value", "wkb"),
    [
        ("point", {"x": 1.0, "y": 2.0}, POINT),
        ("point", {"x": 1.0, "y": 2.0, "z": 3.0}, POINT_Z),
        ("point", None, None),
        ("linestring", [{"x": 0.0, "y": 0.0}, {"x": 1.0, "y": 1.0}], LINE),
        ("multipoint", [{"x": 1.0, "y": 2.0}], many(4, POINT)),
        ("multilinestring", [[{"x": 0.0, "y": 0.0}, {"x": 1.0, "y": 1.0}]], many(5, LINE)),
    ],
)
def test_native_encodings_become_wkb(encoding: str, value: object, wkb: bytes | None) -> None:
    """GeoParquet's coordinates as lists."""
    assert to_wkb(value, encoding) == wkb


ALONE = struct.pack("<BII2d", 1, 2, 1, 0.5, 7)
ALONE_Z = struct.pack("<BII3d", 1, 1002, 1, 0.5, 7, 9)
RING_ALONE = struct.pack("<BIII2d", 1, 3, 1, 1, 0.5, 7)


@pytest.mark.parametrize(
    "wkb",
    [
        ALONE,
        many(5, LINE, ALONE),
        many(5, *[LINE] * 9, ALONE),
        many(1005, ALONE_Z),
        RING_ALONE,
        many(6, *[POLYGON] * 9, RING_ALONE),
        many(7, POINT, ALONE),
        many(9, ALONE),
    ],
)
def test_lines_and_rings_of_a_single_position_are_told(wkb: bytes) -> None:
    """They stay as they are."""
    assert may_be_flawed(wkb)
    assert mended(wkb) == (wkb, ["single"])


def area(*squares: tuple[float, float]) -> bytes:
    """An area whose rings are squares between two numbers."""
    rings = [[(a, a), (a, b), (b, b), (b, a), (a, a)] for a, b in squares]
    lines = b"".join(struct.pack("<I10d", 5, *(number for place in ring for number in place)) for ring in rings)
    return struct.pack("<BII", 1, 3, len(rings)) + lines


@pytest.mark.parametrize(
    "rings",
    [[(2, 4), (0, 10)], [(0, 3), (5, 7)], [(0, 10), (2, 4), (11, 12)]],
    ids=["exchanged", "apart", "one of two"],
)
@pytest.mark.parametrize("wrapped", [0, 1, 9])
def test_holes_that_begin_outside_of_their_areas_are_told(rings: list[tuple[float, float]], wrapped: int) -> None:
    """They stay as they are."""
    areas = [area((at, at + 10), (at, at + 4), (at + 4, at + 10)) for at in range(20, 20 * wrapped + 40, 20)]
    wkb, right = area(*rings), areas[0]
    if wrapped:
        wkb, right = many(6, *areas[1:], wkb), many(6, *areas)
    assert may_be_flawed(wkb)
    assert mended(wkb) == (wkb, ["outlying", "ambiguous"])
    assert not may_be_flawed(right)


def turned(least: float, most: float) -> bytes:
    """An area whose ring is a square that goes around counterclockwise."""
    places = (least, least, most, least, most, most, least, most, least, least)
    return struct.pack("<BIII10d", 1, 3, 1, 5, *places)


@pytest.mark.parametrize(
    ("areas", "told"),
    [
        ([turned(0, 10), area((2, 4))], True),
        ([turned(2, 4), turned(0, 10)], True),
        ([turned(20, 30), area((0, 10)), area((2, 4)), *[area((50, 60))] * 5], True),
        ([area((0, 10)), area((2, 4))], False),
        ([turned(0, 10), turned(20, 30)], False),
        ([turned(0, 10)], False),
    ],
)
def test_areas_around_others_whose_rings_have_the_wrong_direction_are_told(areas: list[bytes], *, told: bool) -> None:
    """They stay as they are."""
    wkb = many(6, *areas)
    assert may_be_flawed(wkb) or not told
    mended_wkb, flaws = mended(wkb)
    assert (mended_wkb, {*flaws} - {"ambiguous"}) == (wkb, {"nested"} if told else set())


def triangle(*places: tuple[float, float]) -> bytes:
    return struct.pack("<BIII8d", 1, 3, 1, 4, *(number for place in (*places, places[0]) for number in place))


BESIDE = triangle((0, 0), (9, 9), (9, 0)), triangle((3, 3), (0.1, 0.1), (0.1, 4))
"""Two areas with a common edge, and the box around the one is within that of the other."""
LAKE = area((0, 10), (2, 8))
ISLAND = area((4, 6))


@pytest.mark.parametrize(
    ("wkb", "told"),
    [
        (many(6, area((0, 10)), ISLAND), True),
        (many(6, ISLAND, turned(0, 10)), True),
        (many(6, *[area((at, at + 1)) for at in range(20, 40, 2)], area((0, 10)), ISLAND), True),
        (many(7, area((0, 10)), POINT, many(7, ISLAND)), True),
        (area((0, 10), (20, 22)), True),
        (many(15, area((0, 10)), ISLAND), True),
        (many(15, area((0, 10)), area((10, 20))), False),
        (area((0, 10), (2, 8), (4, 6)), True),
        (many(6, LAKE, ISLAND, area((4.5, 5))), True),
        (many(6, LAKE, ISLAND), False),
        (many(6, ISLAND, LAKE), False),
        (many(6, LAKE, area((4, 6), (4.5, 5))), False),
        (many(6, area((0, 10)), area((8, 14))), False),
        (many(6, area((0, 10)), area((0, 10))), True),
        (area((0, 10), (0, 10)), True),
        (many(6, triangle((0, 0), (9, 9), (9, 0)), triangle((0, 0), (0, 9), (9, 9))), False),
        (many(6, *BESIDE), False),
        (many(6, *reversed(BESIDE)), False),
        (many(5, LINE, LINE), False),
    ],
)
def test_rings_are_told_of_which_nothing_says_whether_they_are_holes(wkb: bytes, *, told: bool) -> None:
    """Those of areas in holes, across others and beside others are not; all stay as they are."""
    assert may_be_flawed(wkb) is told
    mended_wkb, flaws = mended(wkb)
    assert (mended_wkb, "ambiguous" in flaws) == (wkb, told)


RING_Z = struct.pack("<I12d", 4, *(0, 0, 1), *(9, 0, 1), *(9, 9, 1), *(0, 0, 1))
AREA_Z = struct.pack("<BII", 1, 1003, 2) + RING_Z + RING_Z


@pytest.mark.parametrize("size", range(len(AREA_Z)))
def test_areas_that_are_cut_off_anywhere_are_refused_as_such(size: int) -> None:
    """Even within the last elevation of a ring, behind a position that closes it."""
    with pytest.raises((ValueError, struct.error)):
        assert not may_be_flawed(AREA_Z[:size]) or not mended(AREA_Z[:size])
