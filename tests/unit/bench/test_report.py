"""The page of a run."""

import re
from array import array

import msgspec

from bench.figures import Round, figures_of
from bench.goals import GOALS
from bench.load import OK, Tally
from bench.meter import Usage
from bench.report import page
from bench.results import Results, new_results
from bench.watch import Verdict


def a_round(milliseconds: list[float], elapsed: float, errors: int = 0) -> Round:
    """A round whose requests took so long."""
    tally = Tally()
    tally.seconds_by_kind[OK] = array("d", [each / 1000 for each in milliseconds])
    if errors:
        tally.seconds_by_kind["<overloaded>"] = array("d", [0.001] * errors)
    tally.elapsed_seconds = elapsed
    usage = Usage(cpu_seconds={"gateway": 0.1, "postgres": 0.02, "converters": 0.3}, all_peak_mb=100.0)
    return Round(tally=tally, usage=usage, generator_seconds=0.01)


def a_run(bare: float, *, errors: int = 0) -> Results:
    """A run in which Geomill takes a second for ten conversions, and xargs `bare` seconds."""
    results = new_results("its own", rounds=3, seconds=1.0)
    results.scenarios["burst-8"] = figures_of("small ones", [a_round([10.0] * 10, 1.0, errors)] * 3)
    results.scenarios["ogr2ogr-2"] = figures_of("bare", [a_round([50.0] * 10, bare)] * 3)
    return results


def test_a_ratio_is_that_of_the_rounds_of_one_run() -> None:
    """Four times the rate of bare ogr2ogr meets the first goal, twice does not."""
    goal = GOALS[0]
    assert goal.value(a_run(bare=4.0), {}) == 4.0
    assert goal.is_met(4.0)
    assert not goal.is_met(goal.value(a_run(bare=2.0), {}) or 0.0)


def test_a_goal_without_its_figures_is_not_measured() -> None:
    """What a run does not have is neither met nor missed."""
    assert all(goal.value(new_results("its own", 1, 1.0), {}) is None for goal in GOALS)


def test_the_lag_of_the_loop_is_judged_and_a_probe_beside_it_is_only_shown() -> None:
    """How long the probe waits is the generator's doing too."""
    one = a_round([10.0], 1.0)
    beside, lag = Tally(), {0.001: 90.0, 0.005: 100.0, float("inf"): 100.0}
    beside.add(OK, 0.0187)
    run = new_results("its own", rounds=1, seconds=1.0)
    run.scenarios["large-uploads"] = figures_of("8", [msgspec.structs.replace(one, beside=beside, lag=lag)])
    text = page([run], {}, None)
    assert '<td>at most 10 ms</td><td>4.6 ms</td><td><span class="met">met</span></td>' in text
    assert "<td></td><td>18.7 ms</td><td></td>" in text


def test_the_page_needs_nothing_from_elsewhere() -> None:
    """No script, no font, no picture, no style comes from another address; what servers say is escaped."""
    text = page([a_run(bare=4.0, errors=2)], {}, a_run(bare=2.0))
    assert not re.search(r"(src|href)=|<script|@import|url\(", text)
    assert "6 x &lt;overloaded&gt;" in text
    assert '<span class="met">met</span>' in text


def test_the_page_tells_what_grew_in_a_soak() -> None:
    """Each figure with its verdict, and what went wrong in words."""
    verdict = Verdict(about="threads", unit="", quarters=(1, 2, 3, 9), allowed=4, flat=False)
    report = {"minutes": 30.0, "commit": "abc", "perSecond": 9.5, "wrong": ["1 times <x>"]}
    text = page([], {"soak": {**report, "figures": {"threads": msgspec.to_builtins(verdict)}}}, None)
    assert '<td>9.0</td><td>4</td><td><span class="missed">grew</span></td>' in text
    assert "1 times &lt;x&gt;" in text


def test_a_comparison_tells_better_from_worse() -> None:
    """The same rate beside a faster xargs is a worse ratio."""
    text = page([a_run(bare=2.0)], {}, a_run(bare=4.0))
    assert '4 → 2 <span class="missed">-50%</span>' in text
