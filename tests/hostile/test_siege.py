"""Many hostile files at once do not hold up other accounts."""

from concurrent.futures import ThreadPoolExecutor

import pytest

from service.accounts.administration import Terms
from tests.hostile.answers import require_discreet
from tests.hostile.bait import Bait
from tests.hostile.corpus import CORPUS
from tests.support.data import lakes
from tests.support.server import Client, Server, create_account

pytestmark = pytest.mark.usefixtures("unharmed")

HEAVY = (
    "GeoPackage view without end",
    "DXF of a block a billion times",
    "SQLite column made of zeros",
    "GeoJSON with 60,000 names",
    "a KMZ of 900 MiB",
    "a ZIP of 60,000 members",
    "XLSX of one long text",
    "VRT as .gml",
)


def test_others_are_served_while_an_account_sends_the_worst_files(
    hardened: Server, attacker: Client, bait: Bait
) -> None:
    """Another account's files are converted meanwhile, and every hostile file gets a response in the end."""
    with (
        ThreadPoolExecutor(len(HEAVY)) as senders,
        create_account(hardened, Terms(plan="team", plan_owner="organization")) as neighbour,
    ):
        sent = [senders.submit(_send, attacker, bait, name) for name in HEAVY]
        for _ in range(5):
            assert neighbour.convert("lakes.geojson", lakes(), outputFormat="Csv")["success"]
        for name, answer in zip(HEAVY, sent, strict=True):
            require_discreet(answer.result(), hardened.data_dir, bait, CORPUS[name].name)
            assert answer.result()["success"] is False


def _send(client: Client, bait: Bait, name: str) -> dict[str, object]:
    case = CORPUS[name]
    return client.convert(case.name, case.build(bait), headers=None, **case.fields)
