"""The page in a real browser: what people see and do, and what no file can make it do (interface 10).

Every test proves at its end that nothing broke the page's policy, that no script failed, and that nothing was requested
from elsewhere.
"""

import asyncio
import io
import json
import re
import signal
import time
import zipfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Literal
from xml.sax.saxutils import escape

import httpx
import pytest
import pytest_asyncio
from axe_playwright_python.async_playwright import Axe
from playwright.async_api import Browser, BrowserContext, Locator, Page, Route, async_playwright, expect

from service.cli.demo import page_link
from service.usecases.delete_job import CANCELLED
from tests.api.conftest import NewClient
from tests.support.browser import browser_program
from tests.support.converters import signal_converters
from tests.support.data import bare_points, collection, feature, lakes, point
from tests.support.endless import NAME, endless_file
from tests.support.patience import PATIENCE_SECONDS
from tests.support.server import Client, Server

pytestmark = [pytest.mark.asyncio(loop_scope="module"), pytest.mark.xdist_group("browser")]

SCREENSHOTS = Path(__file__).parents[2] / "build" / "screenshots"
PATIENCE_MS = PATIENCE_SECONDS * 1000
SHOWN_SECONDS = 2.0
"""What a converter has said until it was stopped is shown by then."""
MOST_STOPS = 60
PHONE = 360
expect.set_options(timeout=PATIENCE_MS)
EVIL = "<img src=x onerror=alert(1)><script>alert(2)</script>"
DROP = """([selector, files]) => {
    const transfer = new DataTransfer();
    for (const [name, text] of files) transfer.items.add(new File([text], name));
    const target = document.querySelector(selector);
    for (const type of ["dragenter", "dragover", "drop"]) {
        target.dispatchEvent(new DragEvent(type, { bubbles: true, cancelable: true, dataTransfer: transfer }));
    }
}"""
COUNT_DRAWN = """
window.drawn = { all: 0, most: 0, dots: 0 };
let inFrame = 0;
const end = () => { drawn.most = Math.max(drawn.most, inFrame); inFrame = 0; };
for (const name of ["drawImage", "lineTo", "arc"]) {
    const draw = CanvasRenderingContext2D.prototype[name];
    CanvasRenderingContext2D.prototype[name] = function (...args) {
        if (inFrame === 0) requestAnimationFrame(end);  // of the next frame, before what is drawn in that one
        inFrame += 1;
        drawn.all += 1;
        if (name === "drawImage") drawn.dots += 1;
        draw.apply(this, args);
    };
}
"""
PLACE = """([longitude, latitude]) => {  // where it is on the map, which tells its centre and zoom by this element
    const transform = document.querySelector(".leaflet-proxy").style.transform;
    const [x, y, , scale] = transform.match(/-?[0-9.e+]+(?=px|\\))/g).map(Number);
    const world = 512 * scale;
    const sine = Math.sin(latitude * Math.PI / 180);
    const { left, top, width, height } = document.querySelector(".map").getBoundingClientRect();
    return [
        left + width / 2 - x + world * (longitude / 360 + 0.5),
        top + height / 2 - y + world * (0.5 - Math.log((1 + sine) / (1 - sine)) / (4 * Math.PI)),
    ];
}"""
FIND_SHAPES = """async () => {
    const { shapesOf, shapeAt } = await import("/page/shapes.js");
    const square = (x) => [[[x, 0], [x + 9, 0], [x + 9, 9], [x, 9], [x, 0]]];
    const coordinates = {
        Point: [4, 4], MultiPoint: [[4, 4], [50, 50]],
        LineString: [[4, 4], [8, 8]], MultiLineString: [[[4, 4], [8, 8]]],
        Polygon: square(0), MultiPolygon: [square(0), square(40)],
    };
    const kinds = Object.keys(coordinates).map((type) => ({ type, coordinates: coordinates[type] }));
    kinds.push({ type: "GeometryCollection", geometries: [kinds[0], kinds[2], kinds[4]] });
    const found = {};
    for (const geometry of kinds) {
        const shapes = await shapesOf([{ geometry }]);
        const [{ left: x, top: y }] = await shapesOf([{ geometry: { type: "Point", coordinates: [4, 4] } }]);
        if (shapeAt(shapes, x, y, 0.1) && !shapeAt(shapes, x, y - 10, 0.1)) found[geometry.type] = shapes.length;
    }
    const empty = ["Polygon", "MultiPoint", "LineString", "MultiPolygon"].map((type) => ({ type, coordinates: [] }));
    const all = [...empty, { type: "GeometryCollection", geometries: [] }];
    found.empty = (await shapesOf(all.map((geometry) => ({ geometry })))).length;
    return found;
}"""
PRETEND_SENT = """() => {  // a browser that lets its requests be held back tells nothing of what it sends
    const send = XMLHttpRequest.prototype.send;
    XMLHttpRequest.prototype.send = function (body) {
        this.upload.dispatchEvent(new ProgressEvent("progress", { lengthComputable: true, loaded: 1, total: 1 }));
        send.call(this, body);
    };
}"""
CANCEL_UNTOLD = """() => {  // on a busy machine: the server has all of the file, and the page has not heard of it
    const send = XMLHttpRequest.prototype.send;
    XMLHttpRequest.prototype.send = function (body) {
        send.call(this, body);
        const start = performance.now();
        while (performance.now() - start < 1500);
        [...document.querySelectorAll("button")].find((button) => button.textContent === "Cancel").click();
    };
}"""
OTHER_EXAMPLES = 'tr.response[data-code]:not([data-code="200"]) pre'
"""The description's examples of all responses but one, whose thousand words have the colors of that one's."""
AXE = {"resultTypes": ["violations"], "rules": {"region": {"enabled": False}}}
"""What is reported; the rule that is left out takes a tenth of the time, and its findings are moderate."""
TELL_VIOLATIONS = """document.addEventListener("securitypolicyviolation", (event) =>
    console.error("violation of " + event.violatedDirective + " by " + event.blockedURI))"""
