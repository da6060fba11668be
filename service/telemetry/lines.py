"""The lines of the text format of Prometheus, formed as the library does."""

from collections.abc import Iterable
from typing import Final, NamedTuple

from prometheus_client import Metric
from prometheus_client.utils import floatToGoString

_ESCAPES: Final = str.maketrans({"\\": r"\\", '"': r"\"", "\n": r"\n"})


class Piece(NamedTuple):
    """A part of the text, and how many samples were read or written for it; both may be nothing."""

    samples: int
    text: str


def header(name: str, kind: str, documentation: str) -> str:
    """Return the two lines before the samples of a family."""
    shown = f"{name}_total" if kind == "counter" else name
    return f"# HELP {shown} {documentation}\n# TYPE {shown} {kind}\n"


def series(name: str, labels: Iterable[tuple[str, str]]) -> str:
    """Return the start of a line: the name of a series with its labels."""
    pairs = [f'{label}="{value.translate(_ESCAPES)}"' for label, value in sorted(labels)]
    return f"{name}{{{','.join(pairs)}}}" if pairs else name


def line(start: str, value: float) -> str:
    """Return the line of one sample."""
    return f"{start} {floatToGoString(value)}\n"


def whole(family: Metric) -> Piece:
    """Return a family that has few samples, in one piece."""
    lines = [line(series(each.name, each.labels.items()), each.value) for each in family.samples]
    return Piece(len(lines), "".join((header(family.name, family.type, family.documentation), *lines)))
