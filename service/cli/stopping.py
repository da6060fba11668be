"""How the processes of the service are told to stop."""

import signal

import anyio


class StopRequest:
    """The request to stop: in order, or at once.

    The first signal requests a stop in order, and a second one, or SIGQUIT, a stop at once. A member receives SIGTERM
    from its parent, perhaps also from a service manager, so only SIGQUIT makes it stop at once.
    """

    def __init__(self, *, is_member: bool) -> None:
        self.in_order = anyio.Event()
        self.at_once = anyio.Event()
        self._is_member = is_member

    async def obey_signals(self) -> None:
        """Wait for signals forever."""
        with anyio.open_signal_receiver(signal.SIGINT, signal.SIGTERM, signal.SIGQUIT) as received:
            async for number in received:
                if number == signal.SIGQUIT or (self.in_order.is_set() and not self._is_member):
                    self.at_once.set()
                self.in_order.set()

    async def sleep(self, seconds: float) -> None:
        """Sleep, at most until the stop is to be at once."""
        with anyio.move_on_after(seconds):
            await self.at_once.wait()
