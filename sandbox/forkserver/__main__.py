"""`python -m sandbox.forkserver build CACHE`: build the library and print its path."""

import sys
from pathlib import Path

from sandbox.forkserver import BuildError, build

_USAGE = f"usage: python -m {__package__} build CACHE"


def main(arguments: list[str]) -> int:
    """Build into the directory given."""
    if len(arguments) != len(("build", "CACHE")) or arguments[0] != "build":
        print(_USAGE, file=sys.stderr)  # noqa: T201 - command-line output
        return 2
    try:
        path = build(Path(arguments[1]).resolve())
    except BuildError as error:
        print(f"The fork server was not built: {error}. Conversions are slower without it.", file=sys.stderr)  # noqa: T201 - what it is run for
        return 1
    print(path)  # noqa: T201 - command-line output
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
