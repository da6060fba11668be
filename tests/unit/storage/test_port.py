"""Object keys, and how long a link may last."""

from datetime import UTC, datetime, timedelta

import pytest

from service.storage.port import MAX_LINK_LIFE, ObjectKey, is_key, link_seconds, new_input_key, new_key, split_key

KEY = "a" * 32
NOW = datetime(2026, 3, 1, 12, 0, 0, 700_000, tzinfo=UTC)


def test_keys_are_random_and_say_nothing() -> None:
    """A thousand keys are a thousand names of 128 bits."""
    keys = {new_key() for _ in range(1000)}
    assert len(keys) == 1000
    assert all(len(bytes.fromhex(key)) == 16 for key in keys)


def test_a_key_knows_its_region() -> None:
    """The region is part of the key, so that the key suffices to find the object."""
    region, name = split_key(new_key("eu-west"))
    assert region == "eu-west"
    assert is_key(name)


def test_inputs_have_a_prefix_and_the_region_of_their_outputs() -> None:
    """So that a lifecycle rule of the bucket can remove leftovers."""
    assert split_key(new_input_key(new_key()))[1].startswith("in-")
    region, name = split_key(new_input_key(new_key("eu-west")))
    assert (region, name[:3]) == ("eu-west", "in-")
    assert is_key(name)


@pytest.mark.parametrize(
    "text",
    [
        *("", "..", "../" + KEY, "A" * 32, "a" * 31, "a" * 33, "a" * 32 + "\n", "EU/" + KEY, "/" + KEY),
        *("in-", "in-in-" + KEY, "out-" + KEY),
    ],
)
def test_what_is_no_key_is_refused(text: str) -> None:
    """Only what `new_key` returns reaches a file system or a bucket."""
    with pytest.raises(ValueError, match="not an object key"):
        split_key(ObjectKey(text))


@pytest.mark.parametrize(
    ("ahead", "seconds"),
    [
        (timedelta(hours=4), 4 * 3600),
        (timedelta(seconds=10, milliseconds=200), 10),
        (timedelta(milliseconds=299), 0),
        (timedelta(seconds=-5), 0),
        (timedelta(days=30), 7 * 86400),
    ],
)
def test_a_link_lasts_until_retention_and_never_beyond_the_signatures_maximum(ahead: timedelta, seconds: int) -> None:
    """Fractions of seconds are rounded down."""
    start, lasts = link_seconds(NOW, NOW + ahead)
    assert lasts == seconds
    assert datetime.fromtimestamp(start + lasts, UTC) <= max(NOW, min(NOW + ahead, NOW + MAX_LINK_LIFE))
