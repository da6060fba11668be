"""What a converter that was taken over may tell: the event loop decodes it, so that it must cost little."""

from collections.abc import Iterator
from contextlib import nullcontext

import msgspec
import pytest

from service.engine.arguments import dataset_name  # noqa: F401 -- loads the modules that ask a run
from service.engine.jailed.topojson import FoundDocuments
from service.engine.reading.work_file import LayerNames
from service.engine.session import Answer
from service.engine.session_facts import SeenLayer
from service.engine.workspace import MAX_JSON_COMMAS, MAX_JSON_OBJECTS, decoded
from service.errors import Rejection
from service.formats.facts import DeclaredGeometry, Facts, Layer
from service.formats.verify import ReadBack
from service.geojson.findings import ScanOutcome

COUNTS = b'"features":0,"geometries":0,"codes":{},"columns":[],"has_geometry_column":false,"system":"none","epsg":0'


def answers(kind: type[Answer] = Answer) -> Iterator[type[Answer]]:
    """Every answer of a run."""
    yield kind
    for below in kind.__subclasses__():
        yield from answers(below)


@pytest.mark.parametrize("kind", [Facts, ScanOutcome, LayerNames, *answers()], ids=str)
def test_no_member_has_a_pattern(kind: type[object]) -> None:
    """It would be matched as often as the member is repeated: up to three million times, while nobody is served."""
    assert b'"pattern"' not in msgspec.json.encode(msgspec.json.schema(kind))


def test_there_are_as_many_objects_as_a_moment_suffices_for() -> None:
    """Those of 16 MiB would take half a gigabyte."""
    fields = b",".join([b'{"name":"a"}'] * 2000)
    layers, most = b'{"name":"b","features":0,"fields":[%b]}' % fields, MAX_JSON_OBJECTS // 2001
    assert len(decoded(b'{"layers":[%b]}' % b",".join([layers] * most), Facts).layers) == most
    with pytest.raises(Rejection, match="too many layers or columns"):
        decoded(b'{"layers":[%b]}' % b",".join([layers] * (most + 1)), Facts)


@pytest.mark.parametrize(
    ("kind", "most", "told"),
    [
        (LayerNames, MAX_JSON_COMMAS, b'"a":"",'),
        (Facts, Facts.most_commas, b'"warnings":[],'),
        (ReadBack, ReadBack.most_commas, b'"more":0,'),
        (FoundDocuments, FoundDocuments.most_commas, b'"unread":0,'),
    ],
)
def test_there_are_as_many_values_as_a_moment_suffices_for(kind: type[object], most: int, told: bytes) -> None:
    """A map of a million texts took a quarter of a second before it was found to have too many."""
    for repeated, is_read in ((most, True), (most + 1, False)):
        with nullcontext() if is_read else pytest.raises(Rejection, match="too many layers or columns"):
            decoded(b"{%b%b}" % (told * repeated, told[:-1]), kind)


@pytest.mark.parametrize(
    ("kind", "told"),
    [
        (Facts, b'{"layers":[{"name":"a","features":0,"table":"-overwrite"}]}'),
        (Facts, b'{"layers":[{"name":"a","features":0,"table":"@file"}]}'),
        (Facts, b'{"layers":[{"name":"a","features":0,"table":"a\\nb"}]}'),
        (Layer, b'{"name":"a","features":0,"geometry_types":{"Curve":1}}'),
        (Layer, b'{"name":"a","features":0,"collection_parts":{"point":1}}'),
        (
            Layer,
            b'{"name":"a","features":0,"geometry_types":{%b}}' % b",".join(b'"%x":1' % number for number in range(9)),
        ),
        (DeclaredGeometry, b'{"type":"Any","has_z":false,"has_m":false}'),
        (SeenLayer, b'{"name":"a","table":"t1; DROP",%b}' % COUNTS),
        (SeenLayer, b'{"name":"a","table":"t12345",%b}' % COUNTS),
        (SeenLayer, b'{"name":"a","table":"t1",%b}' % COUNTS.replace(b"{}", b'{"100":1}')),
    ],
)
def test_names_that_cannot_be_are_refused(kind: type[object], told: bytes) -> None:
    """They appear in commands and as keys of tables."""
    with pytest.raises(Rejection, match="could not be determined"):
        decoded(told, kind)
