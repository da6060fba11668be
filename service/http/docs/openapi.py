"""The OpenAPI 3.1 description of the interface, generated from the rows of endpoints and the response records."""

import re
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from http import HTTPStatus
from typing import Any

import msgspec

from service.errors import RequestFault, RetryableFault
from service.http.api.endpoint import JSON, Endpoint, Keyed, Open, Success
from service.http.api.inputs import FormField, Parameter, UploadForm
from service.http.docs.sample_calls import in_curl, in_python
from service.http.docs.sample_responses import SAMPLE_RESPONSES
from service.http.problems import MEDIA_TYPE, Problem, kind_of
from service.intake.form import IntakeLimits

Object = dict[str, Any]

VERSION = "1.0.0"
"""The version of the interface: patch for better wording, minor for additions, major for breaking changes."""

_REFERENCE = re.compile(r" ?\(interface \d[^)]*\)")
_ROOT = "#/components"
_COMMON_HEADERS = ("X-Request-Id", "traceparent")
_CALLER_HEADERS = ("RateLimit-Policy", "RateLimit")
_TEXT = {"type": "string"}

_STATUS_HEADERS: Mapping[int, Sequence[str]] = {
    HTTPStatus.UNAUTHORIZED: ("WWW-Authenticate",),
    HTTPStatus.REQUESTED_RANGE_NOT_SATISFIABLE: ("Content-Range",),
}

_HEADERS: Mapping[str, str] = {
    "X-Request-Id": "Identifies the request in the log; taken from the request if well-formed.",
    "traceparent": "The trace that the request belongs to (W3C Trace Context); that of the request if it had one.",
    "Retry-After": "Seconds until it makes sense to try again.",
    "WWW-Authenticate": "How to authenticate.",
    "Geomill-Job-Id": "The job of the file.",
    "Geomill-Warnings": "How many warnings there are about the conversion and the request.",
    "Link": "The address of the job's record, as describedby.",
    "Location": "The address of the job or jobs.",
    "Preference-Applied": "respond-async.",
    "RateLimit-Policy": "The limits of the account: files in progress at a time (concurrency) and, with a plan, "
    "conversions and bytes of input in this month (conversions, data), whose length is given in seconds.",
    "RateLimit": "How many more files may be started now; after a conversion also what is left of the month's "
    "conversions and data, and for how many seconds.",
    "ETag": "Identifies this version of the result.",
    "Content-Range": "The range sent, and the size of the result in bytes.",
}

_TAGS: Mapping[str, str] = {
    "Conversions": "Convert files, or learn in advance what would be lost.",
    "Jobs": "Look up jobs, show, download or delete their results.",
    "Catalogue": "Formats, coordinate systems and plans.",
    "Operation": "For operators and browsers; no key needed. An operator may move these to a private port.",
}
_TAG_OF = (
    ("/api/geo/convert/jobs", "Jobs"),
    ("/files/", "Jobs"),
    ("/api/geo/convert/", "Conversions"),
    ("/api/geo/", "Catalogue"),
    ("", "Operation"),
)
"""The tag of each endpoint, by the first of these beginnings that its path has."""
_LICENSE = {"name": "Apache License 2.0", "identifier": "Apache-2.0"}
_ABOUT = (
    "Converts geospatial vector files into other formats and coordinate systems; /api/geo/formats lists the formats of "
    "this host. The response to a valid request has status 200, "
    "whether or not the file could be converted; see success. Every other status is a problem (RFC 9457)."
)


def describe(endpoints: Iterable[Open | Keyed], limits: IntakeLimits, address: str) -> Object:
    """Return the document; `address` is the service's URL, a path on its host, or empty for the host itself."""
    paths: defaultdict[str, Object] = defaultdict(dict)
    answered: dict[type, None] = {Problem: None}
    for endpoint in endpoints:
        paths[endpoint.path][endpoint.method.lower()] = _operation(endpoint, limits)
        answered |= {answer.body: None for answer in endpoint.answers if answer.body is not None}
    return {
        "openapi": "3.1.0",
        "info": {"title": "Geomill", "version": VERSION, "description": _ABOUT, "license": _LICENSE},
        "servers": [{"url": address or "/"}],
        "tags": [{"name": name, "description": text} for name, text in _TAGS.items()],
        "paths": dict(paths),
        "components": {
            "schemas": _schemas(list(answered)),
            "headers": {name: {"description": text, "schema": _TEXT} for name, text in _HEADERS.items()},
            "securitySchemes": {"key": {"type": "apiKey", "in": "header", "name": "X-API-Key"}},
        },
    }


def _operation(endpoint: Open | Keyed, limits: IntakeLimits) -> Object:
    operation: Object = {
        "operationId": endpoint.name,
        "tags": [next(tag for prefix, tag in _TAG_OF if endpoint.path.startswith(prefix))],
        "summary": endpoint.summary,
        "security": [{"key": []}] if isinstance(endpoint, Keyed) else [],
        "parameters": [_parameter(parameter) for parameter in endpoint.parameters],
        "responses": _responses(endpoint),
        "x-codeSamples": _samples(endpoint),
    }
    if endpoint.form is not None:
        schema = _form(endpoint.form, limits)
        operation["requestBody"] = {"required": True, "content": {"multipart/form-data": {"schema": schema}}}
    return operation


