"""What becomes of the job of an interrupted conversion: it is cancelled if it is open, and kept if it has completed."""

import http.client
from collections.abc import Mapping

from service.cli.client.http import HttpExchange, Reply

CANCEL_SECONDS = 5.0
"""How long an interrupted conversion waits for the response to its upload, and to the cancellation of its job."""
OPEN = frozenset({"Pending", "Processing"})
"""The states of a job that has not ended."""


def kept(api: str, job_id: str) -> str:
    """Say where the result of a complete job is."""
    return f"Job {job_id} is complete: {api}/jobs/{job_id}/result links to its result."


def end_job(api: str, headers: Mapping[str, str], job_id: str) -> str:
    """Cancel a job unless it has completed; return what there is to say, "" if nothing is charged for it. Blocks."""
    reply = _ask("DELETE", f"{api}/jobs/{job_id}?only=open", headers)
    if reply is None:
        return _unconfirmed(job_id)
    if reply.status == http.client.NO_CONTENT:
        return ""
    match reply.body.get("status") if reply.status == http.client.CONFLICT else None:
        case "Completed":
            return kept(api, job_id)
        case "Expired":
            return f"Job {job_id} was completed before it could be cancelled: its result is no longer kept."
    return _unconfirmed(job_id)


def _unconfirmed(job_id: str) -> str:
    return f"The server does not confirm that job {job_id} is cancelled."


def _ask(method: str, url: str, headers: Mapping[str, str]) -> Reply | None:
    """Send one request; return None if the server does not respond."""
    exchange = HttpExchange(url, CANCEL_SECONDS)
    try:
        return Reply(exchange.send(method, headers))
    except (OSError, http.client.HTTPException):
        return None
    finally:
        exchange.close()
