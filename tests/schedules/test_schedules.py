"""Whichever process freezes, dies or is disconnected at whichever statement: everything is done and charged once."""

import math
import os
import random
import re
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future
from contextlib import suppress
from typing import NamedTuple

import httpx
import msgspec
import pytest

from tests.schedules.site import Node, Site, running_site
from tests.schedules.tap import Hold, When
from tests.schedules.traffic import KINDS, Kind, Request
from tests.support.data import lakes
from tests.support.patience import PATIENCE_SECONDS, wait_until

STEPS = int(os.environ.get("SCHEDULE_STEPS", "10"))
SEED = int(os.environ.get("SCHEDULE_SEED", "1"))
AT_ONCE = int(os.environ.get("SCHEDULES_AT_ONCE", "8"))
REACH_SECONDS = 15.0
"""How long a statement is waited for that need not come, as one behind the statements of others that are held."""

pytestmark = [pytest.mark.xdist_group("schedules"), pytest.mark.timeout(600 + 60 * STEPS)]


@pytest.fixture(scope="module")
def shared_site() -> Iterator[Site]:
    """One site for all schedules."""
    with running_site() as site:
        yield site


@pytest.fixture
def site(shared_site: Site) -> Iterator[Site]:
    """The site with everything running, whatever the previous test did to it."""
    for node in shared_site.nodes:
        node.revive()
    shared_site.await_calm()
    yield shared_site
    for node in shared_site.nodes:
        with suppress(ProcessLookupError):
            node.wake()
        node.mend()


Fault = Callable[[Site, Node, Sequence[Hold]], None]
"""Does something to the server whose statements are held; they go on when everybody else has."""


def freeze(_site: Site, node: Node, _holds: Sequence[Hold]) -> None:
    """The process is suspended until another has done the work, then resumes."""
    node.freeze()


def kill(_site: Site, node: Node, _holds: Sequence[Hold]) -> None:
    """The process dies; a statement that it has sent is executed nevertheless."""
    node.kill()


def cut_off(_site: Site, node: Node, _holds: Sequence[Hold]) -> None:
    """The process loses its database."""
    node.database.cut()


def cut_off_from_store(_site: Site, node: Node, holds: Sequence[Hold]) -> None:
    """The process loses its store."""
    node.store.cut()
    for hold in holds:
        hold.let_go()


def break_connection(_site: Site, _node: Node, holds: Sequence[Hold]) -> None:
    """The statement's connection breaks, so that its effect is unknown."""
    for hold in holds:
        hold.let_go(breaks=True)


def crash_database(site: Site, _node: Node, holds: Sequence[Hold]) -> None:
    """PostgreSQL is killed, and loses what it had not flushed."""
    for hold in holds:
        hold.let_go(breaks=True)
    site.crash_database()


FAULTS: dict[str, Fault] = {
    "freeze": freeze,
    "kill": kill,
    "cut off": cut_off,
    "cut off from the store": cut_off_from_store,
    "break": break_connection,
    "crash the database": crash_database,
}
AWAY = frozenset({"freeze", "kill", "cut off"})
"""Faults after which clients turn to another server."""
WEIGHTS = {"freeze": 6, "break": 6, "cut off": 4, "cut off from the store": 2, "crash the database": 3, "kill": 1}
"""How often the walk takes each; a start of a server takes long."""
SWEEP = ("disposable", "late_objects")
"""The statements with which a service's own sweep begins, which may otherwise come first."""
STATEMENTS = ("claim", "admit", "insert_failed", "flush_attempts", "put", "settle", "release", "give_back")


class Schedule(msgspec.Struct, frozen=True):
    """Which requests are held at which statement."""

    kind: str
    statement: str
    when: When

    @property
    def id(self) -> str:
        """Its name."""
        return f"{self.when} {self.statement}, {self.kind}"


UNDO_ADMISSION = """
WITH undone AS (DELETE FROM job WHERE account_id = $1 RETURNING payer_id, period, input_size_bytes AS size_bytes)
UPDATE usage u SET conversions = u.conversions - 1, bytes = u.bytes - undone.size_bytes
  FROM undone WHERE u.payer_id = undone.payer_id AND u.period = undone.period
"""
"""What a crash of PostgreSQL does to an admission that was not yet on its disk."""


class Held(NamedTuple):
    """A request that is held, or has ended without reaching its statement."""

    request: Request
    hold: Hold
    answer: "Future[httpx.Response | None]"

    def wait(self, give_up_at: float = math.inf) -> bool:
        """Wait until the statement is held or can no longer be reached; return which."""
        while not self.hold.reached.wait(0.05):
            if (self.answer.done() and self.request.has_ended()) or time.monotonic() > give_up_at:
                return False
        return True


