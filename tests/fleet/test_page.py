"""The page on a gateway without GDAL does what it does on a single process (interface 10)."""

from collections.abc import Iterator
from typing import Any

import pytest
from playwright.sync_api import Page, expect, sync_playwright

from service.cli.demo import page_link
from tests.fleet.site import Site
from tests.support.browser import browser_program
from tests.support.data import lakes
from tests.support.patience import PATIENCE_SECONDS, wait_until
from tests.support.server import Client

pytestmark = pytest.mark.xdist_group("fleet")

PATIENCE_MS = PATIENCE_SECONDS * 1000


@pytest.fixture
def client(fleet: Site) -> Iterator[Client]:
    """A client of the gateway."""
    with fleet.client() as opened:
        yield opened


@pytest.fixture
def page(client: Client) -> Iterator[Page]:  # noqa: ARG001 - no account can be made while the browser's loop runs
    """A page in a browser of its own."""
    program = browser_program()
    if program is None:
        pytest.skip("Chromium is not installed (Debian: chromium)")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=program, args=["--no-sandbox", "--disable-gpu"])
        opened = browser.new_page()
        opened.set_default_timeout(PATIENCE_MS)
        expect.set_options(timeout=PATIENCE_MS)
        yield opened
        browser.close()


def test_a_file_is_converted_seen_and_deleted_and_another_cancelled(fleet: Site, client: Client, page: Page) -> None:
    """With a map and a download; nothing but the download comes from elsewhere, and no script complains."""
    told: list[str] = []
    page.on("pageerror", lambda error: told.append(str(error)))
    page.on("console", lambda message: told.append(message.text))
    page.on("request", lambda request: told.append(request.url.split("/")[2]))
    page.goto(page_link(fleet.gateway.url, client.key.api_key))
    page.get_by_role("button", name="Use this key").press("Enter")
    convert(page, "lakes.geojson")
    expect(page.locator(".state.completed")).to_have_count(1)
    expect(page.locator(".map canvas")).to_have_count(3)
    with page.expect_download() as waiting:
        page.locator(".card a.main").click()
    assert waiting.value.path().read_bytes().startswith(b"SQLite format 3")
    with fleet.frozen_workers():
        convert(page, "more.geojson")
        wait_until(lambda: fleet.rows("SELECT FROM job WHERE original_file_name = 'more.geojson'"))
        page.get_by_role("button", name="Cancel").click()
        expect(page.locator(".state.failed")).to_have_text("Cancelled")
    page.get_by_role("button", name="Delete the result").click()
    page.get_by_role("button", name="Delete for good?").click()
    expect(page.locator(".state.expired")).to_have_count(1)
    page.reload()
    states = page.locator("#history .badge")
    expect(states).to_have_text(["Not converted", "Result deleted"])
    assert set(told) == {fleet.gateway.url.split("/")[2], fleet.s3.url.split("/")[2]}


def convert(page: Page, name: str) -> None:
    """Choose a file and start."""
    payload: Any = [{"name": name, "mimeType": "", "buffer": lakes()}]
    page.set_input_files("#files", payload)
    page.select_option("#format", "GeoPackage")
    page.click("#convert")
