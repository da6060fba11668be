"""Objects of a .mif whose parts are not on lines of their own."""

import zipfile
from pathlib import Path
from typing import Any

import pytest

from service.engine.jailed.mif_lines import on_lines_of_their_own
from service.errors import Rejection
from service.formats.mif_lines import SHARED_LINE, UNREAD
from tests.integration.formats import readers
from tests.integration.formats.pipeline import Pipeline

HEAD = (
    'Version 300\nCharset "Neutral"\nDelimiter ","\nCoordSys Earth Projection 1, 104\n'
    "Columns 3\n  Region Integer\n  Point Decimal(10, 2)\n  Text Char(9)\nData\n\n"
)
RING = "0 0\n0 4\n4 4\n0 0\n"
SQUARE = [[[0, 0], [4, 4], [0, 4], [0, 0]]]
SHARED = {
    'Text "a ""b"" c" 1 2 1 2 Font ("Arial",0,0,0)\n': ("Point", [1, 2]),
    'TEXT\n    "x"\t1 2 1 2\n    Angle 9\n': ("Point", [1, 2]),
    "Point 1 2 Symbol (35,0,12)\n": ("Point", [1, 2]),
    "Line 0 0 1e0 +1 Pen (1,2,0)\n": ("LineString", [[0, 0], [1, 1]]),
    "Pline 2\n5 5\n5 6 Pen (1,2,0)\n    Smooth\n": ("LineString", [[5, 5], [5, 6]]),
    "Multipoint 2\n1 1\n2 2 Symbol (35,0,12)\n": ("MultiPoint", [[1, 1], [2, 2]]),
    f"region 1 4 \n{RING} Pen (1,2,0) Brush (1,0,0)\n": ("Polygon", SQUARE),
}
"""Objects, and the geometries that they are."""
UNREADABLE = (f"Region 1 4 {RING}", f"Region\n1\n4\n{RING}", f"Region 1\n4 {RING}", "Pline 2 5 5 5 6\n")
OTHERS = ("Point 1,2\n", "Pline 2\n5 5 5 6\n")


def mif(path: Path, objects: str) -> Path:
    """A ZIP of a .mif with an object before and after `objects`."""
    text = f"{HEAD}Point 9 9\n{objects}Point 8 8\n".replace("\n", "\r\n")
    with zipfile.ZipFile(path, "w") as packed:
        packed.writestr("a.mif", text)
        packed.writestr("a.mid", '1,1,"a"\n' * (2 + len(SHARED)))
    return path


async def test_objects_whose_parts_share_a_line_are_read(either: Pipeline, tmp_path: Path) -> None:
    """They were refused as a damaged .tab, and areas became features without geometry."""
    done = await either.to("GeoJson", mif(tmp_path / "a.zip", "".join(SHARED)))
    assert done.output.warnings == ("Texts of labels (2) were left out; their positions and attributes were kept.",)
    found: list[Any] = readers.geojson(done.path)
    geometries = [feature["geometry"] for feature in found][1:-1]
    assert [(geometry["type"], geometry["coordinates"]) for geometry in geometries] == list(SHARED.values())


@pytest.mark.parametrize("objects", UNREADABLE)
async def test_counts_on_other_lines_are_refused_with_the_line(
    pipeline: Pipeline, tmp_path: Path, objects: str
) -> None:
    """Areas became features without geometry, or others, without a word."""
    with pytest.raises(Rejection) as refused:
        await pipeline.to("GeoJson", mif(tmp_path / "a.zip", objects))
    assert str(refused.value) == SHARED_LINE.format(line=12)


@pytest.mark.parametrize("objects", OTHERS)
async def test_an_object_that_cannot_be_read_is_called_one_of_a_mif(
    either: Pipeline, tmp_path: Path, objects: str
) -> None:
    """The file was called no valid .tab, without a remedy."""
    with pytest.raises(Rejection, match=r"^An object of a \.mif cannot be read: it is cut off, or not on the lines"):
        await either.to("GeoJson", mif(tmp_path / "a.zip", objects))


@pytest.mark.parametrize(
    "objects",
    [
        f'Text\n"Region 1 4"\n1 2 3 4\nRegion 1\n4\n{RING}    Pen (1,2,0)\n    Center 1 2\n',
        "Pline Multiple 2\n2\n1 1\n2 2\n2\n3 3\n4 4\nRect 0 0 2 2\nArc 0 0 2 2\n0 90\nRoundrect 0 0 2 2\n0.5\nNone\n",
    ],
)
def test_what_is_on_lines_of_its_own_stays(objects: str) -> None:
    text = (HEAD + objects).encode()
    assert on_lines_of_their_own(text) == text
    assert not UNREAD.search(text)
