"""Adds attributes to the root element of an XML file. Runs in the sandbox: `python -m …declare XML ATTRIBUTES OUT`."""

import re
import shutil
import sys
from pathlib import Path

ROOT = re.compile(rb"<[A-Za-z_][^\s>]*")
HEAD_BYTES = 4096


def main(xml_file: str, attributes: str, out_file: str) -> None:
    """Copy `xml_file` to `out_file`, adding `attributes` to its root element unless it has them."""
    with Path(xml_file).open("rb") as xml, Path(out_file).open("wb") as out:
        head = xml.read(HEAD_BYTES)
        root = ROOT.search(head)
        added = attributes.encode()
        if root is not None and added not in head:
            head = head[: root.end()] + b" " + added + head[root.end() :]
        out.write(head)
        shutil.copyfileobj(xml, out)


if __name__ == "__main__":
    main(*sys.argv[1:4])