# The end of a transition begins those of the elements that inherit from it.
END_TRANSITIONS = """async () => {
    const drawn = () => new Promise((draw) => requestAnimationFrame(() => requestAnimationFrame(draw)));
    const transitions = () => document.getAnimations().filter((animation) => animation instanceof CSSTransition);
    await drawn();
    for (let running; (running = transitions()).length;) {
        running.forEach((transition) => transition.finish());
        await drawn();
    }
}"""


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def browser() -> AsyncIterator[Browser]:
    """One browser for all tests."""
    program = browser_program()
    if program is None:
        pytest.skip("Chromium is not installed (Debian: chromium)")
    async with async_playwright() as playwright:
        opened = await playwright.chromium.launch(executable_path=program, args=["--no-sandbox", "--disable-gpu"])
        yield opened
        await opened.close()


class Visit:
    """A page in a fresh browser context, as a person with a key sees it."""

    def __init__(self, page: Page, server: Server) -> None:
        self.page = page
        self._server = server
        self.faults: list[str] = []
        page.set_default_timeout(PATIENCE_MS)
        page.on("pageerror", lambda error: self.faults.append(str(error)))
        page.on("console", lambda message: self._note(message.text))
        page.on("request", lambda request: self._check(request.url))
        page.on("dialog", lambda dialog: self.faults.append(f"a dialog: {dialog.message}"))

    def _note(self, text: str) -> None:
        if "violation of" in text or "Content Security Policy" in text:
            self.faults.append(text)

    def _check(self, url: str) -> None:
        if not url.startswith((self._server.url, "blob:")):
            self.faults.append(f"a request to {url}")

    async def open(self, key: str) -> None:
        """Follow the link that the operator's terminal shows, and use its key."""
        await self.page.goto(page_link(self._server.url, key))
        await self.page.get_by_role("button", name="Use this key").press("Enter")
        await expect(self.page.locator("#convert-form")).to_be_visible(timeout=PATIENCE_MS)

    async def choose(self, *files: tuple[str, bytes]) -> None:
        """Choose files."""
        payload: Any = [
            {"name": name, "mimeType": "application/octet-stream", "buffer": content} for name, content in files
        ]
        await self.page.set_input_files("#files", payload)

    async def choose_large(self, path: Path, content: bytes) -> None:
        """Choose a file on the disk: to hand its contents to the browser takes seconds.

        A request that a test holds back (`route`) lacks them.
        """
        await asyncio.to_thread(path.write_bytes, content)
        await self.page.set_input_files("#files", path)

    async def convert(self, target: str = "GeoPackage") -> None:
        """Choose a format and start."""
        await self.page.select_option("#format", target)
        await self.page.click("#convert")

    async def ended(self, state: str, count: int = 1) -> None:
        """Wait until this many files have ended this way."""
        await expect(self.page.locator(f".state.{state}")).to_have_count(count, timeout=PATIENCE_MS)

    async def tells_what_became_of_its_job(self, client: Client) -> None:
        """Whether the account's only job was cancelled in time or not, the page says so."""
        await expect(self.page.locator(".state:not(.busy)")).to_have_text(re.compile("Cancelled|Converted"))
        shown = await self.page.locator(".state").text_content()
        [job] = client.get("/api/geo/convert/jobs").json()["jobs"]
        assert (job["status"], shown) in {("Failed", "Cancelled"), ("Completed", "Converted")}

    async def shoot(self, name: str, *, full_page: bool = True) -> None:
        """Save a screenshot for design reviews."""
        SCREENSHOTS.mkdir(parents=True, exist_ok=True)
        await self.page.screenshot(path=SCREENSHOTS / f"{name}.png", full_page=full_page)


@asynccontextmanager
async def visiting(browser: Browser, server: Server, **context: Any) -> AsyncIterator[Visit]:
    """Open a page in a fresh browser context; on exit, check that nothing forbidden has happened."""
    opened: BrowserContext = await browser.new_context(**context)
    await opened.add_init_script(TELL_VIOLATIONS)
    visit = Visit(await opened.new_page(), server)
    try:
        yield visit
        assert visit.faults == []
    finally:
        await opened.close()


@pytest_asyncio.fixture(loop_scope="module")
async def visit(browser: Browser, server: Server) -> AsyncIterator[Visit]:
    """A visit on a desktop."""
    async with visiting(browser, server, viewport={"width": 1280, "height": 900}) as opened:
        yield opened


async def assert_accessible(page: Page, within: str = "html", *, without: str | None = None) -> None:
    """Check that axe reports nothing serious once transitions have ended: nobody chose the colors in between.

    It takes seconds for a long page, of which it looks at what the selector `within` finds, but not `without`.
    """
    await page.evaluate(END_TRANSITIONS)
    found = await Axe().run(page, {"include": [within], "exclude": [without] if without else []}, AXE)
    serious = [one for one in found.response["violations"] if one["impact"] in {"serious", "critical"}]
    assert [(one["id"], [node["html"] for node in one["nodes"]]) for one in serious] == []


