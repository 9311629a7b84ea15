from __future__ import annotations

from collections.abc import Iterator

import pytest

from servers import MariadbServer
from tests.sources.cdc.changed import MysqlDatabase


@pytest.fixture
def database(mariadb: MariadbServer) -> Iterator[MysqlDatabase]:
    made = MysqlDatabase(mariadb)
    yield made
    made.close()
