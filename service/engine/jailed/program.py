"""Calls the function `main` of one of our programs in the sandbox: `python -m …program MODULE RESULT ARGUMENT…`.

What it returns becomes the content of the file RESULT, as JSON, unless that name is empty. A launcher that keeps the
programs loaded knows their commands by the name of this module.
"""

import sys
from importlib import import_module
from pathlib import Path

import msgspec


def main() -> None:
    """Do so with the arguments of the command."""
    module, result, *arguments = sys.argv[1:]
    found = import_module(module).main(*arguments)
    if result:
        Path(result).write_bytes(msgspec.json.encode(found))


if __name__ == "__main__":
    main()
