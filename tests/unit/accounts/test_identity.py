"""A trusted gateway's identity header is valid if it is signed, fresh and made for this request."""

from datetime import UTC, datetime, timedelta
from uuid import UUID

import pytest

from service.accounts.identity import TrustedGateway, parse_identity_secrets, sign_identity
from service.errors import InvalidIdentity
from service.settings import SettingsError

NOW = datetime(2026, 5, 4, 10, 30, tzinfo=UTC)
ACCOUNT = UUID("0190a6e5-7b1c-7000-8000-000000000001")
OLD, NEW = b"o" * 32, b"n" * 32
PATH = "/api/geo/convert/file"


def identity(secret: bytes = NEW, at: datetime = NOW, method: str = "POST", path: str = PATH) -> str:
    """A header as a gateway makes it."""
    seconds = str(int(at.timestamp()))
    return f"account={ACCOUNT},time={seconds},v1={sign_identity(secret, str(ACCOUNT), seconds, method, path)}"


def verify(*headers: str, method: str = "POST", path: str = PATH) -> UUID:
    """Verify with a gateway's two secrets and a tolerance of one minute."""
    return TrustedGateway((OLD, NEW), 60).verify(headers, method, path, NOW)


@pytest.mark.parametrize("secret", [OLD, NEW])
def test_any_of_the_secrets_may_have_signed(secret: bytes) -> None:
    """So that a secret can be replaced without interruption."""
    assert verify(identity(secret)) == ACCOUNT


def test_the_documented_example_is_what_a_gateway_computes() -> None:
    """The signature in docs/operating.md, computed exactly as described."""
    expected = "15781081d7b1ec8966bad589a66901cbe956c3ad77f36cd6f26e9cb0d249ccf3"
    assert sign_identity(NEW, str(ACCOUNT), "1777890600", "POST", PATH) == expected


@pytest.mark.parametrize("seconds", [-61, 61, -86400])
def test_an_old_or_early_word_is_refused(seconds: int) -> None:
    """An intercepted signature cannot be used for long."""
    with pytest.raises(InvalidIdentity, match="too old"):
        verify(identity(at=NOW + timedelta(seconds=seconds)))


@pytest.mark.parametrize("seconds", [-60, 0, 60])
def test_clocks_may_differ_a_little(seconds: int) -> None:
    """By a minute, here."""
    assert verify(identity(at=NOW + timedelta(seconds=seconds))) == ACCOUNT


def test_a_word_holds_for_its_own_request_alone() -> None:
    """For no other method or path."""
    for other in ({"method": "GET"}, {"path": "/api/geo/convert/batch"}):
        with pytest.raises(InvalidIdentity):
            verify(identity(), **other)


def test_every_altered_character_is_noticed() -> None:
    """In the account, the time and the signature."""
    good = identity()
    for position, character in enumerate(good):
        altered = good[:position] + ("0" if character != "0" else "1") + good[position + 1 :]
        with pytest.raises(InvalidIdentity):
            verify(altered)


@pytest.mark.parametrize("header", ["", "account=", "x" * 5000, identity(b"x" * 32), identity() + " ", "é" * 40])
def test_what_is_no_word_of_the_gateway_is_refused(header: str) -> None:
    """Whatever it looks like."""
    with pytest.raises(InvalidIdentity):
        verify(header)


def test_two_words_are_none() -> None:
    """A client must not add its own to the gateway's."""
    with pytest.raises(InvalidIdentity):
        verify(identity(), identity())


def test_secrets_are_separated_by_commas_and_long() -> None:
    """Without a secret, no gateway is trusted."""
    assert parse_identity_secrets("") == ()
    assert parse_identity_secrets(f"{OLD.decode()}, {NEW.decode()}") == (OLD, NEW)
    with pytest.raises(SettingsError, match="GEOMILL_IDENTITY_SECRET"):
        parse_identity_secrets("short")


def test_a_signed_account_that_is_no_id_is_refused() -> None:
    """The error blames the gateway rather than the service."""
    for account in ("-" * 36, str(ACCOUNT).replace("-", "") + "----"):
        seconds = str(int(NOW.timestamp()))
        header = f"account={account},time={seconds},v1={sign_identity(NEW, account, seconds, 'POST', PATH)}"
        with pytest.raises(InvalidIdentity):
            verify(header)
