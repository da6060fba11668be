"""What can be read and written now: by this host, or by all workers of a fleet."""

from collections.abc import Collection, Iterable, Mapping, Sequence

import msgspec

from service.errors import Overloaded, Rejection
from service.formats.format import Format
from service.formats.registry import by_token
from service.formats.table import FORMATS

NO_WORKER = "No worker that could convert the file is running at the moment. Send the request again later."
RETRY_AFTER_SECONDS = 10
UNKNOWN = "Not all workers know the format."


class Availability(msgspec.Struct, frozen=True, kw_only=True):
    """Whether a format can be read and written; `reason` says why not, "" if nothing is missing.

    Plain data that processes of different versions exchange; `token` names the format.
    """

    token: str
    input: bool
    output: bool
    reason: str = ""

    @property
    def format(self) -> Format:
        """The format itself."""
        return by_token(self.token)


class Offer:
    """The formats that the service offers; in a gateway they change with the workers."""

    def __init__(self, formats: Iterable[Availability] = ()) -> None:
        self._formats: dict[str, Availability] = {}
        self._unwritable: dict[str, str] = {}
        self.replace(formats)

    def replace(self, formats: Iterable[Availability]) -> None:
        """Offer these formats from now on; nothing if there are none."""
        self._formats = {entry.token: entry for entry in formats}
        missing = (entry for entry in self._formats.values() if entry.format.writing is not None and not entry.output)
        self._unwritable = {entry.token: entry.reason for entry in missing}

    def require(self) -> None:
        """Raise `Overloaded` if nothing is offered, because no worker is known."""
        if not self._formats:
            raise Overloaded(NO_WORKER, RETRY_AFTER_SECONDS)

    def formats(self) -> tuple[Availability, ...]:
        """Return every format with its availability; raises what `require` raises."""
        self.require()
        return tuple(self._formats.values())

    def unwritable(self) -> Mapping[str, str]:
        """Return the formats that can be written elsewhere only, token to reason; raises what `require` raises."""
        self.require()
        return self._unwritable

    def require_readable(self, source: Format) -> None:
        """Require that a format can be read.

        Raises:
            Rejection: it cannot.
            Overloaded: as `require`.
        """
        self.require()
        entry = self._formats.get(source.token)
        if entry is None or not entry.input:
            raise Rejection(f"{source.title} cannot be read on this host: {UNKNOWN if entry is None else entry.reason}")

    def can(self, source: str | None, target: str) -> bool:
        """Whether a format, by its token, can be read, and another one be written."""
        return can(self._formats.values(), source, target)


def can(formats: Collection[Availability], source: str | None, target: str) -> bool:
    """Whether of these formats, which this version need not know, one can be read, and another one be written."""
    reads = any(entry.token == source and entry.input for entry in formats)
    return reads and any(entry.token == target and entry.output for entry in formats)


def common(offers: Sequence[Sequence[Availability]]) -> tuple[Availability, ...]:
    """Return what all of these hosts can read and write, of the formats that this version knows."""
    hosts = [{entry.token: entry for entry in offer} for offer in offers]
    return tuple(_common(row, [host.get(row.token) for host in hosts]) for row in FORMATS) if hosts else ()


def _common(row: Format, found: Sequence[Availability | None]) -> Availability:
    known = [entry for entry in found if entry is not None]
    reasons = [entry.reason for entry in known if entry.reason]
    everywhere = len(known) == len(found)
    return Availability(
        token=row.token,
        input=everywhere and all(entry.input for entry in known),
        output=everywhere and all(entry.output for entry in known),
        reason=next(iter(reasons), "" if everywhere else UNKNOWN),
    )
