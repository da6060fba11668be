"""One page of a run: goals, figures, plots, and what has changed since an earlier run.

python -m bench.report [EARLIER.json] [--results RUN.json …] [--output bench/results/report.html]
"""

import argparse
from collections.abc import Iterable, Iterator, Mapping, Sequence
from html import escape
from pathlib import Path
from typing import Any

from bench.figures import Figures
from bench.goals import GOALS, ratio
from bench.plots import plots
from bench.results import DIRECTORY, LATEST, Parts, Results, read_parts, read_results

PARTS = ("admissions", "analyze", "history", "launchers", "soak", "uploads")
NOTABLE = 0.1
VERDICTS = {True: '<span class="met">met</span>', False: '<span class="missed">missed</span>', None: ""}
STYLE = """
body { font: 14px/1.45 system-ui, sans-serif; max-width: 1120px; margin: 2em auto; padding: 0 1em; color: #1c2430 }
h1, h2 { font-weight: 600 } table { border-collapse: collapse; width: 100%; font-variant-numeric: tabular-nums }
th, td { padding: .25em .6em; text-align: right; border-bottom: 1px solid #dde3ea; vertical-align: top }
th:first-child, td:first-child, .goals td:nth-child(2), .goals th:nth-child(2) { text-align: left }
.met { color: #1d7a3a } .missed { color: #b3261e }
small { color: #5b6675; display: block } .plots { display: flex; flex-wrap: wrap; gap: 1em }
figure { margin: 0; width: 540px } figcaption { font-weight: 600 } svg { width: 100% } svg text { font-size: 11px }
figure p { margin: .2em 0; font-size: 12px } .grid { stroke: #e2e7ee }
"""


def page(runs: Sequence[Results], parts: Parts, earlier: Results | None) -> str:
    """The whole page; it needs nothing from anywhere."""
    found = {name: figures for run in runs for name, figures in run.scenarios.items()}
    sections = [
        "<h1>Geomill: measurements</h1>",
        *map(_heading, runs),
        _section("Goals", _goals(runs, parts)),
        _section("Figures", _table(found)),
        _section("Plots", '<div class="plots">' + "".join(plots(found, parts)) + "</div>"),
    ]
    if "soak" in parts:
        sections.append(_section("Soak", _soak(parts["soak"])))
    if earlier is not None:
        changes = "".join(_changes(run, earlier) for run in runs)
        sections.append(_section(f"Since {escape(earlier.at)} ({escape(earlier.commit)})", changes))
    head = f'<meta charset="utf-8"><title>Geomill: measurements</title><style>{STYLE}</style>'
    return f'<!doctype html><html lang="en"><head>{head}</head><body>{"".join(sections)}</body></html>\n'


def _heading(results: Results) -> str:
    before, after = results.load_average
    return (
        f"<p>{escape(results.at)}, commit {escape(results.commit)}, "
        f"server: {escape(results.server)}, {results.cores} cores, {escape(results.host)}. Medians of {results.rounds} "
        f"rounds of {results.seconds:g} s; load average of the machine {before} before and {after} after: above the "
        f"number of cores, others were measured too, and only ratios within this run mean something.</p>"
    )


def _section(title: str, content: str) -> str:
    return f"<h2>{title}</h2>{content}"


def _rows(heading: Iterable[str], rows: Iterable[Iterable[str]]) -> str:
    head = "".join(f"<th>{escape(cell)}</th>" for cell in heading)
    body = "".join("<tr>" + "".join(f"<td>{cell}</td>" for cell in row) + "</tr>" for row in rows)
    return f"<table><tr>{head}</tr>{body}</table>"


def _goals(runs: Sequence[Results], parts: Parts) -> str:
    rows = []
    for goal in GOALS:
        values = [goal.value(run, parts) for run in runs]  # a ratio is one run's, never of two
        value = next((found for found in reversed(values) if found is not None), None)
        shown = "" if value is None else f"{value:.3g} {goal.unit}"
        verdict = "not measured" if value is None else VERDICTS[goal.is_met(value)]
        rows.append((goal.id, escape(goal.about), goal.aim, shown, verdict))
    return f'<div class="goals">{_rows(("", "goal", "aim", "measured", ""), rows)}</div>'


