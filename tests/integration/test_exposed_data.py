"""A service whose data would be readable by conversions does not start."""

import os
from pathlib import Path

import msgspec
import pytest

from sandbox.pool import SandboxUnavailable
from service.app.converters import look_at_host, open_converters
from service.settings import Settings


@pytest.mark.parametrize("sandbox", ["strict", "best-effort"])
async def test_a_data_directory_among_what_conversions_read_is_refused(tmp_path: Path, sandbox: str) -> None:
    """The message names the setting and the path."""
    settings = msgspec.convert({"GEOMILL_DATA_DIR": str(tmp_path / "data"), "GEOMILL_SANDBOX": sandbox}, Settings)
    capabilities = msgspec.structs.replace(await look_at_host(settings), gdal_data=str(tmp_path))
    with pytest.raises(SandboxUnavailable, match=r"the data directory \(GEOMILL_DATA_DIR\) .* lies in .* Move"):
        async with open_converters(settings, capabilities):
            pass


async def test_what_conversions_read_is_told(tmp_path: Path) -> None:
    """It includes neither the checkout nor the data directory."""
    settings = Settings(data_dir=str(tmp_path / "data"), converters=1)
    async with open_converters(settings, await look_at_host(settings)) as pool:
        report = pool.report()
    readable = set(map(os.path.realpath, report.readable))
    checkout = Path(__file__).parents[2]
    assert str(checkout / "service") in readable
    private = (checkout, checkout / ".venv", settings.data_path, "/etc", "/", "/usr/local/lib")
    assert readable.isdisjoint(map(os.path.realpath, map(str, private)))
