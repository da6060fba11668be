"""Finds insertions of blocks that a DXF does not define, wherever its text is divided."""

import pytest

from service.formats.dxf_blocks import LONGEST_MATCH, MOST_NAMES, UndefinedBlocks

BLOCK, INSERT = "0\r\nBLOCK\r\n8\r\n0\r\n2\r\n{}\r\n70\r\n{}\r\n", " 0\nINSERT\n8\n0\n2\n{}\n10\n1\n"
LAYER_OF_THAT_NAME = "0\nHATCH\n8\nINSERT\n2\nSOLID\n"
DRAWING = BLOCK.format("tree", 0) + BLOCK.format("site", 68) + LAYER_OF_THAT_NAME
DRAWING += "".join(map(INSERT.format, ("tree", "tree", "gone", "site", "gone")))


def told(*pieces: str) -> list[str]:
    check = UndefinedBlocks()
    for piece in pieces:
        check.add(piece.encode())
    return [warning.partition(", were")[0] for warning in check.told()]


@pytest.mark.parametrize("cut", range(len(DRAWING)))
def test_insertions_are_counted_once_wherever_a_piece_ends(cut: int) -> None:
    """Of a block in another file, too."""
    expected = ["Insertions of blocks that the file does not define (3), such as 'gone'"]
    assert told(DRAWING[:cut], DRAWING[cut:]) == expected
    assert told("999\n" + "x" * LONGEST_MATCH + "\n" + DRAWING[:cut], DRAWING[cut:]) == expected


def test_nothing_is_told_of_a_drawing_with_all_its_blocks() -> None:
    """Neither of one that inserts none."""
    assert not told(BLOCK.format("a b ", 0), INSERT.format("a b"))
    assert not told(DRAWING[: DRAWING.index("INSERT")])


def test_a_crafted_file_does_not_fill_the_memory() -> None:
    """It may name as many blocks as it has room for."""
    check = UndefinedBlocks()
    for piece in range(4):
        check.add("".join(INSERT.format(f"{piece} {number}") for number in range(MOST_NAMES // 2 + 1)).encode())
    assert not check.told()
    assert len(check._inserted) <= 2 * MOST_NAMES
