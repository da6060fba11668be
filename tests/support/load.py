"""Clients that do the same again and again beside a test, in threads of their own."""

import threading
from typing import Self


class Load:
    """Runs `run` for each client; at the end of the block `over` is set, and all of them are waited for."""

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
        """What the client of this number does until `over` is set."""
        raise NotImplementedError
