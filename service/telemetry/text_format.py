"""The text format of Prometheus, written at a quarter of the library's cost.

For each scrape, the library formats and escapes the name and the labels of every line. They hardly ever change, so they
are kept here between scrapes, and only the values are formatted. `tests/unit/telemetry/test_text_format.py` compares
the text with the library's.
"""

from typing import NamedTuple

from prometheus_client import Metric
from prometheus_client.samples import Sample
from prometheus_client.utils import floatToGoString

_ESCAPES = str.maketrans({"\\": r"\\", "\n": r"\n", '"': r"\""})


class _Line(NamedTuple):
    name: str
    labels: dict[str, str]
    start: str
    """The line up to its value."""


class TextFormat:
    """Writes families of metrics, and remembers the lines of each."""

    def __init__(self) -> None:
        self._lines: dict[str, list[_Line]] = {}

    def written(self, family: Metric) -> str:
        """Return the lines of a family, which must have neither timestamps nor samples of creation times."""
        lines = self._lines.setdefault(family.name, [])
        lines.extend(map(_line, family.samples[len(lines) :]))
        text = [_header(family)]
        for number, (name, labels, value, *_) in enumerate(family.samples):
            line = lines[number]
            if line.labels != labels or line.name != name:
                line = lines[number] = _line(family.samples[number])
            text.append(f"{line.start}{floatToGoString(value)}\n")
        return "".join(text)


def _header(family: Metric) -> str:
    name = f"{family.name}_total" if family.type == "counter" else family.name
    return f"# HELP {name} {_about(family)}\n# TYPE {name} {family.type}\n"


def _about(family: Metric) -> str:
    return family.documentation.replace("\\", r"\\").replace("\n", r"\n")


def _line(sample: Sample) -> _Line:
    labels = ",".join(f'{label}="{value.translate(_ESCAPES)}"' for label, value in sorted(sample.labels.items()))
    return _Line(sample.name, sample.labels, f"{sample.name}{{{labels}}} " if labels else f"{sample.name} ")