def run(site: Site, fault: str, *schedules: Schedule) -> int:
    """Send requests, inject the fault at the statements, send repeats elsewhere, and let everything continue.

    Return how many of the statements came.
    """
    node, other = site.nodes
    holds_several_puts = len(schedules) > 1 and any(one.statement == "put" for one in schedules)  # some for too long
    store_was_there = fault != "cut off from the store" and not holds_several_puts
    held = [begin(site, node, schedule) for schedule in schedules]
    give_up_at = time.monotonic() + (REACH_SECONDS if len(held) > 1 else PATIENCE_SECONDS)
    reached = [one.hold for one in held if one.wait(give_up_at)]
    FAULTS[fault](site, node, reached)
    for one in held:
        one.request.repeat(other if fault in AWAY else node)
    for one in held:
        one.hold.let_go()
    node.revive()
    for one in held:
        one.answer.result()
        one.request.assert_all_adds_up(other, store_was_there=store_was_there)
    assert site.audit() == []
    return len(reached)


def begin(site: Site, node: Node, schedule: Schedule) -> Held:
    """Begin a request that will be held."""
    tap = node.store if schedule.statement == "put" else node.database
    if schedule.statement == "give_back":  # comes when a request breaks off
        node.database.hold("admit", "before").let_go(breaks=True)
    hold = tap.hold(schedule.statement, schedule.when)
    request = Request(site, KINDS[schedule.kind])
    return Held(request, hold, request.begin(node))


NAMED = (
    ("freeze", Schedule("single", "admit", "before")),
    ("freeze", Schedule("single", "claim", "after")),
    ("freeze", Schedule("wallet", "admit", "before")),
    ("freeze", Schedule("batch", "admit", "before")),
    ("freeze", Schedule("single", "admit", "after")),
    ("freeze", Schedule("single", "put", "before")),
    ("freeze", Schedule("larger", "put", "after")),
    ("freeze", Schedule("async", "settle", "before")),
    ("freeze", Schedule("single", "settle", "after")),
    ("freeze", Schedule("broken", "release", "before")),
    ("crash the database", Schedule("single", "claim", "after")),
    ("cut off", Schedule("single", "claim", "after")),
    ("crash the database", Schedule("single", "admit", "after")),
    ("crash the database", Schedule("broken", "release", "before")),
    ("break", Schedule("single", "admit", "after")),
    ("break", Schedule("single", "give_back", "before")),
    ("kill", Schedule("single", "give_back", "before")),
    ("kill", Schedule("async", "admit", "after")),
    ("kill", Schedule("wallet batch", "settle", "before")),
    ("cut off", Schedule("single", "settle", "before")),
)


@pytest.mark.parametrize(("fault", "schedule"), NAMED, ids=[f"{fault} {schedule.id}" for fault, schedule in NAMED])
def test_what_is_told_is_what_is_done_and_charged(site: Site, fault: str, schedule: Schedule) -> None:
    """The statement is reached; afterwards responses, ledger, jobs and objects agree, and no key is stuck."""
    assert run(site, fault, schedule) == 1


@pytest.mark.parametrize(
    ("kind", "statement", "outcome"), [("single", "settle", "completed"), ("broken", "release", "rejected")]
)
def test_an_end_that_was_not_confirmed_is_counted(site: Site, kind: str, statement: str, outcome: str) -> None:
    """The metrics of the process that has converted the file agree with the ledger."""
    node, _other = site.nodes
    before = ended(node, outcome)
    assert run(site, "break", Schedule(kind, statement, "after")) == 1
    assert ended(node, outcome) == before + 1


def test_a_cancellation_that_was_not_confirmed_is_counted(site: Site) -> None:
    """Its client is told that nothing is charged, its run ends, and the metrics know of it."""
    node, _other = site.nodes
    before = ended(node, "cancelled")
    held = begin(site, node, Schedule("single", "put", "before"))
    assert held.wait()
    node.database.hold("release", "after").let_go(breaks=True)
    assert held.request.delete(node).status_code == httpx.codes.NO_CONTENT
    response = held.answer.result()
    assert response is not None
    assert (response.json()["status"], held.request.charged()) == ("Failed", [])
    assert ended(node, "cancelled") == before + 1
    site.sweep()
    assert site.audit() == []


def ended(node: Node, outcome: str) -> int:
    """How many jobs the process says have ended so."""
    metrics = httpx.get(f"{node.server.url}/metrics").text
    counted = re.search(rf'\ngeomill_jobs_ended_total\{{outcome="{outcome}"\}} (\d+)', metrics)
    return int(counted[1]) if counted else 0


def test_a_batch_that_broke_off_is_finished_by_its_repeat(site: Site) -> None:
    """Its first file is charged, its second was not admitted: the error names the first, the repeat does the second."""
    node, other = site.nodes
    request = Request(site, Kind(files=(lakes(), lakes()), is_batch=True))
    node.database.hold("admit", "before").let_go()
    second = node.database.hold("admit", "before")
    replay_or_begin = request.begin(node)
    assert second.reached.wait(PATIENCE_SECONDS)
    [row] = site.rows("SELECT id FROM job WHERE account_id = $1", request.account_id)
    wait_until(request.charged)
    second.let_go(breaks=True)
    response = replay_or_begin.result()
    assert response is not None
    assert response.status_code == 503
    assert response.json()["detail"].endswith(f"query its jobs: {row['id']}.")
    entries = request.repeat(other)
    assert entries[0]["jobId"] == str(row["id"])
    assert [entry["success"] for entry in entries] == [True, True]
    assert len(request.charged()) == 2
    request.assert_all_adds_up(other)


