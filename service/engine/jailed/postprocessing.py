"""The last steps of results that drivers do not write as they are delivered.

Sessions answer the same questions (`postprocessing.c`). Runs in the sandbox.
"""

import re
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Final

from service.engine.jailed.shape_rings import turn

ROOT: Final = re.compile(rb"<[A-Za-z_][^\s>]*")
ENVELOPE_OF_THREE: Final = re.compile(rb'(<gml:Envelope\b[^>]*?) srsDimension="3"')
"""What makes readers such as GDAL 3.10 take coordinates of two numbers, which declare no dimension, for three."""
HEAD_BYTES: Final = 4096
NO_GEOMETRY: Final = "GEOMETRYCOLLECTION EMPTY"
"""The line for a feature without geometry, so that lines and features stay aligned."""
SEPARATED, TOO_LONG = b",\n", b",,\n"
NO_VALUE: Final = b'""'
"""The row of a single column without a value: most programs skip an empty line."""


def declare(xml_file: str, attributes: str, out_file: str) -> None:
    """Copy `xml_file` to `out_file` without a dimension for all of it, and with `attributes` on its root element.

    Coordinates with elevations declare their own dimension.
    """
    with Path(xml_file).open("rb") as xml, Path(out_file).open("wb") as out:
        head = ENVELOPE_OF_THREE.sub(rb"\1", xml.read(HEAD_BYTES), count=1)
        root = ROOT.search(head)
        added = attributes.encode()
        if root is not None and added not in head:
            head = head[: root.end()] + b" " + added + head[root.end() :]
        out.write(head)
        shutil.copyfileobj(xml, out)


def gather(lines_file: str, title: str, document: str) -> None:
    """Write the features of `lines_file`, one per line, to `document`, as GeoJSON; `title` is its name in JSON."""
    with Path(lines_file).open(encoding="utf-8") as lines, Path(document).open("w", encoding="utf-8") as out:
        out.write(f'{{\n"type": "FeatureCollection",\n"name": {title},\n"features": [\n')
        separator = ""
        for line in lines:
            out.write(f"{separator}{line.strip()}")
            separator = ",\n"
        out.write("\n]\n}\n")


def lines(csv_file: str, lines_file: str) -> None:
    """Write the first column of `csv_file`, which is tab-delimited, to `lines_file`: one geometry in WKT per line."""
    with Path(csv_file).open(encoding="utf-8") as rows, Path(lines_file).open("w", encoding="utf-8") as out:
        next(rows, None)
        for row in rows:
            geometry = row.strip().strip('"').strip()
            out.write(f"{geometry or NO_GEOMETRY}\n")


def even(rows_file: str, csv_file: str, columns: str) -> None:
    """Copy the rows of one or two COLUMNS from `rows_file` to `csv_file` without separators behind the last column.

    Drivers that do not recognize a table without a separator put one behind a single column, in its header and in rows
    without a value. In the latter they also do so if the column is the only one beside the geometry, which is missing.
    """
    is_lone, is_open = columns == "1", False
    with Path(rows_file).open("rb") as rows, Path(csv_file).open("wb") as out:
        for line in rows:
            begins, is_open = not is_open, is_open ^ bool(line.count(b'"') & 1)
            if begins and line == TOO_LONG:
                out.write(SEPARATED)
            elif is_lone and not is_open and line.endswith(SEPARATED):
                out.write((line.removesuffix(SEPARATED) or NO_VALUE) + b"\n")
            else:
                out.write(line)


ANSWERS: Final[dict[str, Callable[..., None]]] = {
    "declare": declare,
    "gather": gather,
    "lines": lines,
    "even": even,
    "turn": turn,
}


def main(question: str, *names: str) -> None:
    """Do what `question` says with the files `names`."""
    ANSWERS[question](*names)
