"""All endpoints: their addresses, handlers, inputs and responses."""

from functools import partial
from http import HTTPStatus

from starlette.routing import Route

from service import errors
from service.http.api import inputs
from service.http.api.auth import Handler, KeyedHandler
from service.http.api.endpoint import Keyed, Open, Success
from service.http.api.schemas import Analysis, BatchResult, ConversionResult, JobRecord, PlanList, RecentJobs
from service.http.api.urls import API, JOBS, status_path
from service.http.endpoints.analyze import analyze
from service.http.endpoints.convert import convert_file, convert_files, convert_upload
from service.http.endpoints.files import download_file
from service.http.endpoints.jobs import delete_one, job_preview, job_result, job_status, recent_jobs
from service.http.endpoints.lists import FormatList, SystemList, list_formats, list_plans, list_systems
from service.http.endpoints.operators import Alive, healthz, metrics, readyz, usage_by_day
from service.http.endpoints.page import asset, docs, openapi, page
from service.usecases.check_readiness import Readiness

_BUSY = (errors.TooManyRequests, errors.Overloaded)
_UPLOAD = (errors.MalformedRequest, errors.UnsupportedEncoding, errors.UploadTimeout, *_BUSY)
_REPEATABLE = (errors.InvalidParameter, errors.IdempotencyKeyInUse, errors.IdempotencyKeyReused)
_HEADERS = (inputs.IDEMPOTENCY_KEY, inputs.PREFER)
_OF_JOB = ("Geomill-Job-Id", "Geomill-Warnings", "Link")
_CONVERTED = (
    Success("The request is valid; success says whether the file was converted.", ConversionResult, headers=_OF_JOB),
    Success("With download=true, the result itself.", media_type="*/*", headers=_OF_JOB),
    Success(
        "With download=true, the record of a file that was not converted.",
        ConversionResult,
        status=HTTPStatus.UNPROCESSABLE_ENTITY,
    ),
)
_ACCEPTED = partial(Success, status=HTTPStatus.ACCEPTED, headers=("Location", "Preference-Applied"))
_FILE = "*/*"
_CURRENT = Success("The copy is current.", status=HTTPStatus.NOT_MODIFIED, media_type="", headers=("ETag",))


def _page(path: str, name: str, handler: Handler, summary: str) -> Open:
    shown = Success("A page.", media_type="text/html", headers=("ETag",))
    return Open(path=path, name=name, handler=handler, summary=summary, answers=(shown, _CURRENT))


def _asset_of_page(path: str, name: str) -> Open:
    return Open(
        path=path,
        name=name,
        handler=asset,
        summary="A file of that page",
        parameters=(inputs.ASSET,),
        answers=(Success("The file.", media_type=_FILE, headers=("ETag",)), _CURRENT),
        faults=(errors.NotFound,),
    )


def _conversion(path: str, name: str, handler: KeyedHandler, summary: str) -> Keyed:
    return Keyed(
        method="POST",
        path=path,
        name=name,
        handler=handler,
        summary=summary,
        form=inputs.CONVERSION,
        parameters=(inputs.DOWNLOAD, *_HEADERS),
        answers=(*_CONVERTED, _ACCEPTED("The upload was accepted; query its job for the result.", JobRecord)),
        faults=(*_UPLOAD, *_REPEATABLE, errors.UploadTooLarge, errors.DownloadExpired),
    )