def test_a_batch_that_was_converted_when_the_database_went_away_names_its_jobs(site: Site) -> None:
    """All of it is charged, and only the balance could not be read."""
    node, other = site.nodes
    request = Request(site, Kind(files=(lakes(), lakes()), is_batch=True))
    balance = node.database.hold("balance", "before")
    answer = request.begin(node)
    assert balance.reached.wait(PATIENCE_SECONDS)
    balance.let_go(breaks=True)
    response = answer.result()
    assert response is not None
    assert response.status_code == 503
    assert [job_id in response.json()["detail"] for job_id in request.charged()] == [True, True]
    request.repeat(other)
    request.assert_all_adds_up(other)


def test_a_failure_that_is_told_has_a_record_though_its_admission_was_undone(site: Site) -> None:
    """The job exists as Failed when its client learns of it, and its key is not stuck."""
    node, other = site.nodes
    failing = begin(site, node, Schedule("broken", "release", "before"))
    assert failing.wait()
    site.rows(UNDO_ADMISSION, failing.request.account_id)
    failing.hold.let_go()
    response = failing.answer.result()
    assert response is not None
    assert response.json()["success"] is False
    failing.request.assert_all_adds_up(other)
    assert site.audit() == []


@pytest.mark.parametrize("is_late", [False, True], ids=["while the winner works", "after the winner has ended"])
@pytest.mark.parametrize(("kind", "statement"), [("single", "settle"), ("broken", "release")])
def test_an_attempt_that_lost_harms_nothing(site: Site, kind: str, statement: str, *, is_late: bool) -> None:
    """It settles, releases and deletes nothing but its own object; the winner's is there, charged once."""
    node, _ = site.nodes
    held = begin(site, node, Schedule(kind, statement, "before"))
    assert held.wait()
    winner = site.take_over(held.request.account_id)
    if is_late:
        assert winner.complete()
    held.hold.let_go()
    response = held.answer.result()
    assert response is not None
    if is_late:
        assert (response.status_code, response.json()["success"]) == (200, True)
    else:
        assert response.status_code == 503
        assert winner.complete()
    assert len(held.request.charged()) == 1
    [entry] = held.request.repeat(node)
    assert (entry["jobId"], entry["status"]) == (held.request.charged()[0], "Completed")
    assert site.audit() == []


def test_an_output_that_is_stored_after_its_job_was_ended_does_not_stay(site: Site) -> None:
    """Its process is suspended while storing, resumes after another did the work, and is killed before settling."""
    node, other = site.nodes
    held = begin(site, node, Schedule("single", "put", "before"))
    assert held.wait()
    own_sweeps = [one.database.hold(statement, "before") for one in site.nodes for statement in SWEEP]
    node.freeze()
    held.request.repeat(other)
    site.sweep()
    settling = node.database.hold("settle", "before")
    node.database.hold("ended", "before")  # by which it would notice, and never settle
    node.wake()
    held.hold.let_go()
    assert settling.reached.wait(PATIENCE_SECONDS)
    node.kill()
    settling.let_go()
    [left] = site.audit()
    assert "belongs to no job" in left
    for own_sweep in own_sweeps:
        own_sweep.let_go()
    site.sweep()
    assert site.audit() == []
    held.request.assert_all_adds_up(other)


def test_an_output_that_is_stored_after_its_job_was_cancelled_does_not_stay(site: Site) -> None:
    """Its process is suspended while storing, and its client cancels the job elsewhere: nothing is charged or left."""
    node, other = site.nodes
    held = begin(site, node, Schedule("single", "put", "before"))
    assert held.wait()
    node.freeze()
    assert held.request.delete(other).status_code == httpx.codes.NO_CONTENT
    site.sweep()
    node.wake()
    held.hold.let_go()
    response = held.answer.result()
    assert response is not None
    assert (response.status_code, response.json()["status"]) == (200, "Failed")
    assert held.request.charged() == []
    site.sweep()
    assert site.audit() == []


def test_a_random_walk_over_schedules(site: Site) -> None:
    """In any order, with several requests at a time."""
    choose = random.Random(SEED)
    done = reached = 0
    while done < STEPS:
        for node in site.nodes:
            node.revive()
        site.nodes.reverse()
        [fault] = choose.choices(list(WEIGHTS), list(WEIGHTS.values()))
        schedules = [
            Schedule(choose.choice(sorted(KINDS)), choose.choice(STATEMENTS), choose.choice(("before", "after")))
            for _ in range(min(AT_ONCE, STEPS - done))
        ]
        try:
            reached += run(site, fault, *schedules)
        except BaseException as error:
            error.add_note(f"after {done} steps of seed {SEED}: {fault} {'; '.join(one.id for one in schedules)}")
            raise
        done += len(schedules)
        sys.stderr.write(f"{done} steps of seed {SEED}, {reached} of which came to their statement\n")
    assert reached
