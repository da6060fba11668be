"""The traceparent header of W3C Trace Context: the trace that a request belongs to, and the calling span."""

import re

import msgspec

from service.ids import tracking_id

HEADER = "traceparent"

# Version ff is invalid, later versions may add fields after the flags, and all-zero ids are invalid.
_FORM = re.compile(
    r"(?!ff)(?P<version>[0-9a-f]{2})-(?!0{32})(?P<trace>[0-9a-f]{32})-(?!0{16})(?P<span>[0-9a-f]{16})"
    r"-(?P<flags>[0-9a-f]{2})(?P<more>-.*)?"
)
_SAMPLED = 0x01


class TraceParent(msgspec.Struct, frozen=True):
    """One span of a trace; ids in lower-case hexadecimal."""

    trace_id: str
    span_id: str
    sampled: bool = False

    def child(self) -> "TraceParent":
        """Return a new span of the same trace."""
        return TraceParent(self.trace_id, tracking_id(8), self.sampled)

    def __str__(self) -> str:
        return f"00-{self.trace_id}-{self.span_id}-{int(self.sampled):02x}"


def parse(text: str) -> TraceParent | None:
    """Parse the header; None if it is malformed, so that a new trace starts."""
    match = _FORM.fullmatch(text.strip())
    if match is None or (match["version"] == "00" and match["more"]):
        return None
    return TraceParent(match["trace"], match["span"], bool(int(match["flags"], 16) & _SAMPLED))


def fresh() -> TraceParent:
    """Return the first span of a new trace."""
    both = tracking_id(16 + 8)
    return TraceParent(both[:32], both[32:])
