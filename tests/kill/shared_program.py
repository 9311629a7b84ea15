"""A program that gets killed: three of `orders_program` in one shared query, one of them added while it runs."""

from __future__ import annotations

import sys
import threading

from potok.log.open import open_broker
from potok.runtime.queries.query_group import QueryGroup
from potok.settings import Settings
from potok.spark.spark_executor import start_spark
from tests.kill import orders_program

PREFIXES = ("a-", "b-", "c-")
TIMEOUT_S = 100.0


def main(url: str, batch: int, prefix: str) -> None:
    settings = Settings(broker=url, shards=2, max_batch_records=batch)
    first, second, third = (f"{prefix}{each}orders-query" for each in PREFIXES)
    came = threading.Event()
    with QueryGroup(open_broker(url, settings), settings, start_spark(settings)) as shared:
        shared.on_batch(lambda _: came.set())
        for each in PREFIXES[:2]:
            shared.add(orders_program.build(prefix + each))
        # Whether the first two have anything left to do or not, the third comes when the batches have started.
        came.wait(20)
        shared.add(orders_program.build(prefix + PREFIXES[2]))
        shared.wait_caught_up(TIMEOUT_S, [first, second, third])


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), sys.argv[3] if len(sys.argv) > 3 else "")
