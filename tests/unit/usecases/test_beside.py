"""Two things at once: both come to their end, and a failure of either is the one that is told."""

import anyio
import pytest

from service.usecases.beside import beside


async def test_the_block_ends_when_both_have_ended() -> None:
    """Whichever takes longer."""
    done: list[str] = []

    async def work() -> None:
        await anyio.sleep(0.02)
        done.append("work")

    async with beside(work) as begin:
        begin()
        done.append("block")
    assert done == ["block", "work"]


async def test_work_that_was_not_begun_is_not_done() -> None:
    """The block alone decides."""

    async def work() -> None:
        raise AssertionError("begun by nobody")

    async with beside(work):
        pass


async def test_a_failure_of_the_work_ends_the_block_and_is_raised_as_itself() -> None:
    """Not as a group of one, and not after the block's own time."""
    reached = False

    async def work() -> None:
        raise LookupError("the work")

    async def block() -> None:
        nonlocal reached
        async with beside(work) as begin:
            begin()
            await anyio.sleep(60)
            reached = True

    with pytest.raises(LookupError, match="the work"), anyio.fail_after(5):
        await block()
    assert not reached


async def test_a_failure_of_the_block_lets_the_work_come_to_its_end() -> None:
    """What was begun is not left half done."""
    done = False

    async def work() -> None:
        nonlocal done
        await anyio.sleep(0.02)
        done = True

    async def block() -> None:
        async with beside(work) as begin:
            begin()
            raise LookupError("the block")

    with pytest.raises(LookupError, match="the block"):
        await block()
    assert done


async def test_cancellation_ends_both() -> None:
    """And passes through."""
    with anyio.move_on_after(0.05) as scope:
        async with beside(anyio.sleep_forever) as begin:
            begin()
            await anyio.sleep_forever()
    assert scope.cancelled_caught
