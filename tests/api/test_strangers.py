"""A client made from the description alone sends what nobody thought of, and meets nothing but what is described."""

from collections.abc import Iterator, Mapping
from typing import Any, ClassVar, TypeAlias

import jsonschema
import pytest
import schemathesis
from hypothesis import settings
from schemathesis.config import SchemathesisConfig

from service.accounts.administration import Terms
from service.formats.registry import OUTPUT_NAMES
from service.http.docs.openapi import describe
from service.http.routes import ENDPOINTS, PRIVATE
from service.intake.form import IntakeLimits
from tests.support.server import Client, Server, create_account

Case: TypeAlias = schemathesis.Case[Any]

CONFIG = SchemathesisConfig.from_dict(
    {
        "seed": 1,
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
    """Leave out what the description cannot tell right from wrong."""
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
    """Whether it is sent as it is: a file is any bytes, so that a number in its place is no mistake."""
    return isinstance(value, str | bytes)


def _has_more_fields_than_files(form: dict[str, Any]) -> bool:
    """A batch with more formats or codes than files is refused, which a schema cannot say."""
    lists = [form[name] for name in ("outputFormats", "sourceEpsgs") if isinstance(form.get(name), list)]
    return bool(_files(form)) and any(len(values) > len(_files(form)) for values in lists)


def _has_odd_formats(form: dict[str, Any]) -> bool:
    """The description has one spelling of each format; others are accepted, or fail the file and not the request."""
    texts = form.get("outputFormats", [])
    names = [form.get("outputFormat", ""), *(texts if isinstance(texts, list) else [])]
    return any(name not in {"", *OUTPUT_NAMES} for name in map(str, names))


def _is_right_after_all(case: Case, form: dict[str, Any]) -> bool:
    """A form that was made to be wrong may break one of several rules of which one is enough."""
    if case.meta is None or not case.meta.generation.mode.is_negative or not form:
        return False
    operation = DOCUMENT["paths"][case.operation.path].get(case.method.lower(), {})
    if "requestBody" not in operation:
        return False
    schema = operation["requestBody"]["content"]["multipart/form-data"]["schema"]
    sent = {name: _as_sent(value, schema["properties"].get(name, {})) for name, value in form.items()}
    return jsonschema.Draft202012Validator(schema).is_valid(sent)


def _as_sent(value: object, schema: Mapping[str, Any]) -> object:
    """All that a form holds is text, so that a number in the place of a text is no mistake."""
    if isinstance(value, bytes):
        return value.decode("latin-1")
    return str(value) if schema.get("type") == "string" and isinstance(value, int | float) else value


def _has_lone_values(form: dict[str, Any]) -> bool:
    """A value that is no list is sent as a list of one."""
    return any(not isinstance(form.get(name, []), list) for name in ("outputFormats", "sourceEpsgs"))


def _has_blank_columns(form: dict[str, Any]) -> bool:
    """A blank field counts as absent, which the rules about fields that go together cannot say."""
    return any(not str(form.get(name, "x")).strip() for name in ("xField", "yField", "zField", "wktField"))


def _has_nul(form: dict[str, Any]) -> bool:
    """No field may hold one, nor may those that are ignored, which are not described."""
    others = (value for name, value in form.items() if name not in {"file", "files"})
    return any("\0" in str(text) for value in others for text in (value if isinstance(value, list) else [value]))


def _wants_file_at_once(case: Case) -> bool:
    """The file itself before it is there: a query and a header that exclude each other."""
    return "respond-async" in str(case.headers) and "download" in str(case.query)


@DESCRIPTION.auth()
class Key:
    """The key of the stranger's account."""

    value: ClassVar = ""

    def get(self, _case: Case, _context: schemathesis.AuthContext) -> str:
        """Return it."""
        return self.value

    def set(self, case: Case, key: str, _context: schemathesis.AuthContext) -> None:
        """Send it along."""
        case.headers["X-API-Key"] = key


@pytest.fixture(scope="module")
def stranger(server: Server) -> Iterator[Client]:
    """A client of its own account for the whole run."""
    with create_account(server, Terms(plan="team", plan_owner="organization")) as client:
        Key.value = client.key.api_key
        yield client


def test_the_description_is_openapi() -> None:
    """Every part of it is as the standard of OpenAPI 3.1 says."""
    DESCRIPTION.validate()


@DESCRIPTION.parametrize()
@settings(max_examples=50, derandomize=True, deadline=None, database=None)
def test_a_stranger_meets_nothing_but_what_is_described(case: Case, stranger: Client) -> None:
    """Whatever it sends: its answer has a status, headers and a body that the description names."""
    case.call_and_validate(base_url=str(stranger.base_url))