ENDPOINTS: tuple[Open | Keyed, ...] = (
    _conversion(f"{API}/convert/file", "convertFile", convert_file, "Convert one file"),
    Keyed(
        method="POST",
        path=f"{API}/convert/batch",
        name="convertBatch",
        handler=convert_files,
        summary="Convert several files independently",
        form=inputs.BATCH,
        parameters=_HEADERS,
        answers=(
            Success("The files were received; each entry reports the outcome of its file.", BatchResult),
            _ACCEPTED("The uploads were accepted; each has a job.", RecentJobs),
        ),
        faults=(*_UPLOAD, *_REPEATABLE, errors.TooManyFiles, errors.BatchTooLarge),
    ),
    Keyed(
        method="POST",
        path=f"{API}/convert/analyze",
        name="analyze",
        handler=analyze,
        summary="Report what converting a GeoJSON document to Shapefile would lose",
        form=inputs.ANALYSIS,
        answers=(Success("The file was received; success says whether it was analyzed.", Analysis),),
        faults=(*_UPLOAD, errors.UploadTooLarge),
    ),
    _conversion(
        f"{API}/convert/upload",
        "convertUpload",
        convert_upload,
        "Convert one file and report the balance (kept for existing integrations)",
    ),
    Keyed(
        path=JOBS,
        name="recentJobs",
        handler=recent_jobs,
        summary="List the newest jobs",
        parameters=(inputs.LIMIT,),
        answers=(Success("The jobs.", RecentJobs),),
        faults=(errors.InvalidParameter, errors.TooManyRequests),
    ),
    Keyed(
        path=status_path("{jobId}"),
        name="jobStatus",
        handler=job_status,
        summary="Show a job, with a new link to its result",
        parameters=(inputs.JOB_ID, inputs.WAIT),
        answers=(Success("The job.", JobRecord),),
        faults=(errors.InvalidParameter, errors.JobNotFound, errors.NotFound),
    ),
    Keyed(
        method="DELETE",
        path=f"{JOBS}/{{jobId}}",
        name="deleteJob",
        handler=delete_one,
        summary="Cancel a job that is open, at no charge, or erase its result",
        parameters=(inputs.JOB_ID, inputs.ONLY),
        answers=(
            Success("The job has ended, and no result of it is kept.", status=HTTPStatus.NO_CONTENT, media_type=""),
            Success(
                "With only=open, the job, which has completed and is unchanged.", JobRecord, status=HTTPStatus.CONFLICT
            ),
        ),
        faults=(errors.InvalidParameter, errors.JobNotFound, errors.NotFound),
    ),
    Keyed(
        path=f"{JOBS}/{{jobId}}/preview",
        name="jobPreview",
        handler=job_preview,
        summary="Show the result of a job as GeoJSON for a map: its first features, simplified",
        parameters=(inputs.JOB_ID,),
        answers=(Success("The features; preview says what was left out.", media_type="application/geo+json"),),
        faults=(errors.JobNotFound, errors.NoResult, errors.NotFound, *_BUSY),
    ),
    Keyed(
        path=f"{JOBS}/{{jobId}}/result",
        name="jobResult",
        handler=job_result,
        summary="Show what the conversion of a job responded, with a new link",
        parameters=(inputs.JOB_ID,),
        answers=(Success("The result; success is false while the job is open.", ConversionResult),),
        faults=(errors.JobNotFound, errors.NotFound),
    ),
    Keyed(
        path=f"{API}/systems",
        name="listSystems",
        handler=list_systems,
        summary="Search the coordinate systems by name, area or EPSG code",
        parameters=(inputs.SEARCH,),
        answers=(Success("The systems.", SystemList),),
        faults=(errors.InvalidParameter,),
    ),
    Keyed(
        path=f"{API}/formats",
        name="listFormats",
        handler=list_formats,
        summary="List the formats and what this host supports for each",
        answers=(Success("The formats.", FormatList),),
    ),
    Keyed(
        path=f"{API}/pricing/tiers",
        name="listPlans",
        handler=list_plans,
        summary="List the plans",
        answers=(Success("The plans.", PlanList),),
    ),
    Open(
        path="/files/{key}/{name}",
        name="downloadFile",
        handler=download_file,
        summary="Download a result from this host, by the link in a response",
        parameters=(
            inputs.OBJECT_KEY,
            inputs.DOWNLOAD_NAME,
            *inputs.LINK_PARAMETERS,
            inputs.RANGE,
            inputs.IF_NONE_MATCH,
        ),
        answers=(
            Success("The result.", media_type=_FILE, headers=("ETag",)),
            Success("The requested bytes.", status=HTTPStatus.PARTIAL_CONTENT, media_type=_FILE, headers=("ETag",)),
            _CURRENT,
        ),
        faults=(
            errors.InvalidParameter,
            errors.DownloadRefused,
            errors.DownloadExpired,
            errors.RangeNotSatisfiable,
            errors.NotFound,
        ),
    ),
    Open(
        path="/healthz",
        name="healthz",
        handler=healthz,
        summary="Report that the process is alive",
        answers=(Success("The process is alive.", Alive),),
    ),
    Open(
        path="/readyz",
        name="readyz",
        handler=readyz,
        summary="Report whether the process can accept work",
        answers=(
            Success("The process can accept work.", Readiness),
            Success("It cannot accept work; `checks` says why.", Readiness, status=HTTPStatus.SERVICE_UNAVAILABLE),
        ),
    ),
    Open(
        path="/metrics",
        name="metrics",
        handler=metrics,
        summary="Show the metrics in the text format of Prometheus",
        answers=(Success("The metrics.", media_type="text/plain"),),
    ),
    Open(
        path="/usage.csv",
        name="usageByDay",
        handler=usage_by_day,
        summary="List what each account was charged on each day; on the private port only",
        parameters=(inputs.FIRST_DAY, inputs.LAST_DAY),
        answers=(Success("A row per account and day.", media_type="text/csv"),),
        faults=(errors.InvalidParameter, errors.Overloaded),
    ),
    Open(
        path="/openapi.json",
        name="openapi",
        handler=openapi,
        summary="Describe this interface, in OpenAPI 3.1",
        answers=(Success("The description."),),
    ),
    _page("/docs", "docs", docs, "Show the interactive documentation"),
    _asset_of_page("/docs/{asset}", "docsAsset"),
    _page("/", "page", page, "Show the page, on which people convert files"),
    _asset_of_page("/page/{asset}", "pageAsset"),
)

PRIVATE: frozenset[str] = frozenset({"/usage.csv"})
"""The paths that only exist on a private port, because they need no key and concern accounts."""

ROUTES: tuple[Route, ...] = tuple(endpoint.route() for endpoint in ENDPOINTS)
