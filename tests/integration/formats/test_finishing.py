"""The run that writes a result says why it cannot finish it."""

import shutil

import pytest

from sandbox.verdict import Ending
from tests.support.converters import Converters

pytestmark = pytest.mark.skipif(shutil.which("cc") is None, reason="no C compiler")
LINES = "lines"
QUESTIONS = (
    ("declare", LINES, "a='b'", "result"),
    ("gather", LINES, '"name"', "result"),
    ("lines", LINES, "result"),
    ("even", LINES, "result", "1"),
)


@pytest.mark.parametrize("question", QUESTIONS, ids=lambda question: question[0])
async def test_a_result_that_cannot_be_written_is_told_with_the_reason(
    converters: Converters, question: tuple[str, ...]
) -> None:
    """In the words of the system, by which a verdict tells a lack of space from defects."""
    async with converters.open_run(("GeoJSONSeq",)) as (held, directory):
        (directory / LINES).write_text("<a>\n" * 9)
        (directory / "result").mkdir()
        verdict = await held.carry_out(*question)
        assert verdict.ending is Ending.EXIT
        assert b"Is a directory" in verdict.untrusted_stderr
        (directory / "result").rmdir()
        assert (await held.carry_out(*question)).ending is Ending.OK
