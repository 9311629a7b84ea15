from __future__ import annotations

from collections.abc import Iterator

import pytest

from servers import PostgresServer
from tests.sources.cdc.changed import Database


@pytest.fixture
def database(logical_postgres: PostgresServer) -> Iterator[Database]:
    made = Database(logical_postgres)
    yield made
    made.close()
