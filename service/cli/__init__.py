"""The `geomill` command: one file per noun."""

import gc

gc.disable()  # searching tens of thousands of imported objects for garbage takes a tenth of a command's start

from service.cli.main import main  # noqa: E402 -- see above

gc.freeze()
gc.enable()

__all__ = ["main"]
