"""What people do on the page, and clients that want the result at once: each as the page's own script does it."""

import asyncio
from http import HTTPStatus
from typing import Any

from bench.load.documents import document, small_document
from bench.load.load import OK
from bench.load.paths import JOBS, SINGLE
from bench.load.visitor import Row, Visitor, first_wrong, what, with_status
from bench.measure.meter import MEGABYTE

WAIT_SECONDS = 30
OPEN = frozenset({"Pending", "Processing"})
SEARCHES = ("utm 33n", "4326", "lambert", "RGF93", "web mercator")


async def _accept(visitor: Visitor, content: bytes, target: str, key: dict[str, str]) -> str:
    """Upload a file without waiting for its end; return the id of its job, empty if it was not accepted."""
    headers = {**key, "Prefer": "respond-async"}
    response = await visitor.convert("places.geojson", content, {"outputFormat": target}, headers=headers)
    return str(response.json()["jobId"]) if response.status_code == HTTPStatus.ACCEPTED else ""


async def _end(visitor: Visitor, job_id: str, key: dict[str, str]) -> dict[str, Any]:
    """Wait until a job has ended."""
    job: dict[str, Any] = {"status": "Pending"}
    while job["status"] in OPEN:
        job = (await visitor.get(f"{JOBS}/{job_id}/status?wait={WAIT_SECONDS}", key)).json()
    return job


async def _convert_and_look(visitor: Visitor) -> str:
    """Convert a file, see what was lost and the result on a map, look for a system, and erase the result."""
    key = visitor.key()
    job_id = await _accept(visitor, small_document(), visitor.random.choice(("Shapefile", "GeoPackage", "Kml")), key)
    if not job_id:
        return "a file of the page was not accepted"
    job = await _end(visitor, job_id, key)
    if job["status"] != "Completed":
        return f"a job of the page is {job['status']}"
    result = await visitor.get(f"{JOBS}/{job_id}/result", key)
    preview = await visitor.get(f"{JOBS}/{job_id}/preview", key)
    systems = await visitor.get(f"/api/geo/systems?search={visitor.random.choice(SEARCHES)}", key)
    found = (with_status(answer, HTTPStatus.OK) for answer in (result, preview, systems))
    erased = await visitor.client.delete(f"{visitor.site.prefix}{JOBS}/{job_id}", headers=key)
    gone = await visitor.get(f"{JOBS}/{job_id}/preview", key)
    return first_wrong(*found, with_status(erased, HTTPStatus.NO_CONTENT), with_status(gone, HTTPStatus.CONFLICT))


async def _change_ones_mind(visitor: Visitor) -> str:
    """Cancel a conversion at any moment; it ends without a charge, or was faster."""
    key = visitor.key()
    job_id = await _accept(visitor, document(MEGABYTE), "Csv", key)
    if not job_id:
        return "a file of the page was not accepted"
    await asyncio.sleep(visitor.random.random())
    cancelled = await visitor.client.delete(f"{visitor.site.prefix}{JOBS}/{job_id}", headers=key)
    job = await _end(visitor, job_id, key)
    ended = OK if job["status"] in {"Failed", "Expired"} else f"a cancelled job is {job['status']}"
    return first_wrong(with_status(cancelled, HTTPStatus.NO_CONTENT), ended)


async def _deliver(visitor: Visitor) -> str:
    """Get the result itself as the response."""
    response = await visitor.convert("places.geojson", small_document(), path=f"{SINGLE}?download=true")
    return OK if response.content.startswith(b"PK") else what(response)


async def _open(visitor: Visitor) -> str:
    """Open the page."""
    return with_status(await visitor.get("/"), HTTPStatus.OK)


PAGE: dict[str, Row] = {
    "page: convert and look": Row(8, _convert_and_look),
    "page: change one's mind": Row(3, _change_ones_mind),
    "page: open": Row(3, _open),
    "result as the response": Row(8, _deliver),
}
