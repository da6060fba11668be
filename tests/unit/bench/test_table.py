"""Goals as lines in a terminal."""

from array import array

import msgspec

from bench.load.load import OK, LoadTally
from bench.measure.figures import Round, figures_of
from bench.measure.meter import Usage
from bench.report.goals import GOALS
from bench.report.results import Results, new_results
from bench.report.table import goals


def a_round(milliseconds: list[float], elapsed: float, errors: int = 0) -> Round:
    """A round with requests of these durations."""
    tally = LoadTally()
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
    """A figure that a run lacks is neither met nor missed."""
    assert all(goal.value(new_results("its own", 1, 1.0), {}) is None for goal in GOALS)


def test_the_lag_of_the_loop_is_judged_and_a_probe_beside_it_is_only_shown() -> None:
    """The load generator itself delays the probe."""
    one = a_round([10.0], 1.0)
    beside, lag = LoadTally(), {0.001: 90.0, 0.005: 100.0, float("inf"): 100.0}
    beside.add(OK, 0.0187)
    run = new_results("its own", rounds=1, seconds=1.0)
    run.scenarios["large-uploads"] = figures_of("8", [msgspec.structs.replace(one, beside=beside, lag=lag)])
    lag_line, probe_line = (line for line in goals(run, {}) if "meanwhile, p99" in line)
    assert lag_line.startswith("G4")
    assert lag_line.endswith("met")
    assert "4.6 ms" in lag_line
    assert probe_line.endswith("18.7 ms")


def test_a_missed_goal_stands_out() -> None:
    """Twice the rate of bare ogr2ogr, where the goal is three times."""
    assert next(goals(a_run(bare=2.0), {})).endswith("2 x   MISSED")


def test_an_overload_is_judged_with_and_without_what_the_generator_takes() -> None:
    """It shares the cores, and takes more of them the more requests it sends."""
    run = a_run(bare=4.0)
    run.cores = 2
    heavy = msgspec.structs.replace(a_round([10.0] * 8, 1.0), generator_seconds=0.11)
    run.scenarios["overload"] = figures_of("ten times", [heavy] * 3)
    shares = [line for line in goals(run, {}) if line.startswith("G6") and line.rpartition(" x")[1]]
    assert [float(line.split()[-3 if line.endswith("MISSED") else -2]) for line in shares] == [0.8, 0.842]
