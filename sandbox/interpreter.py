"""The Python of this process, by a name that also leads to it in a jail."""

import sys
from pathlib import Path
from typing import Final


def direct(path: str) -> str:
    """Return an absolute path without `..`, which Python keeps if it is started as `../venv/bin/python`.

    A jail lacks the directory that such a path leads through. The last part stays as it is, though it may be a link,
    because a virtual environment is found by its place.
    """
    if ".." not in Path(path).parts:
        return path
    return str(Path(path).parent.resolve() / Path(path).name)


PYTHON: Final = direct(sys.executable)
