"""A job's specification: plain data for any process on any host."""

from datetime import UTC
from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.formats.registry import by_token
from service.formats.request import ConversionRequest
from service.formats.source import Part, Source
from service.formats.table import FORMATS
from service.ids import AccountId, JobId
from service.jobs.lifecycle import Status
from service.jobs.records import Details, Job
from service.jobs.spec import JobSpec, PartSpec, SourceSpec, source_spec

TEXT = st.text(max_size=40)
TOKENS = st.sampled_from([row.token for row in FORMATS])
WORD = st.text("abz09", min_size=1, max_size=8)
NAMES = st.builds(
    "{}.{}".format, st.lists(WORD, min_size=1, max_size=3).map("/".join), st.sampled_from(["a", "geojson"])
)
PARTS = st.builds(PartSpec, st.dictionaries(TEXT, NAMES, min_size=1, max_size=4), TEXT)
SOURCES = st.builds(
    SourceSpec,
    format=TOKENS,
    parts=st.lists(PARTS, min_size=1, max_size=3).map(tuple),
    stem=TEXT,
    prefix=TEXT,
    options=st.lists(TEXT, max_size=3).map(tuple),
    warnings=st.lists(TEXT, max_size=3).map(tuple),
    warnings_without=st.dictionaries(TEXT, TEXT, max_size=3),
)
JOBS = st.builds(
    Job,
    id=st.uuids().map(JobId),
    status=st.just(Status.PENDING),
    original_file_name=TEXT,
    input_format=TOKENS,
    output_format=TOKENS,
    input_size_bytes=st.integers(0, 2**40),
    created_at=st.datetimes(timezones=st.just(UTC)),
    attempt=st.integers(1, 9),
    details=st.builds(Details, warnings=st.lists(TEXT, max_size=3).map(tuple)),
)
REQUESTS = st.builds(
    ConversionRequest,
    output=st.none() | TEXT,
    target_epsg=st.integers(-(10**9), 10**9),
    source_epsg=st.none() | st.integers(-(10**9), 10**9),
    layer=st.none() | TEXT,
    keep_coordinates=st.booleans(),
)
SPECS = st.builds(
    JobSpec,
    job=JOBS,
    account_id=st.uuids().map(AccountId),
    upload=NAMES,
    source=SOURCES,
    target=TOKENS,
    request=REQUESTS,
    retention_hours=st.integers(1, 1000),
    object_key=TEXT,
)


@pytest.mark.no_cover
@given(SPECS)
def test_it_is_the_same_after_a_way_through_bytes(spec: JobSpec) -> None:
    """Nothing in it depends on this process."""
    assert msgspec.msgpack.decode(msgspec.msgpack.encode(spec), type=JobSpec) == spec


@given(SOURCES, st.sampled_from(["/srv/a", "/var/lib/b/c"]))
def test_its_files_are_found_in_whatever_directory_a_host_has_for_them(spec: SourceSpec, host: str) -> None:
    """The same files, below another directory."""
    directory = Path(host)
    source = spec.resolve(directory)
    assert source.format is by_token(spec.format)
    for part, resolved in zip(spec.parts, source.parts, strict=True):
        assert {end: str(path) for end, path in resolved.files.items()} == {
            end: f"{host}/{name}" for end, name in part.files.items()
        }
    described = source_spec(source, directory)
    assert described == spec
    assert host.encode() not in msgspec.msgpack.encode(described)


def test_nothing_of_a_source_is_lost_on_the_way_to_its_job(tmp_path: Path) -> None:
    """Even the warnings that depend on columns found later: every field is restored."""
    source = Source(
        format=by_token("kml"),
        parts=(Part({".kml": tmp_path / "in.kml"}, "in"),),
        stem="in",
        prefix="prefix",
        options=("OPTION=1",),
        warnings=("a warning",),
        warnings_without={"ids were left out": "id"},
        looked_seconds=1.5,
    )
    described = msgspec.msgpack.decode(msgspec.msgpack.encode(source_spec(source, tmp_path)), type=SourceSpec)
    assert described.resolve(tmp_path) == source


def test_a_source_outside_the_jobs_directory_cannot_be_described(tmp_path: Path) -> None:
    """It would not exist on another host, nor be removed with the job."""
    part = Part({".csv": tmp_path / "elsewhere" / "a.csv"}, "a")
    source = Source(format=by_token("csv"), parts=(part,), stem="a")
    with pytest.raises(ValueError, match="elsewhere"):
        source_spec(source, tmp_path / "job")
