"""Compares what clients were told with what is there in the end: nothing lost, nothing twice, nothing left behind."""

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import psutil

from bench.fleet.clients import GOOD, ClientRecord
from service.jobs.leases import MOST_DEATHS, POISON
from tests.fleet.site import Site

_JOBS = """
SELECT id::text, original_file_name AS name, status, completed_at, error_message, interrupted, deaths, attempt,
       input_key, object_key, preview_key
  FROM job
"""


def is_idle(site: Site) -> bool:
    """Whether nothing is under way any more: no job, no message, no file of work, no process that was left behind."""
    servers = (*site.gateways, *site.workers)
    return not (
        site.rows("SELECT FROM job WHERE completed_at IS NULL LIMIT 1")
        or site.messages()
        or any(server.work_files() for server in servers)
        or any(left_processes(site.directory, (server.process.pid for server in servers)))
    )


def differences(site: Site, memory: ClientRecord, suspected: Mapping[str, set[str]]) -> list[str]:
    """Return a sentence for everything that is wrong, once the fleet is idle."""
    jobs = {row["id"]: row for row in site.rows(_JOBS)}
    return [
        *memory.wrong,
        *_told(jobs, memory),
        *_innocents(jobs, memory, suspected),
        *_twice(jobs, memory),
        *_books(site, jobs),
        *site.audit(),
    ]


def _told(jobs: Mapping[str, dict[str, Any]], memory: ClientRecord) -> Iterator[str]:
    """What clients were told and is not so."""
    for job_id in memory.promised | memory.answered.keys():
        job = jobs.get(job_id)
        if job is None:
            yield f"The job {job_id}, which a client was told of, does not exist."
        elif job["completed_at"] is None:
            yield f"The job {job_id} has not ended: {job}"
        elif memory.answered.get(job_id, job["status"] == "Completed") != (job["status"] == "Completed"):
            yield f"A client was told that {job_id} ended otherwise: {job}"


def _innocents(
    jobs: Mapping[str, dict[str, Any]], memory: ClientRecord, suspected: Mapping[str, set[str]]
) -> Iterator[str]:
    """Good files that failed, unless their gateway died while it alone had them, or a converter did three times."""
    for job_id, job in jobs.items():
        if job["name"].partition("-")[0] not in GOOD or job["status"] != "Failed":
            continue
        if job["error_message"] == POISON:
            if len(suspected.get(job_id, ())) < MOST_DEATHS:
                yield f"A file failed as poison that was not in a converter at {MOST_DEATHS} kills: {job}"
        elif not job["interrupted"]:
            yield f"A good file failed: {job}"
        elif job_id in memory.promised:
            yield f"A promised job failed: {job}"


def _twice(jobs: Mapping[str, dict[str, Any]], memory: ClientRecord) -> Iterator[str]:
    """Files that were converted twice under one idempotency key."""
    for name, told in memory.repeated.items():
        completed = [job_id for job_id, job in jobs.items() if (job["name"], job["status"]) == (name, "Completed")]
        if set(completed) != told or len(completed) != 1:
            yield f"{name} has one key and these jobs: {completed}; clients were told of {sorted(told)}"


def _books(site: Site, jobs: Mapping[str, dict[str, Any]]) -> Iterator[str]:
    """Rows, objects, inputs and files that belong to nothing."""
    completed = {job_id: job for job_id, job in jobs.items() if job["status"] == "Completed"}
    charged = [row["job_id"] for row in site.rows("SELECT job_id::text FROM ledger")]
    erased = [job_id for job_id, job in jobs.items() if job["status"] == "Expired"]
    if sorted(charged) != sorted([*completed, *erased]):
        yield f"{len(completed) + len(erased)} jobs completed, {len(charged)} were charged."
    stored, results = site.stored(), {job["object_key"] for job in completed.values()}
    previews = {job["preview_key"] for job in completed.values()}
    if (strays := stored - results - previews) or not results <= stored:
        yield f"{len(completed)} jobs completed; without a job: {strays}; without an object: {results - stored}"
    for name, count in {
        "jobs are open": sum(job["completed_at"] is None for job in jobs.values()),
        "inputs are recorded": sum(job["input_key"] is not None for job in jobs.values()),
        "messages are in the queue": site.messages(),
    }.items():
        if count:
            yield f"{count} {name}."
    yield from (f"{path} is left." for server in (*site.gateways, *site.workers) for path in server.work_files())
    yield from left_processes(site.directory, (server.process.pid for server in (*site.gateways, *site.workers)))


def left_processes(directory: Path, parents: Iterable[int]) -> Iterator[str]:
    """Processes of gateways and workers that were killed."""
    living = {
        child.pid for parent in map(psutil.Process, parents) for child in (parent, *parent.children(recursive=True))
    }
    for process in psutil.process_iter():
        try:
            if process.pid not in living and str(directory) in process.environ().get("GEOMILL_DATA_DIR", ""):
                yield f"The process {process.pid} outlived its parent: {process.cmdline()[:4]}"
        except psutil.Error:
            continue
