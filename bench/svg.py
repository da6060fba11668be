"""Charts as SVG: lines over an axis that may be logarithmic, and bars. No script, no font, nothing from elsewhere."""

import math
from collections.abc import Callable, Mapping, Sequence
from html import escape

import msgspec

WIDTH, HEIGHT = 520, 300
LEFT, RIGHT, TOP, BOTTOM = 64, 16, 34, 46
COLOURS = ("#1b6ca8", "#d1495b", "#2e933c", "#b5651d", "#6a4c93", "#008b8b", "#8a8a00", "#c2185b")
TICKS = 5
DECADE = 10
STEPS = (1, 2, 5, 10)

Point = tuple[float, float]


class Axis(msgspec.Struct, frozen=True, kw_only=True):
    """An axis from `low` to `high`; `ticks` are named values, where the usual ones will not do."""

    title: str
    low: float
    high: float
    log: bool = False
    ticks: Mapping[float, str] | None = None

    def share(self, value: float) -> float:
        """Where a value is between the axis's ends, from 0 to 1."""
        if self.log:
            return math.log(max(value, self.low) / self.low) / math.log(self.high / self.low)
        return (value - self.low) / (self.high - self.low)

    def marks(self) -> Mapping[float, str]:
        """The values that are written beside the axis."""
        if self.ticks is not None:
            return self.ticks
        if self.log:
            first, last = math.floor(math.log10(self.low)), math.ceil(math.log10(self.high))
            decades = [DECADE**exponent for exponent in range(first, last + 1)]
            return {value: f"{value:g}" for value in decades if self.low <= value <= self.high}
        step = _round_step((self.high - self.low) / TICKS)
        values = [step * number for number in range(math.ceil(self.low / step), math.floor(self.high / step) + 1)]
        return {value: f"{value:g}" for value in values}


def _round_step(least: float) -> float:
    """The smallest of 1, 2, 5, 10, 20… (and 0.5, 0.2, 0.1…) that is not below `least`."""
    decade: float = DECADE ** math.floor(math.log10(least))
    return next(decade * digit for digit in STEPS if decade * digit >= least)


def log_axis(title: str, values: Sequence[float]) -> Axis:
    """A logarithmic axis of whole decades around positive values."""
    positive = [value for value in values if value > 0] or [1.0]
    low, high = math.floor(math.log10(min(positive))), math.ceil(math.log10(max(positive)))
    return Axis(title=title, low=DECADE**low, high=DECADE ** max(high, low + 1), log=True)


def lines(title: str, x: Axis, y: Axis, series: Mapping[str, Sequence[Point]]) -> str:
    """Draw one line for each series."""
    across, up = _scales(x, y)
    drawn = [_axes(x, y, across, up)]
    for (name, points), colour in zip(series.items(), _colours(len(series)), strict=True):
        places = [(across(horizontal), up(vertical)) for horizontal, vertical in points]
        path = " ".join(f"{left:.1f},{top:.1f}" for left, top in places)
        dots = "".join(f'<circle cx="{left:.1f}" cy="{top:.1f}" r="2.5" fill="{colour}"/>' for left, top in places)
        drawn.append(f'<polyline fill="none" stroke="{colour}" stroke-width="2" points="{path}"/>{dots}')
        drawn.append(f"<title>{escape(name)}</title>")
    return _figure(title, "".join(drawn), list(series))


def bars(title: str, unit: str, groups: Mapping[str, Mapping[str, float]]) -> str:
    """Draw a row for each group, with a bar for each of its values; they share one scale."""
    names = list(dict.fromkeys(name for values in groups.values() for name in values))
    most = max((value for values in groups.values() for value in values.values()), default=1.0) or 1.0
    rows, top = [], 0
    for group, values in groups.items():
        height = 14 * len(values) + 10
        rows.append(f'<text x="150" y="{top + 14}" text-anchor="end">{escape(group)}</text>')
        for number, (name, value) in enumerate(values.items()):
            colour, width = COLOURS[names.index(name) % len(COLOURS)], 280 * value / most
            place = top + 4 + 14 * number
            rows.append(f'<rect x="158" y="{place}" width="{width:.1f}" height="11" fill="{colour}"/>')
            rows.append(f'<text x="{164 + width:.1f}" y="{place + 10}">{value:.4g}</text>')
        top += height
    body = f'<svg viewBox="0 0 {WIDTH} {top + 6}" role="img" aria-label="{escape(title)}">{"".join(rows)}</svg>'
    return f"<figure><figcaption>{escape(title)} ({escape(unit)})</figcaption>{body}{_legend(names)}</figure>"


def _colours(count: int) -> list[str]:
    return [COLOURS[number % len(COLOURS)] for number in range(count)]


def _scales(x: Axis, y: Axis) -> tuple[Callable[[float], float], Callable[[float], float]]:
    width, height = WIDTH - LEFT - RIGHT, HEIGHT - TOP - BOTTOM
    return (lambda value: LEFT + width * x.share(value), lambda value: HEIGHT - BOTTOM - height * y.share(value))


def _axes(x: Axis, y: Axis, across: Callable[[float], float], up: Callable[[float], float]) -> str:
    right, bottom = WIDTH - RIGHT, HEIGHT - BOTTOM
    rows = [
        f'<line class="grid" x1="{LEFT}" x2="{right}" y1="{up(value):.1f}" y2="{up(value):.1f}"/>'
        f'<text x="{LEFT - 6}" y="{up(value) + 4:.1f}" text-anchor="end">{escape(name)}</text>'
        for value, name in y.marks().items()
    ]
    columns = [
        f'<line class="grid" y1="{TOP}" y2="{bottom}" x1="{across(value):.1f}" x2="{across(value):.1f}"/>'
        f'<text x="{across(value):.1f}" y="{bottom + 16}" text-anchor="middle">{escape(name)}</text>'
        for value, name in x.marks().items()
    ]
    titles = (
        f'<text x="{(LEFT + right) / 2}" y="{HEIGHT - 8}" text-anchor="middle">{escape(x.title)}</text>'
        f'<text x="{LEFT - 50}" y="{TOP - 14}">{escape(y.title)}</text>'
    )
    return "".join([*rows, *columns, titles])


def _figure(title: str, drawn: str, names: Sequence[str]) -> str:
    body = f'<svg viewBox="0 0 {WIDTH} {HEIGHT}" role="img" aria-label="{escape(title)}">{drawn}</svg>'
    return f"<figure><figcaption>{escape(title)}</figcaption>{body}{_legend(names)}</figure>"


def _legend(names: Sequence[str]) -> str:
    items = zip(names, _colours(len(names)), strict=True)
    return "<p>" + " ".join(f'<span style="color:{colour}">■ {escape(name)}</span>' for name, colour in items) + "</p>"
