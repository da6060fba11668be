"""A caller that runs alone has no company, and everybody gets a turn."""

import anyio

from service.usecases.company import Company


async def test_who_runs_alone_has_no_company() -> None:
    """Others run together, before and after it; none is forgotten, even if one is cancelled while waiting."""
    company = Company()
    running: set[int] = set()
    seen: list[frozenset[int]] = []

    async def run(number: int) -> None:
        async with company.joined(alone=number % 3 == 0):
            running.add(number)
            await anyio.sleep(0.001)
            seen.append(frozenset(running))
            running.remove(number)

    async with anyio.create_task_group() as tasks:
        for number in range(1, 31):
            tasks.start_soon(run, number)
        with anyio.CancelScope() as cancelled:
            cancelled.cancel()
            await run(33)
    assert len(seen) == 30
    assert all(len(company_of) == 1 for company_of in seen if any(number % 3 == 0 for number in company_of))
    assert any(len(company_of) > 1 for company_of in seen)
    with anyio.fail_after(10):
        await run(3)
