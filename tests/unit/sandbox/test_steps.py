"""The steps of a run are the same whether they are made for it or taken from a template."""

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sandbox.isolation.steps import Argument, Steps

LAYER = "a layer"


def taken(steps: Steps, paths: Sequence[Argument]) -> Steps:
    """A layer's steps, some of them with paths."""
    for path in paths:
        steps.call("mkdirat", 0, path, 0o700)
    steps.call("mount", b"sandbox", paths[-1], b"tmpfs", 0, b"size=0")
    return steps


@given(st.lists(st.binary(max_size=40), min_size=1, max_size=4))
def test_a_filled_template_is_what_the_steps_of_the_run_are(texts: list[bytes]) -> None:
    """Byte by byte, whatever the lengths of its texts."""
    direct = Steps(LAYER)
    template = Steps(LAYER)
    expected = taken(direct, [direct.data(text) for text in texts]).packed()
    assert taken(template, template.reserve(map(len, texts))).template().filled(texts) == expected


def test_steps_without_their_texts_are_not_taken() -> None:
    """A run would otherwise enter a directory with an empty name."""
    steps = Steps(LAYER)
    taken(steps, steps.reserve((4,)))
    with pytest.raises(ValueError, match="texts"):
        steps.packed()
