"""Parsing text from forms, headers and queries; what is read is what `inputs` describes."""

import re
from functools import partial
from itertools import chain, combinations

import pytest
from jsonschema import Draft202012Validator
from starlette.datastructures import Headers, QueryParams

from service.errors import InvalidParameter
from service.formats.request import ConversionRequest
from service.http.api import inputs, params

WALLET = inputs.INCLUDE_WALLET


def fields(**texts: str) -> dict[str, tuple[str, ...]]:
    """A form with each field once."""
    return {name: (text,) for name, text in texts.items()}


def is_accepted(read: object, *arguments: object) -> bool:
    """Whether a value is accepted."""
    assert callable(read)
    try:
        read(*arguments)
    except InvalidParameter:
        return False
    return True


@pytest.mark.parametrize(
    "text", ["true", "TRUE", "True", "1", "false", "False", "0", "", "yes", "2", "tru\u00c9", "on"]
)
def test_a_boolean_is_read_as_it_is_described(text: str) -> None:
    """In any case, and nothing else; an empty field counts as absent."""
    described = re.search(WALLET.schema["pattern"], text) is not None
    assert is_accepted(params.read_include_wallet, fields(includeWallet=text)) == described
    if described:
        assert params.read_include_wallet(fields(includeWallet=text)) == (text.lower() in {"true", "1"})


@pytest.mark.parametrize(
    "key", ["k", "a b", "~!", "k" * 255, "k" * 256, "", "\u00e9", "a\tb", " a", "a ", "a\x7f", "\x80", "a\n"]
)
def test_an_idempotency_key_is_read_as_it_is_described(key: str) -> None:
    """Printable ASCII of limited length."""
    schema = inputs.IDEMPOTENCY_KEY.schema
    described = bool(re.fullmatch(schema["pattern"], key)) and len(key) <= schema["maxLength"]
    assert is_accepted(params.read_idempotency_key, Headers({"Idempotency-Key": key})) == described


@pytest.mark.parametrize("second", ["a", "b", ""])
def test_an_idempotency_key_is_read_from_one_header(second: str) -> None:
    """With several, a retry through a proxy that reorders them would be a new request, which is charged."""
    twice = Headers(raw=[(b"idempotency-key", b"a"), (b"idempotency-key", second.encode())])
    with pytest.raises(InvalidParameter, match="occurs 2 times"):
        params.read_idempotency_key(twice)


def test_without_a_key_there_is_none() -> None:
    """It is optional."""
    assert params.read_idempotency_key(Headers()) is None


@pytest.mark.parametrize(
    ("text", "limit"), [("1", 1), ("100", 100), ("007", 7), ("0", None), ("101", None), ("-1", None), ("\u0663", None)]
)
def test_a_limit_lies_within_its_bounds(text: str, limit: int | None) -> None:
    """Digits of other scripts are not accepted."""
    query = QueryParams({"limit": text})
    read_limit = partial(params.read_bounded, inputs.LIMIT)
    assert is_accepted(read_limit, query) == (limit is not None)
    if limit is not None:
        assert read_limit(query) == limit
    assert read_limit(QueryParams()) == inputs.DEFAULT_JOBS


@pytest.mark.parametrize("text", ["4326.0", "EPSG:4326", "1" * 10, "0x10", "--1", "\u0664", "4 326"])
def test_a_code_is_a_whole_number(text: str) -> None:
    """Anything else is refused by name."""
    with pytest.raises(InvalidParameter, match="targetEpsg"):
        params.read_conversion(fields(targetEpsg=text))


def test_a_conversion_has_defaults_and_takes_empty_fields_for_none() -> None:
    """Blanks around a value are ignored."""
    assert params.read_conversion({}) == params.read_conversion(fields(outputFormat=" ", targetEpsg="", layer=""))
    read = params.read_conversion(fields(outputFormat=" Kml ", targetEpsg=" 3857", sourceEpsg="-1", layer="a b"))
    assert (read.output, read.target_epsg, read.source_epsg, read.layer) == ("Kml", 3857, -1, "a b")


def test_a_field_that_is_there_twice_is_refused() -> None:
    """Either choice would be a guess."""
    with pytest.raises(InvalidParameter, match="2 times"):
        params.read_conversion({"outputFormat": ("Kml", "Csv")})


@pytest.mark.parametrize("form", [inputs.CONVERSION, inputs.BATCH])
def test_every_member_of_a_request_is_read_from_a_row(form: inputs.UploadForm) -> None:
    """Every row is used; a batch converts all layers of its files, or the only one."""
    wishes = {field.wish for field in form.fields if field.wish}
    members = set(ConversionRequest.__struct_fields__)
    assert wishes == (members if form is inputs.CONVERSION else members - {"layer"})


def test_columns_go_together_as_they_are_described() -> None:
    """Exactly the described combinations of the four are accepted."""
    names = ("xField", "yField", "zField", "wktField")
    for chosen in chain.from_iterable(combinations(names, size) for size in range(len(names) + 1)):
        form = fields(**dict.fromkeys(chosen, "a"))
        described = Draft202012Validator(inputs.TABLE_RULES).is_valid(dict.fromkeys(chosen, "a"))
        assert is_accepted(params.read_conversion, form) == described, chosen
        assert is_accepted(params.read_batch, form, 2) == described, chosen


def test_the_fields_of_a_batch_stand_beside_its_files() -> None:
    """By position; missing ones are absent, and more than there are files are refused."""
    form = {"outputFormats": ("Kml", "", "Csv"), "sourceEpsgs": ("", "3857"), "targetEpsg": ("25832",)}
    read = params.read_batch(form, 4)
    assert [(one.output, one.source_epsg) for one in read] == [("Kml", None), (None, 3857), ("Csv", None), (None, None)]
    assert {one.target_epsg for one in read} == {25832}
    with pytest.raises(InvalidParameter, match="outputFormats"):
        params.read_batch(form, 2)


@pytest.mark.parametrize(
    ("prefer", "is_async"),
    [
        (["respond-async"], True),
        (["wait=10, Respond-Async;x=1"], True),
        (["wait=10", "respond-async"], True),
        (["respond-asynchronously"], False),
        ([], False),
    ],
)
def test_a_preference_is_found_among_others(prefer: list[str], *, is_async: bool) -> None:
    """In any case, in one header or several, with or without parameters."""
    raw = [(b"prefer", value.encode()) for value in prefer]
    assert params.wants_async(Headers(raw=raw)) is is_async