def _samples(endpoint: Endpoint) -> list[Object]:
    return [
        {"lang": "Shell", "label": "curl", "source": in_curl(endpoint)},
        {"lang": "Python", "label": "Python", "source": in_python(endpoint)},
    ]


def _parameter(parameter: Parameter) -> Object:
    return {
        "name": parameter.name,
        "in": parameter.place,
        "description": parameter.description,
        "required": parameter.required,
        "schema": parameter.schema,
    }


def _form(form: UploadForm, limits: IntakeLimits) -> Object:
    # `format` is what makes generators of clients send a file, `contentMediaType` how OpenAPI 3.1 says it.
    file: Object = {"type": "string", "format": "binary", "contentMediaType": "application/octet-stream"}
    if form.many:
        file = {"type": "array", "items": file, "minItems": 1, "maxItems": limits.max_batch_files}
    properties = {form.file_field: {"description": form.file_description, **file}}
    properties |= {field.name: _field(field) for field in form.fields}
    return {"type": "object", "properties": properties, "required": [form.file_field], **form.rules}


def _field(field: FormField) -> Object:
    schema = {"type": "array", "items": field.schema} if field.many else field.schema
    return {"description": field.description, **schema}


def _responses(endpoint: Open | Keyed) -> Object:
    """Every status with all its possible bodies: successful responses, then problems."""
    responses: dict[int, Object] = {}
    for answer in endpoint.answers:
        _add_answer(responses, answer)
    for status, faults in _by_status(endpoint.all_faults).items():
        known = responses.setdefault(status, _response("", {}, _fault_headers(status, faults)))
        meanings = [f"{kind_of(fault).code}: {str(fault.__doc__).splitlines()[0]}" for fault in faults]
        known["description"] = " ".join(filter(None, [known["description"], *meanings]))
        problem = _problem([kind_of(fault).code for fault in faults])
        known["content"] = known.get("content", {}) | {MEDIA_TYPE: {"schema": problem}}
    defect = {MEDIA_TYPE: {"schema": _problem(["internal_error"])}}
    responses[500] = _response("internal_error: A defect of the service; it was recorded.", defect)
    if isinstance(endpoint, Keyed):
        for status in responses.keys() - {HTTPStatus.UNAUTHORIZED}:
            responses[status]["headers"] |= _header_references(_CALLER_HEADERS)
    return {str(status.value if isinstance(status, HTTPStatus) else status): responses[status] for status in responses}


def _add_answer(responses: dict[int, Object], answer: Success) -> None:
    """Add a successful response; those of one status differ in their media types."""
    response = _response(answer.meaning, _content(answer), answer.headers)
    if (known := responses.setdefault(answer.status, response)) is not response:
        known["description"] += f" {answer.meaning}"
        known["headers"] |= response["headers"]
        known["content"] |= response["content"]


def _content(answer: Success) -> Object:
    if answer.body is not None:
        example = {"example": SAMPLE_RESPONSES[answer.body]} if answer.body in SAMPLE_RESPONSES else {}
        return {JSON: {"schema": {"$ref": f"{_ROOT}/schemas/{answer.body.__name__}"}, **example}}
    return {answer.media_type: {}} if answer.media_type else {}


def _response(meaning: str, content: Object, headers: Sequence[str] = ()) -> Object:
    response: Object = {"description": meaning, "headers": _header_references((*_COMMON_HEADERS, *headers))}
    return {**response, "content": content} if content else response


def _header_references(names: Iterable[str]) -> Object:
    return {name: {"$ref": f"{_ROOT}/headers/{name}"} for name in names}


def _by_status(faults: Iterable[type[RequestFault]]) -> dict[int, list[type[RequestFault]]]:
    grouped: defaultdict[int, list[type[RequestFault]]] = defaultdict(list)
    for fault in dict.fromkeys(faults):
        grouped[kind_of(fault).status].append(fault)
    return dict(grouped)


def _fault_headers(status: int, faults: Iterable[type[RequestFault]]) -> list[str]:
    repeatable = ["Retry-After"] if any(issubclass(fault, RetryableFault) for fault in faults) else []
    return [*_STATUS_HEADERS.get(status, ()), *repeatable]


def _problem(codes: Sequence[str]) -> Object:
    return {
        "allOf": [{"$ref": f"{_ROOT}/schemas/{Problem.__name__}"}],
        "properties": {"code": {"enum": list(dict.fromkeys(codes))}},
    }


def _schemas(answered: Sequence[type]) -> Object:
    _, components = msgspec.json.schema_components(answered, ref_template=f"{_ROOT}/schemas/{{name}}")
    return {name: _as_written(schema) for name, schema in components.items()}


def _as_written(schema: Any) -> Any:
    """Turn a schema for reading into one for writing: members with defaults are always present."""
    if isinstance(schema, list):
        return [_as_written(item) for item in schema]
    if not isinstance(schema, dict):
        return schema
    written = {key: _as_written(value) for key, value in schema.items() if key != "default"}
    if "description" in written and isinstance(written["description"], str):
        written["description"] = _REFERENCE.sub("", written["description"])
    if isinstance(members := schema.get("properties"), dict):
        required = set(schema.get("required", ()))
        written["required"] = [name for name, member in members.items() if name in required or "default" in member]
    return written
