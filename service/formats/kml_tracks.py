"""Finds tracks of KML at which the driver crashes."""

from pathlib import Path

from service.errors import Rejection
from service.formats.left_out import chunks

PREFIX, BEGIN, END, POSITION, TIME = b"gx:", b"<Track", b"</Track>", b"<coord", b"<when"


def lack_times(path: Path) -> bool:
    """Whether some tracks of the file have positions and no times. Blocking.

    Raises:
        Rejection: one has more positions than times, but some of these.
    """
    is_any, tail, number, positions, times = False, b"", 0, 0, 0
    for chunk in chunks(path):
        text = tail + chunk
        cut = text.rfind(b"<", -len(PREFIX + END))
        text, tail = (text[:cut], text[cut:]) if cut >= 0 else (text, b"")
        *ended, rest = text.replace(PREFIX, b"").split(END)
        for part in (*ended, rest):
            _, begins, inside = part.rpartition(BEGIN)
            if begins:
                number, positions, times = number + 1, 0, 0
            positions, times = positions + inside.count(POSITION), times + inside.count(TIME)
            if part is not rest and number and positions > times:
                if times:
                    raise Rejection(
                        f"Track {number:,} of the file has more positions (gx:coord) than times (when), so it cannot "
                        "be read. Give each position a time, or leave out all, and send it again."
                    )
                is_any = True
    return is_any
