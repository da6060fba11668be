"""Large files of many accounts are detected in turn."""

import asyncio
import gzip
from pathlib import Path
from uuid import UUID

from service.ids import AccountId
from service.intake.form import Upload
from service.usecases.detect_format import AT_ONCE, detect_format

ROW = b"1,2,something\n"


def packed(directory: Path, number: int, rows: int) -> Upload:
    """A packed table in a directory of its own."""
    path = directory / str(number) / "upload"
    path.parent.mkdir()
    path.write_bytes(gzip.compress(b"x,y,name\n" + rows * ROW, 1))
    return Upload(untrusted_name="a.csv.gz", path=path, size_bytes=path.stat().st_size)


async def test_an_account_with_many_large_files_keeps_no_other_waiting(tmp_path: Path) -> None:
    """Crafted files of a few megabytes take minutes each: four of them kept every other archive waiting."""
    crowd, other = AccountId(UUID(int=1)), AccountId(UUID(int=2))
    large = [packed(tmp_path, number, 1 << 20) for number in range(4 * AT_ONCE)]
    async with asyncio.TaskGroup() as tasks:
        looked_at = [tasks.create_task(detect_format(upload, crowd)) for upload in large]
        await asyncio.sleep(0)  # all of them wait, or have begun
        await detect_format(packed(tmp_path, len(large), 1), other)
        assert sum(task.done() for task in looked_at) < len(large) - AT_ONCE
