"""Mends the declarations at the head of an XML file. Runs in the sandbox: `python -m …declare XML ATTRIBUTES OUT`."""

import re
import shutil
import sys
from pathlib import Path

ROOT = re.compile(rb"<[A-Za-z_][^\s>]*")
ENVELOPE_OF_THREE = re.compile(rb'(<gml:Envelope\b[^>]*?) srsDimension="3"')
"""What makes readers such as GDAL 3.10 take coordinates of two numbers, which declare no dimension, for three."""
HEAD_BYTES = 4096


def main(xml_file: str, attributes: str, out_file: str) -> None:
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


if __name__ == "__main__":
    main(*sys.argv[1:4])
