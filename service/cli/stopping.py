"""How the processes of the service are told to stop."""

import signal
from collections.abc import AsyncIterator
from contextlib import AbstractContextManager

import anyio
from anyio.abc import TaskStatus


def stop_signals() -> AbstractContextManager[AsyncIterator[signal.Signals]]:
    """Receive what asks a process to stop: also the end of its terminal, unless that is ignored, as after `nohup`."""
    ignores_hangup = signal.getsignal(signal.SIGHUP) is signal.SIG_IGN
    hangup = () if ignores_hangup else (signal.SIGHUP,)
    return anyio.open_signal_receiver(signal.SIGINT, signal.SIGTERM, signal.SIGQUIT, *hangup)


class StopRequest:
    """The request to stop: in order, or at once.

    The first signal requests a stop in order, and a second one, or SIGQUIT, a stop at once. A member receives SIGTERM
    from its parent, perhaps also from a service manager, so only SIGQUIT makes it stop at once. What is in progress
    when `ending` is set, ends then. Before `note_start`, any signal cancels `starting`, as there is nothing to finish.
    """

    def __init__(self, starting: anyio.CancelScope, *, is_member: bool) -> None:
        self._starting: anyio.CancelScope | None = starting
        self.in_order = anyio.Event()
        self.at_once = anyio.Event()
        self.ending = anyio.Event()
        self._is_member = is_member

    async def obey_signals(self, *, task_status: TaskStatus[None]) -> None:
        """Wait for signals forever; started once they are received."""
        with stop_signals() as received:
            task_status.started()
            async for number in received:
                if number == signal.SIGQUIT or (self.in_order.is_set() and not self._is_member):
                    self.at_once.set()
                self.in_order.set()
                if self._starting is not None:
                    self._starting.cancel()

    def note_start(self) -> None:
        """Note that the service has started."""
        self._starting = None

    async def sleep(self, seconds: float) -> None:
        """Sleep, at most until the stop is to be at once."""
        with anyio.move_on_after(seconds):
            await self.at_once.wait()
