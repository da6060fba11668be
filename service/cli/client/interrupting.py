"""What becomes of the job of an interrupted conversion: it is cancelled if it is open, and kept if it has ended."""

import http.client
from collections.abc import Mapping
from typing import Any

from service.cli.client.http import Exchange, Reply

CANCEL_SECONDS = 5.0
"""How long an interrupted conversion waits for the response to its upload, and to each question about its job."""
OPEN = frozenset({"Pending", "Processing"})
"""The states of a job that has not ended."""


def kept(api: str, job_id: str) -> str:
    """Say where the result of a complete job is."""
    return f"Job {job_id} is complete: {api}/jobs/{job_id}/result links to its result."


def end_job(api: str, headers: Mapping[str, str], job_id: str) -> str:
    """Cancel a job unless it has ended; return what there is to say, "" if it was cancelled. Blocks.

    The server erases the result of a job that has completed when it is to cancel it: hence the question first. A job
    that completes between the two requests is charged and erased, which the record tells afterwards.
    """
    url = f"{api}/jobs/{job_id}"
    before = _record("GET", f"{url}/status", headers)
    if before is None:
        return _unconfirmed(job_id)
    if before["status"] not in OPEN:
        return _ended(api, before, erased="its result is no longer kept.")
    _ask("DELETE", url, headers)
    after = _record("GET", f"{url}/status", headers)
    if after is None or after["status"] in OPEN:
        return _unconfirmed(job_id)
    if after["status"] == "Failed":
        return ""
    return _ended(api, after, erased="it was charged, and its result was erased before it could be fetched.")


def _ended(api: str, record: Mapping[str, Any], erased: str) -> str:
    job_id = record["jobId"]
    if record["status"] == "Failed":
        return f"Job {job_id} had failed: {record.get('errorMessage')}"
    if "downloadUrl" in record:
        return kept(api, job_id)
    return f"Job {job_id} was completed before it could be cancelled: {erased}"


def _unconfirmed(job_id: str) -> str:
    return f"The server does not confirm that job {job_id} is cancelled."


def _record(method: str, url: str, headers: Mapping[str, str]) -> dict[str, Any] | None:
    reply = _ask(method, url, headers)
    return reply.body if reply is not None and reply.is_job else None


def _ask(method: str, url: str, headers: Mapping[str, str]) -> Reply | None:
    """Send one request; return None if the server does not respond."""
    exchange = Exchange(url, CANCEL_SECONDS)
    try:
        return Reply(exchange.send(method, headers))
    except (OSError, http.client.HTTPException):
        return None
    finally:
        exchange.close()
