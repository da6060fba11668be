"""A worker that stops itself where a test says: `python -m tests.fleet.freezing DIRECTORY worker`.

It is the real worker. Before or after the steps below it looks for a file of the test, named after the step and the
moment; if there is one, it removes it and stops with SIGSTOP, as a host that is suspended does, until it is continued.
"""

import inspect
import os
import signal
import sys
from collections.abc import Callable
from functools import wraps
from pathlib import Path
from typing import Any, Final

from service.cli import main
from service.jobs.deliveries import Delivery
from service.jobs.leases import Leases
from service.jobs.register import JobRegister
from service.metering.ledger import Ledger
from service.storage.observed import copy_observed
from service.storage.s3 import S3Storage
from service.usecases import claimed_jobs

STEPS: Final[dict[str, tuple[Any, str]]] = {
    "claim": (Leases, "claim"),
    "fetch": (claimed_jobs, copy_observed.__name__),
    "convert": (JobRegister, "begin"),
    "put": (S3Storage, "put"),
    "settle": (Ledger, "settle"),
    "acknowledge": (Delivery, "acknowledge"),
}
WHEN: Final = ("before", "after")


def program(directory: Path) -> tuple[str, ...]:
    """The program for `running_server`."""
    return ("-m", "tests.fleet.freezing", str(directory))


def arm(directory: Path, step: str, when: str) -> None:
    """Have the next worker that comes there stop."""
    (directory / f"{step}-{when}").touch()


def _freeze_at(directory: Path, step: str, original: Callable[..., Any]) -> Callable[..., Any]:
    def pass_by(when: str) -> None:
        try:
            (directory / f"{step}-{when}").unlink()
        except FileNotFoundError:
            return
        os.kill(os.getpid(), signal.SIGSTOP)

    @wraps(original)
    async def waiting(*arguments: Any, **named: Any) -> Any:
        pass_by("before")
        result = await original(*arguments, **named)
        pass_by("after")
        return result

    @wraps(original)
    def direct(*arguments: Any, **named: Any) -> Any:
        pass_by("before")
        result = original(*arguments, **named)
        pass_by("after")
        return result

    return waiting if inspect.iscoroutinefunction(original) else direct


if __name__ == "__main__":
    place = Path(sys.argv.pop(1))
    for name, (owner, attribute) in STEPS.items():
        setattr(owner, attribute, _freeze_at(place, name, getattr(owner, attribute)))
    sys.exit(main())
