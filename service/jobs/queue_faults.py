"""What goes wrong between this process and the queue, and how long it waits for the server."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final, NamedTuple

import nats.errors
from nats.js.errors import APIError

from service.errors import QueueUnavailable

CONNECT_SECONDS: Final = 5.0
ANSWER_SECONDS: Final = 5.0
RETRY_AFTER_SECONDS: Final = 5


class QueueRefusal(NamedTuple):
    """Why a server is not used that answers: what it does, and what an operator has to do, since waiting is no help."""

    state: str
    advice: str


_CREDENTIALS: Final = QueueRefusal(
    "refuses the credentials of GEOMILL_NATS_URL",
    "Check the user and the password, or the token, in GEOMILL_NATS_URL, and what NATS allows them.",
)
_NO_TLS: Final = QueueRefusal(
    "has no TLS, which GEOMILL_NATS_URL asks for",
    "Give it TLS, or write nats:// in GEOMILL_NATS_URL if only gateways and workers can reach it.",
)


class NoTlsError(nats.errors.Error):
    """The server offers no TLS, and nothing was said to it that others must not hear."""

    def __str__(self) -> str:
        return f"it {_NO_TLS.state}"


def refusal_in(error: Exception) -> QueueRefusal | None:
    """Return what the server, or the client, refuses; None if waiting may help.

    The client has no class of its own for all sentences about credentials.
    """
    if isinstance(error, NoTlsError):
        return _NO_TLS
    is_of_credentials = isinstance(error, nats.errors.AuthorizationError) or "authorization" in str(error).lower()
    return _CREDENTIALS if is_of_credentials else None


@contextmanager
def translated() -> Iterator[None]:
    """Raise `QueueUnavailable` for whatever the client of the queue raises in the block."""
    try:
        yield
    except (nats.errors.Error, OSError, TimeoutError) as error:
        raise unreachable() from error


def stated_reason(refusal: QueueUnavailable) -> str:
    """Return why the server says that it accepts nothing; empty if it does not say so."""
    cause = refusal.__cause__
    return (cause.description or str(cause)) if isinstance(cause, APIError) else ""


def unreachable() -> QueueUnavailable:
    """Return what a client is told while no worker can be told of its job."""
    message = "The service cannot reach its converters at the moment. Send the request again later."
    return QueueUnavailable(message, RETRY_AFTER_SECONDS)