async def test_a_dropped_file_is_converted_and_seen(visit: Visit, client: Client) -> None:
    """With facts, a map, a table, a feature's attributes, and a download that matches the result."""
    page = visit.page
    await visit.open(client.key.api_key)
    assert "#" not in page.url
    await page.evaluate(DROP, ["#drop", [["lakes.geojson", lakes().decode()]]])
    await expect(page.locator("#chosen li")).to_have_count(1)
    await visit.convert()
    await visit.ended("completed")
    await expect(page.locator(".facts")).to_contain_text("3 features")
    await expect(page.locator(".map canvas").first).to_be_attached()
    await page.get_by_text("Table: 3 features").click()
    await page.get_by_role("button", name="Show feature 2 on the map").click()
    await expect(page.locator(".attributes dd").first).to_have_text("Ladoga")
    await visit.shoot("desktop")
    async with page.expect_download() as waiting:
        await page.get_by_role("link", name="Download the result of lakes.geojson").first.click()
    downloaded = await (await waiting.value).path()
    assert downloaded.read_bytes().startswith(b"SQLite format 3")


async def test_a_click_on_the_map_shows_attributes(visit: Visit, client: Client) -> None:
    """The attributes of the feature under the pointer."""
    await visit.open(client.key.api_key)
    await visit.choose(("hut.geojson", collection(feature(point(10, 50), name="Hut"))))
    await visit.convert("Kml")
    await visit.ended("completed")
    canvas = visit.page.locator(".map canvas").first
    await expect(canvas).to_be_attached()
    await visit.page.locator(".map").click()  # the only feature is in the middle
    await expect(visit.page.locator(".attributes")).to_contain_text("Hut")


async def test_the_map_tells_shapes_apart(visit: Visit, client: Client) -> None:
    """A click chooses the uppermost feature under the pointer: none in a hole of an area or beside a line."""
    hole = [[4, -6], [6, -6], [6, -4], [4, -4], [4, -6]]
    field = {"type": "Polygon", "coordinates": [[[0, -10], [10, -10], [10, 0], [0, 0], [0, -10]], hole]}
    road = {"type": "LineString", "coordinates": [[0, -2], [10, -2]]}
    page = visit.page
    await visit.open(client.key.api_key)
    await visit.choose(("land.geojson", collection(feature(field, name="Field"), feature(road, name="Road"))))
    await visit.convert("Kml")
    await visit.ended("completed")
    attributes = page.locator(".attributes")
    await expect(page.locator(".map canvas")).to_have_count(3)
    await page.locator(".map").scroll_into_view_if_needed()
    for place, name in (((5, -5), ""), ((2, -8), "Field"), ((5, -2), "Road"), ((5, -1), "Field")):
        await page.mouse.click(*await page.evaluate(PLACE, place))
        await expect(attributes).to_contain_text(name)
        if not name:
            await expect(attributes).to_be_empty()


