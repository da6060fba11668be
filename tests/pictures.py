"""Makes the README's pictures from a running service: `python -m tests.pictures DIRECTORY`, or `./just pictures`."""

import json
import math
import sys
import tempfile
from pathlib import Path
from typing import Any

from playwright.sync_api import Page, sync_playwright

from service.cli.demo import page_link
from tests.support.browser import browser_program
from tests.support.data import collection, feature
from tests.support.server import running_server

LAKES = (
    ("Ladoga", 5, 230, (31.5, 60.8), (1.4, 0.75)),
    ("Vänern", 44, 106, (13.3, 58.9), (0.9, 0.4)),
    ("Onega", 33, 127, (35.4, 61.7), (0.8, 0.9)),
    ("Saimaa", 76, 85, (28.3, 61.3), (0.7, 0.35)),
    ("Peipus", 30, 15, (27.5, 58.7), (0.35, 0.6)),
)
"""Names, elevations, depths, centres and extents of what is converted."""
REMARK = ", ".join(["surveyed twice"] * 20)
WIDTH = 960
MARGIN = 8


def lakes() -> bytes:
    """A file that a Shapefile cannot hold completely: long column names, and a long text."""
    return collection(
        *(
            feature(
                _outline(centre, extent), name=name, elevation_in_metres=height, maximum_depth=depth, remarks=REMARK
            )
            for name, height, depth, centre, extent in LAKES
        )
    )


def _outline(centre: tuple[float, float], extent: tuple[float, float]) -> dict[str, Any]:
    turns = [2 * math.pi * step / 60 for step in range(60)]
    wavy = [(turn, 1 + 0.13 * math.sin(5 * turn) + 0.07 * math.cos(9 * turn)) for turn in turns]
    ring = [
        [round(centre[0] + extent[0] * far * math.cos(turn), 4), round(centre[1] + extent[1] * far * math.sin(turn), 4)]
        for turn, far in wavy
    ]
    return {"type": "Polygon", "coordinates": [[*ring, ring[0]]]}


def convert(page: Page, link: str) -> None:
    """Convert the lakes as a person does, and show one of them."""
    page.goto(link)
    page.get_by_role("button", name="Use this key").click()
    payload: Any = {"name": "lakes.geojson", "mimeType": "application/geo+json", "buffer": lakes()}
    page.set_input_files("#files", payload)
    page.select_option("#format", "Shapefile")
    page.click("#convert")
    page.wait_for_selector(".state.completed")
    page.wait_for_selector(".map canvas", state="attached")
    page.wait_for_timeout(1500)  # the map is drawn


def shoot(page: Page, path: Path, *, first: str, last: str) -> None:
    """Take a screenshot from the top of one element to the bottom of another."""
    top, bottom = page.locator(first).first.bounding_box(), page.locator(last).first.bounding_box()
    assert top is not None
    assert bottom is not None
    begin = max(top["y"] - MARGIN, 0)
    height = bottom["y"] + bottom["height"] + MARGIN - begin
    page.screenshot(path=path, full_page=True, clip={"x": 0, "y": begin, "width": WIDTH, "height": height})


def make(directory: Path) -> None:
    """Write `page.png` and `report.png`."""
    program = browser_program()
    with tempfile.TemporaryDirectory() as data, running_server(Path(data)) as server, sync_playwright() as playwright:
        key = json.loads((server.data_dir / "demo.json").read_text(encoding="utf-8"))["apiKey"]
        browser = playwright.chromium.launch(executable_path=program, args=["--no-sandbox", "--disable-gpu"])
        page = browser.new_page(viewport={"width": WIDTH, "height": 900})
        convert(page, page_link(server.url, key))
        shoot(page, directory / "report.png", first=".card details", last=".card .scroll")
        page.evaluate("for (const part of document.querySelectorAll('.card details')) part.open = false")
        shoot(page, directory / "page.png", first="header", last=".card")
        browser.close()


if __name__ == "__main__":
    make(Path(sys.argv[1]))
