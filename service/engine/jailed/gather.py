"""Joins lines of GeoJSON features to one document. Runs in the sandbox: `python -m …gather LINES TITLE DOCUMENT`."""

import sys
from pathlib import Path


def main(lines_file: str, title: str, document: str) -> None:
    """Write the features of `lines_file`, one per line, to `document`; `title` is its name in JSON."""
    with Path(lines_file).open(encoding="utf-8") as lines, Path(document).open("w", encoding="utf-8") as out:
        out.write(f'{{\n"type": "FeatureCollection",\n"name": {title},\n"features": [\n')
        separator = ""
        for line in lines:
            out.write(f"{separator}{line.strip()}")
            separator = ",\n"
        out.write("\n]\n}\n")


if __name__ == "__main__":
    main(*sys.argv[1:4])
