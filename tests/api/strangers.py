"""What `test_strangers` runs in a pytest of its own, with a server and a key in its environment."""

import json
import os
from collections.abc import Mapping
from typing import Any, TypeAlias

import jsonschema
import schemathesis
from hypothesis import settings
from schemathesis.config import SchemathesisConfig

from service.formats.registry import OUTPUT_NAMES
from service.http.docs.openapi import describe
from service.http.routes import ENDPOINTS, PRIVATE
from service.intake.form import IntakeLimits
from tests.support.patience import PATIENCE_SECONDS

pytest_plugins = ("schemathesis.pytest.plugin",)

Case: TypeAlias = schemathesis.Case[Any]

CONFIG = SchemathesisConfig.from_dict(
    {
        "seed": 1,
        "request-timeout": PATIENCE_SECONDS,
        "generation": {"mode": "all"},
        # A key for repeats that comes with another form is refused, though both are well-formed.
        "checks": {
            "positive_data_acceptance": {"expected-statuses": ["2xx", "3xx", 401, 403, 404, 409, 410, 422, 429]}
        },
    }
)
ON_ONE_PORT = [endpoint for endpoint in ENDPOINTS if endpoint.path not in PRIVATE]
DOCUMENT = describe(ON_ONE_PORT, IntakeLimits(), "")
DESCRIPTION = schemathesis.openapi.from_dict(DOCUMENT, config=CONFIG)


@DESCRIPTION.hook
def filter_case(_context: schemathesis.HookContext, case: Case) -> bool:
    """Discard cases whose validity the description cannot express."""
    form = case.body if isinstance(case.body, dict) else {}
    return all(map(_is_file, _files(form))) and not (
        _has_more_fields_than_files(form)
        or _has_lone_values(form)
        or _has_blank_columns(form)
        or _has_nul(form)
        or _wants_file_at_once(case)
        or _has_odd_formats(form)
        or _is_right_after_all(case, form)
    )


def _files(form: dict[str, Any]) -> list[Any]:
    many = form.get("files", [])
    return [*(many if isinstance(many, list) else [many]), *([form["file"]] if "file" in form else [])]


def _is_file(value: object) -> bool:
    """Whether the file is sent as generated: any bytes are a file, so a number in its place is valid."""
    return isinstance(value, str | bytes)


def _has_more_fields_than_files(form: dict[str, Any]) -> bool:
    """A batch with more formats or codes than files is refused, which a schema cannot express."""
    lists = [form[name] for name in ("outputFormats", "sourceEpsgs") if isinstance(form.get(name), list)]
    return bool(_files(form)) and any(len(values) > len(_files(form)) for values in lists)


def _has_odd_formats(form: dict[str, Any]) -> bool:
    """The description has one spelling of each format; other spellings are valid, or fail the file, not the request."""
    texts = form.get("outputFormats", [])
    names = [form.get("outputFormat", ""), *(texts if isinstance(texts, list) else [])]
    return any(name not in {"", *OUTPUT_NAMES} for name in map(str, names))


def _is_right_after_all(case: Case, form: dict[str, Any]) -> bool:
    """A form generated to be invalid may violate one of several alternatives of which one suffices."""
    if case.meta is None or not case.meta.generation.mode.is_negative or not form:
        return False
    operation = DOCUMENT["paths"][case.operation.path].get(case.method.lower(), {})
    if "requestBody" not in operation:
        return False
    schema = operation["requestBody"]["content"]["multipart/form-data"]["schema"]
    sent = {name: _as_sent(value, schema["properties"].get(name, {})) for name, value in form.items()}
    return jsonschema.Draft202012Validator(schema).is_valid(sent)


def _as_sent(value: object, schema: Mapping[str, Any]) -> object:
    """All form values are text, so a number in place of a text is valid, and so are `true` and `null`."""
    if isinstance(value, bytes):
        return value.decode("latin-1")
    is_sent_as_text = schema.get("type") == "string" and (value is None or isinstance(value, int | float))
    return json.dumps(value) if is_sent_as_text else value


def _has_lone_values(form: dict[str, Any]) -> bool:
    """A single value is sent as a list with one item."""
    return any(not isinstance(form.get(name, []), list) for name in ("outputFormats", "sourceEpsgs"))


def _has_blank_columns(form: dict[str, Any]) -> bool:
    """A blank field counts as absent, which rules about fields that belong together cannot express."""
    return any(not str(form.get(name, "x")).strip() for name in ("xField", "yField", "zField", "wktField"))


def _has_nul(form: dict[str, Any]) -> bool:
    """No field may contain NUL, including ignored fields, which are not described."""
    others = (value for name, value in form.items() if name not in {"file", "files"})
    return any("\0" in str(text) for value in others for text in (value if isinstance(value, list) else [value]))


def _wants_file_at_once(case: Case) -> bool:
    """The file before it exists: a query parameter and a header that exclude each other."""
    return "respond-async" in str(case.headers) and "download" in str(case.query)


@DESCRIPTION.auth()
class Key:
    """The API key of the generated requests."""

    def get(self, _case: Case, _context: schemathesis.AuthContext) -> str:
        """Return the key."""
        return os.environ["STRANGERS_KEY"]

    def set(self, case: Case, key: str, _context: schemathesis.AuthContext) -> None:
        """Add the key to the request."""
        case.headers["X-API-Key"] = key


def test_the_description_is_openapi() -> None:
    """All of it conforms to OpenAPI 3.1."""
    DESCRIPTION.validate()


@DESCRIPTION.parametrize()
@settings(max_examples=20, derandomize=True, deadline=None, database=None)
def test_a_stranger_meets_nothing_but_what_is_described(case: Case) -> None:
    """Every response has a status, headers and a body that the description names."""
    case.call_and_validate(base_url=os.environ["STRANGERS_URL"])
