"""A worker takes from the lanes in turn, so that one lane's backlog delays no other."""

from collections import Counter

import pytest

from service.jobs.handover import LANES
from service.jobs.lanes import Lanes, is_large


def found(lanes: Lanes, *, may_be_large: bool = True) -> list[str]:
    """All lanes that may contain a job, in the order in which they are tried."""
    names = []
    while (name := lanes.next(may_be_large=may_be_large)) is not None:
        names.append(name)
    return names


def test_every_lane_may_contain_a_job_at_first() -> None:
    """Then none, until one is stirred."""
    lanes = Lanes()
    assert len(set(found(lanes))) == 2 * LANES
    assert found(lanes) == []
    lanes.stir("small.3")
    assert found(lanes) == ["small.3"]


def test_a_lane_that_is_stirred_again_waits_for_its_turn() -> None:
    """The others come first."""
    lanes = Lanes()
    first = lanes.next(may_be_large=True)
    assert first is not None
    lanes.stir(first)
    assert found(lanes)[-1] == first


def test_large_inputs_wait_for_a_worker_that_may_take_them() -> None:
    """Their lanes remain stirred meanwhile."""
    lanes = Lanes()
    assert not any(map(is_large, found(lanes, may_be_large=False)))
    assert all(map(is_large, found(lanes)))


@pytest.mark.parametrize("name", ["", "small.99", "other.1"])
def test_a_lane_that_does_not_exist_is_not_looked_into(name: str) -> None:
    """Whatever a message says."""
    lanes = Lanes()
    found(lanes)
    lanes.stir(name)
    assert found(lanes) == []


def test_a_backlog_delays_other_lanes_by_two_conversions() -> None:
    """Small and large ones, wherever the worker is in its round when they arrive."""
    backlog, arrival = "small.3", "small.9"
    for before in range(2 * LANES):
        lanes, waiting = Lanes(), Counter({backlog: 20_000, "large.3": 20_000})
        taken(lanes, waiting, before + 1)
        waiting[arrival] += 1
        lanes.stir(arrival)
        assert arrival in taken(lanes, waiting, 3)


def taken(lanes: Lanes, waiting: Counter[str], jobs: int) -> list[str]:
    """The lanes of the next jobs that a worker takes, one after the other."""
    found: list[str] = []
    while len(found) < jobs:
        name = lanes.next(may_be_large=True)
        assert name is not None
        if waiting[name]:
            waiting[name] -= 1
            lanes.stir(name)
            found.append(name)
    return found
