"""Workers that are frozen at each step of a job for longer than their lease, with inputs of any size.

Another worker ends each job; that end stands, is charged once and has its object.
"""

import argparse
import itertools
import traceback

from bench.fleet.hosts import LOOPBACK
from bench.fleet.site import whole_fleet
from bench.load.documents import document
from tests.fleet.freezes import Freezer, open_freezer
from tests.fleet.freezing import STEPS, WHEN


def run(options: argparse.Namespace) -> bool:
    """Freeze a worker before and after each step; print what came of it, and return whether nothing was wrong."""
    content = document(options.bytes)
    with whole_fleet(lambda _: LOOPBACK, 1, 2) as fleet, open_freezer(fleet.site) as freezer:
        held = [_holds(freezer, step, when, content) for step, when in itertools.product(STEPS, WHEN)]
    print(f"{held.count(True)} of {len(held)} freezes changed nothing, inputs of {len(content) / 1e6:.1f} MB")
    return all(held)


def _holds(freezer: Freezer, step: str, when: str, content: bytes) -> bool:
    try:
        freezer.freeze(step, when, content)
    except AssertionError:
        print(f"{when} {step}:", traceback.format_exc(), flush=True)
        return False
    return True
