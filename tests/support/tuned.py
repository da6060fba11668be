"""Geomill with other values for constants: `python -m tests.support.tuned '{"Config": {…}, "Limits": {…}}' serve`.

The names are records of the sandbox's that `service.app.converters` makes, the values fields of them.
"""

import json
import sys
from collections.abc import Mapping
from functools import partial

from service.app import converters
from service.cli import main


def tuned(**records: Mapping[str, object]) -> tuple[str, ...]:
    """The program for `running_server`."""
    return ("-m", "tests.support.tuned", json.dumps(records))


if __name__ == "__main__":
    for name, fields in json.loads(sys.argv.pop(1)).items():
        setattr(converters, name, partial(getattr(converters, name), **fields))
    sys.exit(main())
