"""Which version this is: that of the installed package, which pyproject.toml alone names."""

from importlib.metadata import PackageNotFoundError, version

try:
    VERSION = version("geomill")
except PackageNotFoundError:  # run from its files without having been installed
    VERSION = "unknown"
