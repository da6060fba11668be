"""What goes wrong between this process and the queue, and how long it waits for the server."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

import nats.errors
from nats.js.errors import APIError

from service.errors import QueueUnavailable

CONNECT_SECONDS: Final = 5.0
ANSWER_SECONDS: Final = 5.0
RETRY_AFTER_SECONDS: Final = 5
REFUSED: Final = "Check the user and the password, or the token, in GEOMILL_NATS_URL, and what NATS allows them."
"""What to do if the server refuses the credentials."""


def is_refusal(error: Exception) -> bool:
    """Whether the server refuses credentials: the client has no class of its own for all its sentences."""
    return isinstance(error, nats.errors.AuthorizationError) or "authorization" in str(error).lower()


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
