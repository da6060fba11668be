"""What a gateway sends to workers: plain data of a known version, and the lanes for it."""

from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from uuid import UUID, uuid4

import msgspec
import pytest

from service.formats.request import ConversionRequest
from service.ids import AccountId, JobId, ServerId
from service.jobs.handover import (
    LANES,
    LARGE_BYTES,
    READS,
    VERSION,
    HandOver,
    lane_of,
    proof_of,
    read_handover,
    sealed,
    write_handover,
)
from service.jobs.lanes import Lanes
from service.jobs.lifecycle import Status
from service.jobs.records import Details, Job
from service.jobs.seals import is_seal

FIELDS = {
    3: {
        HandOver: "version job account_id request target retention_hours gateway content traceparent input_sha256 seal",
        Job: (
            "id status original_file_name input_format output_format input_size_bytes created_at attempt completed_at "
            "feature_count geometry_type processing_time_ms output_size_bytes object_key download_name media_type "
            "expires_at error_message details stage stage_share"
        ),
        Details: (
            "warnings output_epsg truncation_report limit needs_upgrade payment_past_due target_format layers "
            "remaining_conversions remaining_bytes wallet_cents"
        ),
        ConversionRequest: ("output target_epsg source_epsg layer x_field y_field z_field wkt_field keep_coordinates"),
    }
}
"""The fields of a handover by version. Workers drop those that they do not know, so new ones need a new version."""
MESSAGES = Path(__file__).with_name("handovers")
"""A message of each version that is read, as that version wrote it; those of released versions never change."""
SECRET = "0123456789abcdef" * 2
"""The one with which they are sealed."""
DAY = date(2026, 5, 1)


def handover(content: bytes | None = b"{}") -> HandOver:
    """A job that was handed over."""
    return HandOver(
        job=Job(
            id=JobId(uuid4()),
            status=Status.PENDING,
            original_file_name="a.geojson",
            input_format="geojson",
            output_format="csv",
            input_size_bytes=2,
            created_at=datetime(2026, 5, 1, tzinfo=UTC),
        ),
        account_id=AccountId(uuid4()),
        request=ConversionRequest(output="csv"),
        target="csv",
        retention_hours=4,
        gateway=ServerId(uuid4()),
        content=content,
    )


def test_what_is_told_is_understood() -> None:
    """With the input inside the message or outside."""
    for told in (handover(), handover(None)):
        assert read_handover(write_handover(told)) == told


def test_a_seal_shows_who_made_it_and_that_nothing_was_changed() -> None:
    """After it was sent, too; the secret itself is not in it."""
    secret = "0" * 32
    told = sealed(handover(), secret)
    written = write_handover(told)
    assert secret.encode() not in written
    assert is_seal(proof_of(written, told.seal), secret)
    assert not is_seal(proof_of(written, told.seal), "1" * 32)
    assert not is_seal(proof_of(written.replace(b"{}", b"[]"), told.seal), secret)
    assert not is_seal(proof_of(write_handover(handover()), b""), secret)


@pytest.mark.parametrize("version", READS)
def test_messages_of_this_and_the_previous_version_are_read(version: int) -> None:
    """Their seals are those of what was written; a version that knows more fields would write other bytes."""
    message = (MESSAGES / f"{version}.msgpack").read_bytes()
    told = read_handover(message)
    assert told is not None
    assert (told.version, told.job.original_file_name, told.request.target_epsg) == (
        version,
        "Lac de Genève.geojson",
        3857,
    )
    assert is_seal(proof_of(message, told.seal), SECRET)
    assert (write_handover(told) == message) is (version == VERSION)


def test_the_seal_is_the_last_field() -> None:
    """It is left out of what is sealed by its place."""
    assert HandOver.__struct_fields__[-1] == "seal"


@pytest.mark.parametrize("version", [READS[0] - 1, VERSION + 1])
def test_another_version_is_left_to_others(version: int) -> None:
    """Whatever else it contains."""
    told = msgspec.msgpack.encode({"version": version, "job": "of another kind"})
    assert read_handover(told) is None


def test_each_version_has_its_fields() -> None:
    """A worker of the same version would ignore an unknown field, and convert differently than requested."""
    told = {kind: " ".join(kind.__struct_fields__) for kind in FIELDS[VERSION]}
    assert told == FIELDS[VERSION]


def test_an_account_has_one_lane_a_day_and_large_inputs_others() -> None:
    """Accounts are spread over all lanes."""
    account = AccountId(UUID(int=7))
    assert lane_of(account, DAY, 1) == lane_of(account, DAY, LARGE_BYTES)
    assert lane_of(account, DAY, LARGE_BYTES + 1) == lane_of(account, DAY, 1).replace("small", "large")
    assert len({lane_of(account, DAY + timedelta(days), 1) for days in range(200)}) == LANES
    assert len({lane_of(AccountId(uuid4()), DAY, 1) for _ in range(1000)}) == LANES


def test_lanes_are_looked_into_in_turn() -> None:
    """A lane that is never empty comes once per round."""
    lanes = Lanes()
    seen = []
    while lane := lanes.next(may_be_large=True):
        seen.append(lane)
    assert len(seen) == len(set(seen)) == 2 * LANES
    for lane in ("small.3", "small.5", "large.4"):
        lanes.stir(lane)
    turns = []
    for _ in range(6):
        turn = lanes.next(may_be_large=True)
        assert turn is not None
        lanes.stir(turn)
        turns.append(turn)
    assert turns == ["small.3", "large.4", "small.5"] * 2


def test_large_lanes_wait_until_they_may_come() -> None:
    """They are kept meanwhile; names that are not lanes are ignored."""
    lanes = Lanes()
    while lanes.next(may_be_large=True):
        pass
    lanes.stir("large.1")
    lanes.stir("another")
    assert lanes.next(may_be_large=False) is None
    assert lanes.next(may_be_large=True) == "large.1"
    assert lanes.next(may_be_large=True) is None