async def test_many_features_are_drawn_little_by_little(visit: Visit, client: Client) -> None:
    """No frame draws them all, and after a drag and a zoom the map still shows what is there."""
    page = visit.page
    await page.add_init_script(COUNT_DRAWN)
    await page.emulate_media(color_scheme="dark")
    places = [(10 + number % 100 / 20, 50 + number // 100 / 20) for number in range(10_000)]
    await visit.open(client.key.api_key)
    await visit.choose(("grid.geojson", collection(*(feature(point(*place), n=1) for place in places))))
    await visit.convert("FlatGeobuf")
    await visit.ended("completed")
    await drawn(page, 10_000)
    seen = page.locator(".map")
    await seen.scroll_into_view_if_needed()
    box = await seen.bounding_box()
    assert box is not None
    x, y = box["x"] + box["width"] / 2, box["y"] + box["height"] / 2
    for begin in (page.mouse.move(x, y), page.mouse.down(), page.mouse.move(x + 60, y + 40, steps=5), page.mouse.up()):
        await begin
    await drawn(page, 15_000)
    await seen.press("+")
    await drawn(page, 16_000)
    assert await page.evaluate("drawn.most") <= 9000  # those of two layers
    await visit.shoot("many-dark")
    await page.get_by_text("Table: The first 50 of 10,000 features").click()
    await page.get_by_role("button", name="Show feature 7 on the map").click()
    await expect(page.locator(".attributes dd").first).to_have_text("1")


async def test_only_what_is_in_view_is_drawn_and_a_click_finds_it(visit: Visit, client: Client) -> None:
    """Of ten thousand points, those that the map shows now, after it was zoomed in and moved."""
    page = visit.page
    await page.add_init_script(COUNT_DRAWN)
    numbers = [(10 + number % 100 / 20, 50 + number // 100 / 20, number) for number in range(10_000)]
    await visit.open(client.key.api_key)
    await visit.choose(("grid.geojson", collection(*(feature(point(x, y), n=number) for x, y, number in numbers))))
    await visit.convert("GeoPackage")
    await visit.ended("completed")
    await drawn(page, 10_000)
    seen = page.locator(".map")
    await seen.scroll_into_view_if_needed()
    for _ in range(5):
        before = await page.locator(".leaflet-proxy").get_attribute("style") or ""
        await seen.press("+")
        await expect(page.locator(".leaflet-proxy")).not_to_have_attribute("style", before)
        await expect(page.locator(".leaflet-zoom-anim")).to_have_count(0)
    await page.evaluate("drawn.dots = 0")
    await seen.press("ArrowRight")
    await drawn(page, 2, "dots")
    assert await page.evaluate("drawn.dots") < 150
    for number in (5050, 5152):
        x, y, _ = numbers[number]
        await page.mouse.click(*await page.evaluate(PLACE, (x, y)))
        await expect(page.locator(".attributes dd").first).to_have_text(f"{number}")


async def drawn(page: Page, least: int, what: str = "all") -> None:
    """Wait until this many dots and corners, or only dots, have been drawn."""
    while await page.evaluate(f"drawn.{what}") < least:  # the page's policy allows no `wait_for_function`
        await page.wait_for_timeout(50)


async def test_a_preview_that_is_cut_says_so(visit: Visit, client: Client, tmp_path: Path) -> None:
    """With how many features it shows, of how many."""
    wide = {f"c{number}": "x" * 200 for number in range(100)}
    await visit.open(client.key.api_key)
    content = collection(*(feature(point(1, 2), **wide) for _ in range(300)))
    await visit.choose_large(tmp_path / "wide.geojson", content)
    await visit.convert("Csv")
    await visit.ended("completed")
    told = re.compile(r"^The preview shows the first 2\d\d of 300 features. The download has all of them.$")
    await expect(visit.page.locator(".preview .note")).to_have_text(told)


async def test_every_geometry_has_shapes(visit: Visit, server: Server) -> None:
    """Each part of every type is found where it is, and nowhere else; empty ones have none."""
    await visit.page.goto(server.url)
    assert await visit.page.evaluate(FIND_SHAPES) == {
        "Point": 1,
        "MultiPoint": 2,
        "LineString": 1,
        "MultiLineString": 1,
        "Polygon": 1,
        "MultiPolygon": 2,
        "GeometryCollection": 3,
        "empty": 0,
    }


async def test_loose_parts_of_a_shapefile_are_one_upload(visit: Visit, client: Client) -> None:
    """Beside another file, with a card for each upload; what is sent is what was chosen."""
    packed = client.download(client.convert("lakes.geojson", lakes(), outputFormat="Shapefile"))
    with zipfile.ZipFile(io.BytesIO(packed)) as archive:
        parts = [(name, archive.read(name)) for name in archive.namelist()]
    assert len(parts) > 3
    await visit.open(client.key.api_key)
    await visit.choose(*parts, ("huts.geojson", collection(feature(point(1, 2), name="Hut"))))
    await expect(visit.page.locator("#chosen .name")).to_have_text(["lakes.zip", "huts.geojson"])
    await visit.convert("Csv")
    await visit.ended("completed", 2)
    [job] = [
        one for one in client.get("/api/geo/convert/jobs").json()["jobs"] if one["originalFileName"] == "lakes.zip"
    ]
    assert "Vänern" in client.download({"downloadUrl": job["downloadUrl"]}).decode()


async def test_losses_are_a_table_and_a_failure_says_why(visit: Visit, client: Client) -> None:
    """A file that cannot be converted has the reason on its card, beside the card of a file that lost something."""
    lossy = collection(feature(point(1, 2), a_very_long_name="x" * 300))
    await visit.open(client.key.api_key)
    await visit.choose(("lossy.geojson", lossy), ("notes.xyz", b"?"), ("grid.csv", b"x,y\n500000,5000000\n"))
    await visit.convert("Shapefile")
    await visit.ended("completed")
    await visit.ended("failed", 2)
    losses = visit.page.get_by_role("region", name="What the Shapefile could not hold")
    await expect(losses).to_contain_text("a_very_lon")
    unknown, placeless = (visit.page.get_by_role("article", name=name) for name in ("notes.xyz", "grid.csv"))
    await expect(unknown.locator(".error")).to_contain_text(".xyz cannot be converted")
    await expect(placeless.locator(".hint")).to_contain_text("“Coordinate system of the input”")


async def test_fields_that_notes_name_are_named_as_in_the_form(visit: Visit, client: Client) -> None:
    """So are those of a refusal that names what the interface calls by an ordinary word."""
    await visit.open(client.key.api_key)
    await visit.choose(("grid.csv", b"name,rechts,hoch\na,3500000,5500000\n"), ("lakes.geojson", lakes()))
    await visit.convert("GeoJson")
    await visit.ended("completed")
    await visit.ended("failed")
    noted, refused = (visit.page.get_by_role("article", name=name) for name in ("grid.csv", "lakes.geojson"))
    await expect(noted.locator(".warnings .hint")).to_contain_text("“Column with x or longitude”")
    await expect(refused.locator(".hint")).to_have_text("In the form above: “Convert to”.")


@pytest.fixture
def broke(new_client: NewClient) -> Client:
    """A client without credit."""
    return new_client(wallet_cents=0)


async def test_a_limit_says_so(visit: Visit, broke: Client) -> None:
    """In the interface's words, with what would lift the limit."""
    await visit.open(broke.key.api_key)
    await visit.choose(("lakes.geojson", lakes()))
    await visit.convert()
    await visit.ended("failed")
    [job] = broke.get("/api/geo/convert/jobs").json()["jobs"]
    await expect(visit.page.locator(".card .error")).to_have_text(job["errorMessage"])
    await expect(visit.page.locator(".card")).to_contain_text("A larger plan lifts this limit.")


async def test_an_upload_can_be_cancelled(visit: Visit, client: Client) -> None:
    """Nothing of it remains on the server."""
    await visit.open(client.key.api_key)
    await visit.page.route("**/convert/file", lambda _route: None)  # the network hangs
    await visit.choose(("lakes.geojson", lakes()))
    await visit.convert()
    await visit.page.get_by_role("button", name="Cancel").click()
    await expect(visit.page.locator(".state.failed")).to_have_text("Cancelled")
    assert client.get("/api/geo/convert/jobs").json()["jobs"] == []


def hold_once_it_tells_how_far(client: Client) -> None:
    """Stop the converter of the account's only open job where it is known how much is done.

    Between two steps it is not, and the converter may have reached the next one when it stops.
    """
    while True:
        while not tells_how_far(client):
            time.sleep(0.02)
        signal_converters(signal.SIGSTOP, client.server.process.pid)
        time.sleep(SHOWN_SECONDS)
        if tells_how_far(client):
            return
        signal_converters(signal.SIGCONT, client.server.process.pid)


def tells_how_far(client: Client) -> bool:
    """Whether a job of the account shows how much of its step is done."""
    return any("share" in job.get("progress", {}) for job in client.get("/api/geo/convert/jobs").json()["jobs"])


async def test_an_upload_that_the_server_has_accepted_is_cancelled_with_its_job(visit: Visit, client: Client) -> None:
    """The response that names the job arrives later than the wish to cancel it, and the job does not end by itself."""
    page = visit.page
    holds, arrived = asyncio.Event(), asyncio.Event()

    async def hold(route: Route) -> None:
        response = await route.fetch()
        arrived.set()
        await holds.wait()
        await route.fulfill(response=response)

    await visit.open(client.key.api_key)
    await page.route("**/convert/file", hold)
    await page.evaluate(PRETEND_SENT)
    await visit.choose((NAME, endless_file()))
    await visit.convert("Csv")
    await arrived.wait()
    await page.get_by_role("button", name="Cancel").click()
    await expect(page.locator(".state")).to_have_text("Cancelling")
    holds.set()
    await visit.ended("failed")
    [job] = client.get("/api/geo/convert/jobs").json()["jobs"]
    assert (job["status"], job["errorMessage"]) == ("Failed", CANCELLED)


async def test_an_upload_of_which_the_page_hears_late_is_not_called_cancelled_too_early(
    visit: Visit, client: Client
) -> None:
    """The server may have accepted it: what the page shows is what became of the job."""
    await visit.open(client.key.api_key)
    await visit.page.evaluate(CANCEL_UNTOLD)
    await visit.choose(("lakes.geojson", lakes()))
    await visit.convert()
    await visit.tells_what_became_of_its_job(client)


async def test_an_upload_whose_response_was_lost_is_not_called_cancelled_while_the_server_is_busy(
    visit: Visit, client: Client
) -> None:
    """The server has accepted the first attempt, and refuses the second before it looks whether it knows the file."""
    page, begun = visit.page, list[str]()

    async def lose_then_refuse(route: Route) -> None:
        begun.append(route.request.url)
        if len(begun) == 1:
            await route.fetch()
            await route.abort()
        elif len(begun) == 2:
            await route.fulfill(status=503, headers={"Retry-After": "5"}, body="{}")
        else:
            await route.continue_()

    await visit.open(client.key.api_key)
    await page.route("**/convert/file", lose_then_refuse)
    await page.evaluate(PRETEND_SENT)
    await visit.choose(("lakes.geojson", lakes()))
    await visit.convert()
    await expect(page.locator(".state")).to_contain_text("busy")
    await page.get_by_role("button", name="Cancel").click()
    await visit.tells_what_became_of_its_job(client)


async def test_a_server_that_is_away_for_a_while_ends_nothing(visit: Visit, client: Client) -> None:
    """The page asks again, whether its file or the end of the job is in question, and converts once."""
    page = visit.page
    broken: list[str] = []

    async def break_once(route: Route) -> None:
        kind = route.request.url.rpartition("/")[2].partition("?")[0]
        if kind in broken:
            await route.continue_()
        else:
            broken.append(kind)
            if kind == "file":
                await route.fetch()  # the server has it, and its response is lost
            await route.abort()

    await visit.open(client.key.api_key)
    await page.route(re.compile("/convert/(file|jobs/.*/(status|result))"), break_once)
    await visit.choose(("lakes.geojson", lakes()))
    await visit.convert()
    await visit.ended("completed")
    assert sorted(broken) == ["file", "result", "status"]
    assert client.usage()[0] == 1


async def test_a_conversion_can_be_cancelled(visit: Visit, client: Client, tmp_path: Path) -> None:
    """It shows how much is done; its job fails and is free."""
    await visit.open(client.key.api_key)
    await visit.choose_large(tmp_path / "many.shp", bare_points(400_000))
    await visit.page.get_by_text("More options").click()
    await visit.page.get_by_role("combobox", name="Coordinate system of the input").fill("4326")
    await visit.page.locator("#sourceEpsg-list li").first.click()
    await visit.convert("GeoPackage")
    await asyncio.to_thread(hold_once_it_tells_how_far, client)
    how_far = re.compile(r"(Reading the file|Converting|Checking the result), \d+ %")
    await expect(visit.page.locator(".state")).to_have_text(how_far, timeout=PATIENCE_MS)
    await expect(visit.page.locator("progress")).to_have_attribute("value", re.compile(r"^[01]"))
    cancel = visit.page.get_by_role("button", name="Cancel")
    await cancel.focus()
    async with visit.page.expect_response(lambda response: "/status" in response.url):
        pass
    await expect(cancel).to_be_focused()
    await cancel.press("Enter")
    await expect(visit.page.locator(".state.failed")).to_have_text("Cancelled", timeout=PATIENCE_MS)
    await expect(visit.page.get_by_role("heading", name="many.shp")).to_be_focused()
    await expect(visit.page.locator(".card .error")).to_contain_text("Nothing was counted")
    assert client.usage() == (0, 0)


async def test_a_conversion_that_has_ended_is_not_erased_by_cancelling(visit: Visit, client: Client) -> None:
    """The page had not seen the end when it sent the wish."""
    page, asked, may_tell = visit.page, asyncio.Event(), asyncio.Event()

    async def hold(route: Route) -> None:
        asked.set()
        await may_tell.wait()
        await route.continue_()

    await visit.open(client.key.api_key)
    await page.route("**/status?*", hold)
    await visit.choose(("lakes.geojson", lakes()))
    await visit.convert()
    await asked.wait()
    [job] = client.get("/api/geo/convert/jobs").json()["jobs"]
    address = f"/api/geo/convert/jobs/{job['jobId']}/status?wait=60"
    assert (await asyncio.to_thread(client.get, address)).json()["status"] == "Completed"
    async with page.expect_response(re.compile("only=open")) as answered:
        await page.get_by_role("button", name="Cancel").click()
    assert (await answered.value).status == 409
    may_tell.set()
    await visit.ended("completed")
    await expect(page.locator(".card").get_by_role("link", name="Download")).to_be_visible()


async def test_a_result_can_be_deleted(visit: Visit, client: Client) -> None:
    """After a confirmation; its link stops working, and its map disappears."""
    await visit.open(client.key.api_key)
    await visit.choose(("lakes.geojson", lakes()))
    await visit.convert()
    await visit.ended("completed")
    await expect(visit.page.locator(".map canvas").first).to_be_attached()
    link = await visit.page.locator(".card a.main").get_attribute("href")
    await visit.page.get_by_role("button", name="Delete the result").click()
    await visit.page.get_by_role("button", name="Delete for good?").click()
    await visit.ended("expired")
    assert await visit.page.locator(".map").count() == 0
    assert client.get(str(link)).status_code == 410


async def test_a_link_that_has_expired_is_renewed(visit: Visit, client: Client) -> None:
    """A page that was left open for days can still download what the server keeps."""
    client.convert("lakes.geojson", lakes(), outputFormat="Csv")
    page = visit.page
    await visit.open(client.key.api_key)
    link = page.get_by_role("link", name="Download the result of lakes.geojson")
    await expect(link).to_be_visible()
    await page.clock.set_fixed_time("2100-01-01T00:00:00Z")
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    async with page.expect_download() as waiting:
        await link.click()
    assert "Ladoga" in (await (await waiting.value).path()).read_text(encoding="utf-8")
    assert any(url.endswith("/status") for url in asked)


def evil_layers() -> bytes:
    """A KML file with evil names of its folders, columns and values."""
    name = escape(EVIL.replace("/", ""))
    data = f'<ExtendedData><Data name="{escape(EVIL)}"><value>{escape(EVIL)}</value></Data></ExtendedData>'
    place = f"<Placemark><name>{name}</name>{data}<Point><coordinates>1,2</coordinates></Point></Placemark>"
    folders = "".join(f"<Folder><name>{name}{number}</name>{place}</Folder>" for number in (1, 2))
    return f'<kml xmlns="http://www.opengis.net/kml/2.2"><Document>{folders}</Document></kml>'.encode()


async def test_nothing_of_a_file_becomes_markup(visit: Visit, client: Client) -> None:
    """Names of files, layers, columns, systems, values, and messages that repeat them."""
    name = EVIL.replace("/", "")
    document = collection(feature(point(1, 2), **{EVIL: EVIL}), feature(point(3, 4), **{EVIL: f"{EVIL} 2"}))
    system = json.dumps({"type": "name", "properties": {"name": EVIL}}).encode()
    page = visit.page
    await visit.open(client.key.api_key)
    await visit.choose(
        (f"{name}.geojson", document),
        (f"{name}.xyz", b"?"),
        ("system.geojson", document.replace(b'{"type"', b'{"crs": ' + system + b', "type"', 1)),
    )
    await visit.convert("Shapefile")
    await visit.ended("completed")
    await visit.ended("failed", 2)
    await page.get_by_text("Table: 2 features").click()
    await page.get_by_role("button", name="Show feature 1 on the map").click()
    await expect(page.locator(".attributes dd").first).to_have_text(EVIL)
    await expect(page.locator(".warnings, .card table").first).to_contain_text("<img")
    await expect(page.locator("#history .name", has_text="<img")).to_have_count(2)

    await visit.choose(("layers.kml", evil_layers()))
    await visit.convert("GeoPackage")
    await visit.ended("completed", 2)
    await expect(page.locator(".map canvas").first).to_be_attached()
    layers = page.get_by_role("article", name="layers.kml")
    await layers.get_by_text("Table: 2 features").click()
    await layers.get_by_role("button", name="Show feature 1 on the map").click()
    await expect(layers.locator(".attributes h4")).to_contain_text("img_src_x")  # as the service writes it
    await visit.choose(("layers.kml", evil_layers()))
    await visit.convert("Csv")
    await visit.ended("failed", 3)
    await expect(page.locator(".card").first).to_contain_text("Layers in the file")
    assert await page.locator("main img, main script, article img").count() == 0


async def test_a_key_is_asked_for_and_kept_in_the_tab_only(visit: Visit, server: Server, client: Client) -> None:
    """By keyboard: an invalid key is refused, a valid one opens the form, and nothing stays behind."""
    page = visit.page
    await page.goto(server.url)
    await expect(page.locator("#key")).to_be_focused()
    await assert_accessible(page)
    await page.keyboard.type("gm_wrong")
    await page.keyboard.press("Enter")
    await expect(page.locator("#key-error")).to_contain_text("does not know this key")
    await expect(page.locator("#key")).to_be_focused()
    await page.keyboard.type(client.key.api_key)
    await page.keyboard.press("Enter")
    await expect(page.locator("#convert-form")).to_be_visible()
    assert await page.evaluate("JSON.stringify([{...localStorage}, document.cookie])") == '[{},""]'
    await page.reload()
    await expect(page.locator("#convert-form")).to_be_visible()
    await page.get_by_role("button", name="Forget the key").click()
    await expect(page.locator("#key-form")).to_be_visible()


@pytest.fixture
def stranger(new_client: NewClient) -> Client:
    """A client whose key is put into a link by somebody else."""
    return new_client("free")


async def test_a_link_brings_a_key_and_never_replaces_one(
    visit: Visit, server: Server, client: Client, stranger: Client
) -> None:
    """Anyone can forge such a link, so its key is used only after a click, and never in a tab that has a key."""
    page = visit.page
    sent: list[str | None] = []
    page.on("request", lambda request: sent.append(request.headers.get("x-api-key")))
    await page.goto(page_link(server.url, client.key.api_key))
    await expect(page.get_by_role("button", name="Use this key")).to_be_focused()
    await expect(page.locator("#key-hint")).to_contain_text("only if you trust the link")
    assert "#" not in page.url
    assert set(sent) == {None}
    await assert_accessible(page)
    await page.keyboard.press("Enter")
    await expect(page.locator("#convert-form")).to_be_visible()
    await page.goto(page_link(server.url, stranger.key.api_key))  # does not load the page again
    await page.get_by_role("button", name="Refresh").click()
    await page.reload()
    await expect(page.locator("#convert-form")).to_be_visible()
    assert "#" not in page.url
    assert set(sent) == {None, client.key.api_key}


async def test_a_site_that_opens_the_page_has_no_hold_of_it(browser: Browser, server: Server) -> None:
    """It cannot navigate the page to another address afterwards."""
    async with await browser.new_context() as context:
        context.set_default_timeout(PATIENCE_MS)
        other = await context.new_page()
        await other.goto(server.url.replace("127.0.0.1", "localhost"))  # which is another site
        async with other.expect_popup() as waiting:
            await other.evaluate("url => { window.opened = window.open(url) }", server.url)
        popup = await waiting.value
        await expect(popup.locator("#key")).to_be_visible()
        assert await other.evaluate("window.opened.closed")  # as far as it can tell


async def test_a_system_is_found_and_chosen_with_the_keyboard(visit: Visit, client: Client) -> None:
    """The result is then in that system."""
    page = visit.page
    await visit.open(client.key.api_key)
    system = page.get_by_role("combobox", name="Coordinate system of the result")
    await system.focus()
    await page.keyboard.type("wgs 84 utm 33n")
    await expect(page.locator("#targetEpsg-list li")).to_have_count(3)  # as many as all that was typed leaves
    await page.keyboard.press("ArrowDown")
    await page.keyboard.press("Enter")
    await expect(system).to_have_value("32633 · WGS 84 / UTM zone 33N")
    await visit.choose(("lakes.geojson", collection(feature(point(15, 50), name="Hut"))))
    await visit.convert()
    await visit.ended("completed")
    await expect(page.locator(".facts")).to_contain_text("EPSG:32633")


async def tab_to(page: Page, place: Locator, key: str = "Tab") -> None:
    """Press Tab until the focus is there; nothing but the order of the page brings it there."""
    for _ in range(MOST_STOPS):
        await page.keyboard.press(key)
        if await place.evaluate("node => node === document.activeElement"):
            return
    pytest.fail(f"Tab does not reach {place}")


async def test_the_keyboard_is_enough(visit: Visit, server: Server, client: Client) -> None:
    """From the key to files and format, the map, the table, the download and the deletion; the focus is never lost."""
    page = visit.page
    press = page.keyboard.press
    page.on("filechooser", lambda _chooser: None)  # the browser is told now to open none: later may be too late
    await page.goto(server.url)
    await expect(page.locator("#key")).to_be_focused()
    await page.keyboard.type(client.key.api_key)
    await press("Enter")
    await expect(page.get_by_role("button", name="Choose files")).to_be_focused()
    async with page.expect_file_chooser() as choosing:
        await press("Enter")
    await (await choosing.value).set_files({"name": "lakes.geojson", "mimeType": "", "buffer": lakes()})
    await expect(page.locator("#chosen li")).to_have_count(1)
    await tab_to(page, formats := page.locator("#format"))
    await press("K")  # alone: on a busy host, a second letter may count as the first one of another name
    await expect(formats).to_have_value("Kml")
    await tab_to(page, page.locator("#convert"))
    await press("Enter")
    await visit.ended("completed")
    place = page.locator(".map")
    await expect(place.locator("canvas").first).to_be_attached()
    await tab_to(page, place)
    for key, part in (("ArrowRight", ".leaflet-map-pane"), ("+", ".leaflet-proxy")):
        moved = page.locator(part)
        before = await moved.get_attribute("style") or ""
        await press(key)
        await expect(moved).not_to_have_attribute("style", before)
    await tab_to(page, page.get_by_text("Table: 3 features"))
    await press("Enter")
    shown = page.get_by_role("button", name="Show feature 2 on the map")
    await tab_to(page, shown)
    await press("Enter")
    await expect(page.locator(".attributes")).to_contain_text("Ladoga")
    await tab_to(page, page.get_by_role("button", name="Close"), "Shift+Tab")
    await press("Enter")
    await expect(shown).to_be_focused()
    await tab_to(page, page.locator(".card a.main"), "Shift+Tab")
    async with page.expect_download() as waiting:
        await press("Enter")
    assert "Ladoga" in (await (await waiting.value).path()).read_text(encoding="utf-8")
    await tab_to(page, page.get_by_role("button", name="Delete the result"))
    await press("Enter")
    await press("Enter")
    await visit.ended("expired")
    await expect(page.get_by_role("heading", name="lakes.geojson")).to_be_focused()
    await tab_to(page, page.get_by_role("button", name="Hide"))
    await press("Enter")
    await expect(page.get_by_role("button", name="Choose files")).to_be_focused()
    await expect(page.get_by_role("heading", name="Results")).to_be_hidden()


@pytest.mark.parametrize(("width", "scheme"), [(1280, "light"), (1280, "dark"), (PHONE, "dark")])
async def test_every_state_is_accessible(
    browser: Browser, server: Server, client: Client, scheme: str, width: int
) -> None:
    """Empty, with chosen files and options, while files are sent, with results, failures, losses and earlier jobs.

    On a phone, nothing scrolls sideways.
    """
    size = {"width": width, "height": 800}
    async with visiting(browser, server, viewport=size, color_scheme=scheme, has_touch=width == PHONE) as visit:
        page = visit.page
        lossy = collection(feature(point(1, 2), a_very_long_name="x" * 300))
        await visit.open(client.key.api_key)
        await expect(page.locator("#history")).to_contain_text("no conversions yet")
        await assert_accessible(page)
        await page.locator("#convert").click()  # without a file
        await visit.choose(("lossy.geojson", lossy), ("notes.xyz", b"?"))
        await page.get_by_text("More options").click()
        await page.locator("#targetEpsg").fill("utm 33n")
        await expect(page.locator("#targetEpsg-list li").first).to_be_visible()
        await assert_accessible(page)
        await page.locator("#targetEpsg").fill("4326")
        going: asyncio.Queue[Route] = asyncio.Queue()
        await page.route("**/convert/file", going.put)
        await visit.convert("Shapefile")
        routes = [await going.get(), await going.get()]
        await assert_accessible(page)
        for route in routes:
            await route.continue_()
        await visit.ended("completed")
        await visit.ended("failed")
        await expect(page.locator(".map canvas").first).to_be_attached()
        await page.get_by_text("Table: 1 feature").click()
        await page.get_by_role("button", name="Show feature 1 on the map").click()
        await expect(page.locator("#history .badge")).to_have_count(2)
        await assert_accessible(page)
        assert await page.evaluate("document.documentElement.scrollWidth") <= width
        cut = "(nodes) => nodes.filter((node) => node.scrollWidth > node.clientWidth).length"
        assert await page.locator(".card .scroll, #history .scroll").evaluate_all(cut) == 0
        await visit.shoot(f"states-{width}-{scheme}")


async def test_an_earlier_conversion_is_opened_again(visit: Visit, client: Client) -> None:
    """With what it lost, from the list of this key's jobs."""
    client.convert("lossy.geojson", collection(feature(point(1, 2), a_very_long_name=1)), outputFormat="Shapefile")
    await visit.open(client.key.api_key)
    await visit.page.get_by_role("button", name="Details of lossy.geojson").click()
    await visit.ended("completed")
    await expect(visit.page.locator(".card")).to_contain_text("a_very_lon")
    await expect(visit.page.locator(".map canvas").first).to_be_attached()


async def test_the_description_is_read_and_sends_requests(visit: Visit, server: Server, client: Client) -> None:
    """Under the same policy, except for icons in its style sheet, with a choice of files and formats.

    It is for a phone in the light and for a desktop in the dark, also with a response, and shows hostile names as text.
    """
    page = visit.page
    await page.emulate_media(color_scheme="dark")
    await page.goto(f"{server.url}/docs")
    await expect(page.locator("html.dark-mode")).to_be_attached()
    await page.get_by_role("button", name="Authorize").first.click()
    await assert_accessible(page, ".dialog-ux")
    key = page.get_by_label("auth-apikey-value").or_(page.locator(".auth-container input"))
    await key.first.fill(client.key.api_key)
    await page.locator(".auth-btn-wrapper .authorize").click()
    await page.locator(".auth-btn-wrapper .btn-done").click()
    convert = page.locator("#operations-Conversions-convertFile")
    await convert.locator(".opblock-summary-control").click()
    await show_whole_description(visit, "light", PHONE)

    await expect(convert.locator("option", has_text="GeoPackage").first).to_be_attached()
    response = convert.locator(".live-responses-table")
    await send_described(convert, "lakes.geojson", lakes())
    await expect(response.locator("tbody .response-col_status").first).to_contain_text("200")
    [job] = client.get("/api/geo/convert/jobs").json()["jobs"]
    assert job["status"] == "Completed"
    await show_whole_description(visit, "dark", 1280)

    await send_described(convert, f"{EVIL.replace('/', '')}.xyz", b"?")
    await expect(response).to_contain_text("cannot be converted")
    jobs = page.locator("[id^=operations-][id$=-recentJobs]")
    await jobs.locator(".opblock-summary-control").click()
    await jobs.get_by_role("button", name="Execute").click()
    await expect(jobs.locator(".live-responses-table")).to_contain_text("<img src=x")
    assert await page.locator(".live-responses-table img, .live-responses-table script").count() == 0


async def send_described(operation: Locator, name: str, content: bytes) -> None:
    """Convert a file by the form of the description."""
    payload: Any = {"name": name, "mimeType": "", "buffer": content}
    await operation.locator("input[type=file]").set_input_files(payload)
    await operation.get_by_role("button", name="Execute").click()


async def show_whole_description(visit: Visit, scheme: Literal["dark", "light"], width: int) -> None:
    """Check that all of the description is accessible and as wide as the screen."""
    page = visit.page
    await page.emulate_media(color_scheme=scheme)
    await page.set_viewport_size({"width": width, "height": 740})
    await expect(page.locator("html.dark-mode")).to_have_count(int(scheme == "dark"))
    await assert_accessible(page, without=OTHER_EXAMPLES)
    assert await page.evaluate("document.documentElement.scrollWidth") <= width
    await page.locator("#operations-Conversions-convertFile .opblock-summary-control").scroll_into_view_if_needed()
    await visit.shoot(f"docs-{width}", full_page=False)  # all of it takes seconds to draw


async def test_a_first_visit_loads_little(server: Server) -> None:
    """What the page names and imports, compressed, without what only the map needs."""
    sizes: dict[str, int] = {}
    pending = ["/"]
    browser = httpx.AsyncClient(base_url=server.url, headers={"Accept-Encoding": "gzip"})
    while pending:
        path = pending.pop()
        response = await browser.get(path)
        sizes[path] = int(response.headers["content-length"])
        text = response.text
        named = [part.split('"')[0] for mark in ('src="', 'href="page/', 'from "./') for part in text.split(mark)[1:]]
        found = {f"/page/{name.removeprefix('page/')}" for name in named}
        pending += sorted(found - sizes.keys() - set(pending))
    await browser.aclose()
    assert len(sizes) > 8
    assert sum(sizes.values()) < 150_000
