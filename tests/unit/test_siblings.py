"""What serving processes know of each other, and what they conclude."""

import time
from pathlib import Path

import pytest

from sandbox.queue import AdmissionQueue
from service.app.converters import converters_of
from service.cli.command import CommandError
from service.cli.membership import share_of
from service.cli.processes import process_count
from service.settings import Settings
from service.siblings import FRESH_SECONDS, Board, Siblings, no_siblings, open_board

COUNT = 3


@pytest.fixture
def board(tmp_path: Path) -> Board:
    """A board for three processes."""
    return open_board(tmp_path / "board", COUNT)


def processes(board: Board, *connections: int) -> list[Siblings]:
    """Mark the processes as live, each with this many connections."""
    found = [Siblings(board, number) for number in range(1, len(connections) + 1)]
    for each, count in zip(found, connections, strict=True):
        each.beat(accepts=True)
        each.note_connections(count, is_open=True)
    return found


def test_the_living_one_with_the_lowest_number_leads(tmp_path: Path, board: Board) -> None:
    """Whether another was killed or has written nothing for a while."""
    first, second, third = processes(board, 0, 0, 0)
    assert [each.leads for each in (first, second, third)] == [True, False, False]
    open_board(tmp_path / "board", COUNT).clear(1)
    assert [each.leads for each in (second, third)] == [True, False]


def test_one_that_writes_nothing_is_ignored(board: Board, monkeypatch: pytest.MonkeyPatch) -> None:
    """For example, one that is suspended."""
    first, second, _ = processes(board, 0, 5, 9)
    later = time.monotonic_ns() + int((FRESH_SECONDS + 1) * 1e9)
    monkeypatch.setattr(time, "monotonic_ns", lambda: later)
    second.beat(accepts=False)
    assert second.leads
    assert not second.another_accepts
    assert not second.should_take_next(5)
    assert not first.another_accepts


def test_the_next_connection_is_for_the_one_with_the_fewest(board: Board) -> None:
    """Exactly while there are few, roughly while there are many, and never a process that accepts none."""
    first, _, third = processes(board, 2, 1, 1)
    assert first.should_take_next(2)
    assert not third.should_take_next(1)
    first, second, third = processes(board, 90, 80, 95)
    assert not first.should_take_next(90)
    assert third.should_take_next(95)
    second.note_connections(0, is_open=False)
    assert not first.should_take_next(90)


def test_a_process_alone_leads_and_accepts_all() -> None:
    """There is nobody else."""
    alone = no_siblings()
    alone.beat(accepts=True)
    assert (alone.leads, alone.another_accepts, alone.should_take_next(1000)) == (True, False, False)


@pytest.mark.parametrize("count", [1, 2, 3, 5])
def test_the_shares_of_all_processes_are_the_limits_of_the_service(count: int) -> None:
    """Although each has at least one of everything."""
    settings = Settings(converters=5, suspended=7, waiting_room=512, max_connections=4096, max_per_account=384)
    shares = [share_of(settings, number, count) for number in range(1, count + 1)]
    for name in ("converters", "suspended", "waiting_room", "max_connections", "max_per_account"):
        assert sum(getattr(share, name) for share in shares) == getattr(settings, name), name
    assert share_of(Settings(max_per_account=1), 2, 2).max_per_account == 1


@pytest.mark.parametrize("count", [1, 2, 28, 32])
def test_every_process_takes_a_whole_batch_when_it_is_idle(count: int) -> None:
    """All files of a batch are in progress in one process."""
    settings = Settings(converters=count)
    for number in range(1, count + 1):
        share = share_of(settings, number, count)
        queue = AdmissionQueue(
            converters=share.converters or 1, waiting=share.waiting_room, per_tenant=share.max_per_account
        )
        assert len(queue.enqueue("tenant", settings.max_batch_files)) == settings.max_batch_files


def test_there_is_a_converter_for_every_process() -> None:
    """With a number and with `auto`."""
    assert process_count(Settings()) == 1
    assert process_count(Settings(processes="3", converters=3)) == 3
    assert process_count(Settings(processes="auto", converters=1)) == 1
    assert 1 <= process_count(Settings(processes="auto")) <= converters_of(Settings())
    with pytest.raises(CommandError, match="GEOMILL_CONVERTERS to 4"):
        process_count(Settings(processes="4", converters=3))
