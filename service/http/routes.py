"""Every endpoint: method, path, what answers. The one place to look for an address."""

from starlette.routing import Route

from service.http.auth import needs_key
from service.http.endpoints.analyze import analyze
from service.http.endpoints.convert import convert_file, convert_files, convert_upload
from service.http.endpoints.files import download_file
from service.http.endpoints.formats import list_formats
from service.http.endpoints.health import healthz, readyz
from service.http.endpoints.jobs import job_status, recent_jobs
from service.http.endpoints.pricing import list_plans

API = "/api/geo"

ROUTES: tuple[Route, ...] = (
    Route(f"{API}/convert/file", needs_key(convert_file), methods=["POST"]),
    Route(f"{API}/convert/batch", needs_key(convert_files), methods=["POST"]),
    Route(f"{API}/convert/analyze", needs_key(analyze), methods=["POST"]),
    Route(f"{API}/convert/upload", needs_key(convert_upload), methods=["POST"]),
    Route(f"{API}/convert/jobs", needs_key(recent_jobs), methods=["GET"], name="recent_jobs"),
    Route(f"{API}/convert/jobs/{{job_id}}/status", needs_key(job_status), methods=["GET"], name="job_status"),
    Route(f"{API}/formats", needs_key(list_formats), methods=["GET"]),
    Route(f"{API}/pricing/tiers", needs_key(list_plans), methods=["GET"]),
    Route("/files/{key}/{name}", download_file, methods=["GET"]),
    Route("/healthz", healthz, methods=["GET"]),
    Route("/readyz", readyz, methods=["GET"]),
)
