"""The process between a service and its spawner: sets up what needs rights on the host, and outlives the spawner.

`python -m sandbox.keeper DESCRIPTOR PARENT`: the connection to the service, and the process id of the service.
"""

import os
import signal
import socket
import sys
from typing import NoReturn

from sandbox import syscalls
from sandbox.spawner import Spawner, receive_config


def main() -> NoReturn:
    """Run a spawner until the service is gone."""
    link = socket.socket(fileno=int(sys.argv[1]))
    link.set_inheritable(False)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    syscalls.prctl(syscalls.PR_SET_PDEATHSIG, signal.SIGTERM)
    if os.getppid() != int(sys.argv[2]):
        sys.exit("the service is gone")
    config = receive_config(link)
    keeper = os.getpid()
    child = os.fork()
    if child == 0:
        syscalls.prctl(syscalls.PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() == keeper:
            Spawner(link).serve(config)
        os._exit(1)
    link.close()
    signal.signal(signal.SIGTERM, lambda *_: os.kill(child, signal.SIGKILL))
    _, status = os.waitpid(child, 0)
    sys.exit(os.waitstatus_to_exitcode(status) != 0)


if __name__ == "__main__":
    main()
