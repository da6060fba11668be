"""What operators are told of a layer that is not in use."""

from pathlib import Path

import pytest

from sandbox.report import reason_of


def test_the_reason_is_told_in_words(tmp_path: Path) -> None:
    """Without the number of the system's error, and with the file that it is about."""
    with pytest.raises(OSError, match="Errno") as missing:
        (tmp_path / "none").read_bytes()
    assert reason_of(missing.value) == f"No such file or directory: {tmp_path}/none"
    assert reason_of(OSError("not needed: no reason")) == "not needed: no reason"
    assert reason_of(PermissionError(1, "system call 116")) == "system call 116"
