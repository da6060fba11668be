"""Signed links grant exactly what was signed."""

from urllib.parse import parse_qsl, unquote, urlencode, urlsplit

import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.errors import DownloadExpired, DownloadRefused
from service.storage.links import Grant, LinkSigner
from service.storage.port import ObjectKey

OLD, NEW = b"o" * 32, b"n" * 32
NOW = 1_700_000_000
GRANT = Grant(ObjectKey("5a" * 16), "Straßen & Wege.zip", "application/zip", NOW + 60)

names = st.text(st.characters(codec="utf-8"), min_size=1)


def verify(signer: LinkSigner, url: str, now: float = NOW) -> Grant:
    """Parse a URL as a server does, and verify it."""
    parts = urlsplit(url)
    key, name = (unquote(segment) for segment in parts.path.removeprefix("/files/").split("/"))
    return signer.verify(key, name, parts.query, now)


@given(name=names, media_type=names)
def test_a_link_grants_what_was_signed(name: str, media_type: str) -> None:
    """Any name and type survive the URL."""
    grant = Grant(GRANT.key, name, media_type, NOW + 1)
    signer = LinkSigner([NEW])
    assert verify(signer, signer.sign(grant)) == grant


def test_a_link_works_until_its_second_and_not_in_it() -> None:
    """The expiry is exclusive."""
    url = LinkSigner([NEW]).sign(GRANT)
    assert verify(LinkSigner([NEW]), url, NOW + 59.999) == GRANT
    with pytest.raises(DownloadExpired):
        verify(LinkSigner([NEW]), url, NOW + 60)


def test_secrets_rotate_while_links_are_out() -> None:
    """A link with a former secret works as long as that secret is listed, and no longer."""
    url = LinkSigner([OLD]).sign(GRANT)
    assert verify(LinkSigner([NEW, OLD]), url) == GRANT
    with pytest.raises(DownloadRefused):
        verify(LinkSigner([NEW]), url)


def test_every_changed_character_is_refused() -> None:
    """Each character of key, name and query, changed to a similar one, invalidates the link."""
    signer = LinkSigner([NEW])
    url = signer.sign(GRANT)
    for place in range(len("/files/"), len(url)):
        for replacement in {chr(ord(url[place]) ^ 1), "A", "0", "-", "%41"} - {url[place]}:
            changed = url[:place] + replacement + url[place + 1 :]
            try:
                granted = verify(signer, changed)
            except (DownloadRefused, ValueError):
                continue
            # A second spelling of the same text (%c3 for %C3) is the same link, and grants no more.
            assert granted == GRANT, changed


@pytest.mark.parametrize(
    "change",
    [
        {"expires": str(NOW + 61)},
        {"expires": f"0{NOW + 60}"},
        {"expires": f"+{NOW + 60}"},
        {"expires": ""},
        {"type": "text/html"},
        {"signature": ""},
        {"signature": "é"},
        {"extra": "1"},
    ],
)
def test_every_changed_parameter_is_refused(change: dict[str, str]) -> None:
    """The signature covers the whole query."""
    path, _, query = LinkSigner([NEW]).sign(GRANT).partition("?")
    with pytest.raises(DownloadRefused):
        verify(LinkSigner([NEW]), f"{path}?{urlencode({**dict(parse_qsl(query)), **change})}")


@pytest.mark.parametrize("name", ["expires", "type", "signature"])
def test_a_missing_or_doubled_parameter_is_refused(name: str) -> None:
    """No part of a signature has a default."""
    path, _, query = LinkSigner([NEW]).sign(GRANT).partition("?")
    pairs = parse_qsl(query)
    missing = [pair for pair in pairs if pair[0] != name]
    doubled = [*pairs, (name, dict(pairs)[name])]
    for spoiled in (missing, doubled):
        with pytest.raises(DownloadRefused):
            verify(LinkSigner([NEW]), f"{path}?{urlencode(spoiled)}")


@given(st.text(), st.text(), st.text())
def test_noise_is_refused(key: str, name: str, query: str) -> None:
    """Arbitrary text is refused, and never causes another error."""
    with pytest.raises(DownloadRefused):
        LinkSigner([NEW]).verify(key, name, query, NOW)


def test_fields_cannot_flow_into_each_other() -> None:
    """Moving characters from the name to the type invalidates the signature."""
    signer = LinkSigner([NEW])
    query = signer.sign(Grant(GRANT.key, "a.zip", "text/x", NOW + 60)).partition("?")[2]
    with pytest.raises(DownloadRefused):
        signer.verify(GRANT.key, "a.zi", query.replace("text", "ptext"), NOW)
