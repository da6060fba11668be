"""Clients that repeat an action beside a test, in threads."""

import threading
from typing import Self


class Load:
    """Runs `run` for each client; the end of the block sets `over` and waits for all of them."""

    def __init__(self, clients: int) -> None:
        self.over = threading.Event()
        self._threads = [threading.Thread(target=self.run, args=(number,)) for number in range(clients)]

    def __enter__(self) -> Self:
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.over.set()
        for thread in self._threads:
            thread.join()

    def run(self, number: int) -> None:
        """What the client with this number does until `over` is set."""
        raise NotImplementedError
