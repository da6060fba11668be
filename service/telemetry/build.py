"""The version of the installed package, as defined in pyproject.toml."""

from importlib.metadata import PackageNotFoundError, version

try:
    VERSION = version("geomill")
except PackageNotFoundError:  # run from source without installation
    VERSION = "unknown"
