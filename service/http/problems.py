"""Responses to faults: this table defines the status and code of each fault (interface 7.1)."""

from http import HTTPStatus
from typing import Annotated, Any

import msgspec
from msgspec import UNSET, Meta, UnsetType
from starlette.exceptions import HTTPException
from starlette.responses import Response

from service import errors
from service.errors import (
    IdempotencyKeyInUse,
    InvalidParameter,
    RangeNotSatisfiable,
    RequestFault,
    RetryableFault,
    UnsupportedEncoding,
)
from service.telemetry.metrics import PROBLEMS, labeled, start_at_zero

MEDIA_TYPE = "application/problem+json"


class Problem(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """A problem of RFC 9457 with the members that Geomill adds."""

    type: str
    title: str
    status: int
    detail: Annotated[str, Meta(description="What is wrong and what to do about it.")]
    success: Annotated[bool, Meta(description="Always false.")]
    error: Annotated[str, Meta(description="The same as detail.")]
    code: Annotated[str, Meta(description="What is wrong, for programs.")]
    parameter: Annotated[str | UnsetType, Meta(description="The parameter that is wrong.")] = UNSET
    job_ids: Annotated[
        list[str] | UnsetType, Meta(description="The jobs of the first request with the Idempotency-Key, in order.")
    ] = UNSET
    request_id: str


class ProblemKind(msgspec.Struct, frozen=True):
    """The response to a class of faults."""

    status: HTTPStatus
    code: str


KINDS: dict[type[RequestFault], ProblemKind] = {
    errors.MissingApiKey: ProblemKind(HTTPStatus.UNAUTHORIZED, "missing_api_key"),
    errors.InvalidApiKey: ProblemKind(HTTPStatus.UNAUTHORIZED, "invalid_api_key"),
    errors.InvalidIdentity: ProblemKind(HTTPStatus.UNAUTHORIZED, "invalid_identity"),
    errors.MalformedRequest: ProblemKind(HTTPStatus.BAD_REQUEST, "malformed_request"),
    errors.UnsupportedEncoding: ProblemKind(HTTPStatus.UNSUPPORTED_MEDIA_TYPE, "unsupported_encoding"),
    errors.HeadersTooLarge: ProblemKind(HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE, "headers_too_large"),
    errors.InvalidParameter: ProblemKind(HTTPStatus.BAD_REQUEST, "invalid_parameter"),
    errors.TooManyFiles: ProblemKind(HTTPStatus.BAD_REQUEST, "too_many_files"),
    errors.UploadTooLarge: ProblemKind(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, "upload_too_large"),
    errors.BatchTooLarge: ProblemKind(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, "batch_too_large"),
    errors.UploadTimeout: ProblemKind(HTTPStatus.REQUEST_TIMEOUT, "upload_timeout"),
    errors.JobNotFound: ProblemKind(HTTPStatus.NOT_FOUND, "job_not_found"),
    errors.NoResult: ProblemKind(HTTPStatus.CONFLICT, "no_result"),
    errors.NotFound: ProblemKind(HTTPStatus.NOT_FOUND, "not_found"),
    errors.DownloadRefused: ProblemKind(HTTPStatus.FORBIDDEN, "download_refused"),
    errors.DownloadExpired: ProblemKind(HTTPStatus.GONE, "download_expired"),
    errors.RangeNotSatisfiable: ProblemKind(HTTPStatus.REQUESTED_RANGE_NOT_SATISFIABLE, "range_not_satisfiable"),
    errors.IdempotencyKeyReused: ProblemKind(HTTPStatus.UNPROCESSABLE_ENTITY, "idempotency_key_reused"),
    errors.IdempotencyKeyInUse: ProblemKind(HTTPStatus.CONFLICT, "idempotency_key_in_use"),
    errors.TooManyRequests: ProblemKind(HTTPStatus.TOO_MANY_REQUESTS, "too_many_requests"),
    errors.Overloaded: ProblemKind(HTTPStatus.SERVICE_UNAVAILABLE, "overloaded"),
}

_DEFECT = "internal_error"
_NOT_FOUND = KINDS[errors.NotFound].code
_INTERNAL = "An internal error occurred and was recorded. Report the request id {request_id} to the operator."

start_at_zero(PROBLEMS, {_DEFECT, *(kind.code for kind in KINDS.values())})


def kind_of(fault: type[RequestFault]) -> ProblemKind:
    """Return the response to faults of this class: that of its nearest ancestor in the table."""
    return next(KINDS[ancestor] for ancestor in fault.__mro__ if ancestor in KINDS)


def problem_of_fault(fault: RequestFault, request_id: str) -> Response:
    """Respond to a request fault."""
    kind = kind_of(type(fault))
    headers: dict[str, str] = {}
    if kind.status is HTTPStatus.UNAUTHORIZED:
        headers["WWW-Authenticate"] = 'ApiKey realm="geomill", header="X-API-Key"'
    if isinstance(fault, RetryableFault):
        headers["Retry-After"] = str(fault.retry_after_seconds)
    if isinstance(fault, UnsupportedEncoding):
        headers["Accept-Encoding"] = "identity"
    if isinstance(fault, RangeNotSatisfiable):
        headers["Content-Range"] = f"bytes */{fault.size_bytes}"
    members: dict[str, Any] = {}
    if isinstance(fault, InvalidParameter):
        members["parameter"] = fault.parameter
    if isinstance(fault, IdempotencyKeyInUse) and fault.job_ids:
        members["job_ids"] = fault.job_ids
    return _problem(kind.status, kind.code, fault.message, request_id, headers=headers, **members)


def problem_of_routing(refused: HTTPException, method: str, docs: str, request_id: str) -> Response:
    """Respond to an unknown path or a wrong method; the latter adds the header Allow.

    `docs` is the path of the documentation, or empty if it is not served here.
    """
    status, headers = HTTPStatus(refused.status_code), dict(refused.headers or {})
    code, detail = "malformed_request", refused.detail
    if status is HTTPStatus.NOT_FOUND:
        code, advice = _NOT_FOUND, f" {docs} lists the endpoints." if docs else ""
        detail = f"There is nothing at this address.{advice}"
    elif status is HTTPStatus.METHOD_NOT_ALLOWED:
        code, detail = "method_not_allowed", f"This address does not allow {method}. Use {headers['Allow']}."
    return _problem(status, code, detail, request_id, headers=headers)


def problem_of_path(path: str, query: str, request_id: str) -> Response:
    """Respond to a path that differs by a slash at its end from `path`, to which clients may send the request."""
    headers = {"Location": f"{path}?{query}" if query else path}
    detail = f"There is nothing at this address. Send the request to {path}."
    return _problem(HTTPStatus.TEMPORARY_REDIRECT, _NOT_FOUND, detail, request_id, headers=headers)


def problem_of_defect(request_id: str) -> Response:
    """Respond to a defect; the response only contains the request id, to find it in the log."""
    detail = _INTERNAL.format(request_id=request_id)
    return _problem(HTTPStatus.INTERNAL_SERVER_ERROR, _DEFECT, detail, request_id)


def _problem(
    status: HTTPStatus,
    code: str,
    detail: str,
    request_id: str,
    *,
    headers: dict[str, str] | None = None,
    **members: Any,
) -> Response:
    labeled(PROBLEMS, code).inc()
    body = body_of(status, code, detail, request_id, **members)
    return Response(body, status_code=status, headers=headers, media_type=MEDIA_TYPE)


def body_of(status: HTTPStatus, code: str, detail: str, request_id: str, **members: Any) -> bytes:
    """Return a problem as JSON; `members` are those that only some problems have."""
    problem = Problem(
        type=f"urn:geomill:problem:{code}",
        title=status.phrase,
        status=status,
        detail=detail,
        success=False,
        error=detail,
        code=code,
        request_id=request_id,
        **members,
    )
    return msgspec.json.encode(problem)