def _soak(soak: Mapping[str, Any]) -> str:
    columns = ("medians by quarter", "1st", "2nd", "3rd", "4th", "may grow by", "")
    verdicts = {True: '<span class="met">flat</span>', False: '<span class="missed">grew</span>', None: "not judged"}
    rows = [
        (
            escape(f"{figure['about']} ({figure['unit']})" if figure["unit"] else figure["about"]),
            *(f"{value:.1f}" for value in figure["quarters"]),
            f"{figure['allowed']:g}",
            verdicts[figure["flat"]],
        )
        for figure in soak["figures"].values()
    ]
    about = f"{soak['minutes']:g} minutes, commit {escape(soak['commit'])}, {soak['perSecond']:g} things done a second."
    wrong = "".join(f'<p class="missed">{escape(sentence)}</p>' for sentence in soak["wrong"])
    return f"<p>{about}</p>{wrong}{_rows(columns, rows)}"


def _table(found: Mapping[str, Figures]) -> str:
    columns = ("scenario", "req/s", "p50 ms", "p95", "p99", "p99.9", "gateway ms", "PostgreSQL ms", "converters ms",
               "growth MB", "memory MB", "generator")  # fmt: skip
    return _rows(columns, (_row(name, figures) for name, figures in found.items()))


def _row(name: str, figures: Figures) -> Iterator[str]:
    latency, cpu, memory, errors = figures.latency_ms, figures.cpu_ms or {}, figures.memory, figures.errors
    remarks = [f"{count} x {escape(kind)}" for kind, count in errors.items()]
    if figures.lag_ms is not None:
        remarks.append(f"event loop late by p50 {figures.lag_ms.p50:.1f} ms, p99 {figures.lag_ms.p99:.1f} ms")
    yield f"{escape(name)}<small>{escape(figures.about)}</small>" + "".join(
        f"<small>{each}</small>" for each in remarks
    )
    yield f"{figures.rate:.1f}"
    yield from (f"{value:.1f}" for value in ((latency.p50, latency.p95, latency.p99, latency.p999) if latency else ()))
    yield from ("",) * (0 if latency else 4)
    yield from (f"{cpu[group]:.2f}" if group in cpu else "" for group in ("gateway", "postgres", "converters"))
    yield f"{memory.gateway_growth_mb:.1f}" if memory else ""
    yield f"{memory.all_peak_mb:.0f}" if memory else ""
    limited = ' <span class="missed">limits</span>' if figures.generator.is_bottleneck else ""
    yield f"{figures.generator.core_share:.2f}{limited}"


def _changes(results: Results, earlier: Results) -> str:
    rows = []
    for name, figures in results.scenarios.items():
        before = earlier.scenarios.get(name)
        if before is not None and before.rate:
            rows.append((escape(name), *_change(figures, before), *_change_beside_bare(name, results, earlier)))
    return _rows(("scenario", "req/s", "p50 ms", "p99 ms", "CPU ms", "rate beside xargs -P 2"), rows)


def _change(now: Figures, before: Figures) -> Iterator[str]:
    yield _both(before.rate, now.rate, higher_is_better=True)
    for name in ("p50", "p99"):
        pair = [getattr(figures.latency_ms, name, None) for figures in (before, now)]
        yield _both(pair[0], pair[1], higher_is_better=False)
    yield _both((before.cpu_ms or {}).get("all"), (now.cpu_ms or {}).get("all"), higher_is_better=False)


def _change_beside_bare(name: str, results: Results, earlier: Results) -> Iterator[str]:
    try:
        now, before = (ratio(run.scenarios[name].rates, run.scenarios["ogr2ogr-2"].rates) for run in (results, earlier))
    except LookupError:
        yield ""
    else:
        yield _both(before, now, higher_is_better=True)


def _both(before: float | None, now: float | None, *, higher_is_better: bool) -> str:
    if before is None or now is None or not before:
        return ""
    change = now / before - 1
    kind = "" if abs(change) < NOTABLE else "met" if (change > 0) == higher_is_better else "missed"
    return f'{before:.4g} → {now:.4g} <span class="{kind}">{change:+.0%}</span>'


def main() -> None:
    """Write the page of the latest results."""
    parser = argparse.ArgumentParser(prog="just bench-report")
    parser.add_argument("earlier", nargs="?", type=Path, help="results of an earlier run to compare with")
    parser.add_argument("--results", type=Path, nargs="+", default=[LATEST], help="runs to show, the newest last")
    parser.add_argument("--output", type=Path, default=DIRECTORY / "report.html")
    options = parser.parse_args()
    earlier = read_results(options.earlier) if options.earlier else None
    runs = [read_results(path) for path in options.results]
    options.output.write_text(page(runs, read_parts(PARTS), earlier), encoding="utf-8")
    print(options.output)


if __name__ == "__main__":
    main()
