"""The orders of the documentation behind a server, with their commands decided in the same process, and no Spark."""

from __future__ import annotations

import sys
import threading
from pathlib import Path

from potok.server.server import Server
from potok.settings import Settings
from potok.statements.queries.query_tables import QueryTables
from potok.testing import TestDriver
from tests.patterns.aggregates.orders import program


def main(directory: Path) -> None:
    with (
        TestDriver(program(), directory=directory) as driver,
        QueryTables(driver.broker, Settings(), ["shop"]) as database,
        Server(database, port=0) as server,
    ):
        # What a killed server has received is decided before its client returns.
        driver.run()
        print(server.url, flush=True)
        pause = threading.Event()
        while True:
            driver.run(more_to_come=True)
            pause.wait(0.005)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
