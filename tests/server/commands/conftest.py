from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from patterns.aggregates.orders import program
from potok.server.server import Server
from potok.settings import Settings
from potok.statements.queries.query_tables import QueryTables
from potok.testing import TestDriver


class Shop:
    """The orders of the documentation behind a server; a thread decides commands as they arrive, until it is held."""

    def __init__(self, directory: Path) -> None:
        self.driver = TestDriver(program(), partitions={"orders-commands": 2, "order-events": 2}, directory=directory)
        self.broker = self.driver.broker
        self.database = QueryTables(self.broker, Settings(), ["shop"])
        self._ends, self._thread = threading.Event(), threading.Thread(target=self._run, daemon=True)
        self._held = threading.Lock()
        self._thread.start()

    def _run(self) -> None:
        while not self._ends.wait(0.005):
            with self._held:
                self.driver.run(more_to_come=True)

    @property
    def held(self) -> threading.Lock:
        """No command is decided while it is held."""
        return self._held

    def close(self) -> None:
        self._ends.set()
        self._thread.join()
        self.database.close()
        self.driver.close()


@pytest.fixture
def shop(tmp_path: Path) -> Iterator[Shop]:
    found = Shop(tmp_path)
    yield found
    found.close()


@pytest.fixture
def server(shop: Shop) -> Iterator[Server]:
    with Server(shop.database, port=0) as found:
        yield found


@pytest.fixture
def client(server: Server) -> Iterator[httpx.Client]:
    with httpx.Client(base_url=server.url, timeout=30) as found:
        yield found
