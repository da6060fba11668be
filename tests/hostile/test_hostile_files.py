"""No file gets through the service to anything but its own result."""

import re

import pytest

from tests.hostile.answers import require_discreet, told
from tests.hostile.bait import Bait, unpacked
from tests.hostile.case import filled
from tests.hostile.corpus import CORPUS
from tests.support.server import Client, Server

pytestmark = pytest.mark.usefixtures("unharmed")


@pytest.mark.parametrize("name", CORPUS)
def test_a_hostile_file_is_answered_and_reaches_nothing(
    hardened: Server, attacker: Client, bait: Bait, name: str
) -> None:
    """It is refused in plain language or converted without what it asked for, and all is as it was."""
    case = CORPUS[name]
    name_sent = filled(case.name, bait)
    answer = attacker.convert(name_sent, case.build(bait), headers=None, **case.fields)
    require_discreet(answer, hardened.data_dir, bait, name_sent)
    if case.refused is not None:
        assert answer["success"] is (case.refused == ""), told(answer)
    if answer["success"]:
        output = attacker.download(answer)
        assert not bait.is_in(output)
        assert not any(case.absent in part for part in unpacked(output))
    else:
        assert re.search(case.refused or ".", answer["error"]), answer["error"]
