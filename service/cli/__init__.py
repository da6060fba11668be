"""The `geomill` command: one file per noun."""

from service.cli.main import main

__all__ = ["main"]
