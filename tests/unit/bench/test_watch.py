"""What a soak considers flat."""

from bench.load.site import given_site
from bench.measure.watch import Sample, Watched, judge
from bench.parts.soak import Soak, problems

WATCHED = {
    "threads": Watched(about="threads", share=0.1, least=2),
    "files": Watched(about="files", least=5, seconds=50),
}


def a_run(*threads: float, files: float = 0.0) -> list[Sample]:
    """A sample every second."""
    return [Sample(at=at, values={"threads": value, "files": files * at}) for at, value in enumerate(threads)]


def test_what_stays_is_flat_however_it_began_and_wherever_it_was_for_a_moment() -> None:
    """The first quarter is warm-up, and a peak does not change the median."""
    verdict = judge(a_run(*[1] * 10, *[20] * 10, *[21] * 10, *[20] * 9, 90), WATCHED)["threads"]
    assert verdict.flat
    assert verdict.quarters == (1.0, 20.0, 21.0, 20.0)


def test_what_grows_by_more_than_it_may_is_not() -> None:
    """By more than a share of its level, or more than a minimum; shrinking is flat."""
    assert not judge(a_run(*[20] * 20, *[23] * 20), WATCHED)["threads"].flat
    assert judge(a_run(*[20] * 20, *[22] * 20), WATCHED)["threads"].flat
    assert judge(a_run(*[100] * 20, *[110] * 20), WATCHED)["threads"].flat
    assert judge(a_run(*[100] * 20, *[50] * 20), WATCHED)["threads"].flat


def test_a_short_run_does_not_judge_what_needs_long() -> None:
    """It is neither flat nor growing."""
    assert judge(a_run(*[1] * 40, files=1.0), WATCHED)["files"].flat is None
    assert judge(a_run(*[1] * 60, files=1.0), WATCHED)["files"].flat is False


def test_what_was_not_always_seen_is_not_judged() -> None:
    """A server without metrics is judged by the rest."""
    samples = [*a_run(*[1] * 40), Sample(at=40, values={"threads": 1})]
    assert set(judge(samples, WATCHED)) == {"threads"}


def test_everything_that_grew_or_went_wrong_is_said_in_words() -> None:
    """Except figures that were not judged."""
    site = given_site("http://127.0.0.1:1", ("key",), None)
    soak = Soak(site, minutes=1, load=0.5)
    soak.unexpected["download: status 500"] += 3
    figures = judge(a_run(*[1] * 20, *[9] * 20, files=1.0), WATCHED)
    assert problems(soak, figures, None) == [
        "3 times download: status 500",
        "The threads grew from 1 to 9; up to 2 more would be flat.",
    ]
