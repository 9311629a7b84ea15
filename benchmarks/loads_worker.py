"""Groups with thousands of partitions, and with hundreds of queries: prints figures as a line of JSON."""

from __future__ import annotations

import json
import os
import statistics
import sys
import time
from pathlib import Path

from benchmarks.loads import PARTITIONS, QUERIES, TOPICS
from benchmarks.measure import idle_percent
from benchmarks.shared import RECORDS, make_query, send_orders
from potok import StreamsBuilder
from potok.log.embedded.embedded_broker import EmbeddedBroker
from potok.records.log_record import LogRecord
from potok.runtime.planning.group_planner import GroupPlanner
from potok.runtime.queries.query_group import QueryGroup
from potok.settings import Settings
from potok.spark.spark_executor import start_spark

WARM_UP, TIMES = 3, 15
IDLE_S = 15.0
PATIENCE_S = 300.0


def partitions(broker: EmbeddedBroker, group: QueryGroup) -> dict[str, float]:
    """One query that reads all partitions of all topics."""
    topics = [f"orders-{number:04}" for number in range(TOPICS)]
    for topic in topics:
        broker.create_topic(topic, PARTITIONS)
    builder = StreamsBuilder("partitions")
    first, *others = [builder.stream(topic, value="user_id string, amount double") for topic in topics]
    first.merge(*others).group_by("user_id").count(name="counts")
    group.add(builder)
    group.wait_caught_up(PATIENCE_S)
    planner, times = GroupPlanner(broker), []
    for number in range(WARM_UP + TIMES):
        with group.boundary:
            broker.append(topics[number], [LogRecord(b"k", b'{"user_id": "u", "amount": 1.0}')])
            began = time.thread_time()
            assert planner.plan(group.members()).ends, "there is a record to read"
            times.append((time.thread_time() - began) * 1000)
        group.wait_caught_up(PATIENCE_S)
    time.sleep(2)
    return {"plan_ms": statistics.median(times[WARM_UP:]), "idle_percent": idle_percent(os.getpid(), IDLE_S)}


def queries(broker: EmbeddedBroker, group: QueryGroup) -> dict[str, float]:
    """Queries of different kinds on one topic: from the first to the last that has started, and batches of all."""
    broker.create_topic("orders", 2)
    send_orders(broker, 0)
    began = time.perf_counter()
    for number in range(QUERIES):
        group.add(make_query(number))
    group.wait_caught_up(PATIENCE_S)
    start_s, times = time.perf_counter() - began, []
    for number in range(1, WARM_UP + TIMES + 1):
        began = time.perf_counter()
        send_orders(broker, number)
        group.wait_caught_up(PATIENCE_S)
        times.append(time.perf_counter() - began)
    counted = sum(group.tables("q0")["counts"].all().values())
    assert counted == RECORDS * (WARM_UP + TIMES + 1), f"{counted} records were counted"
    return {"start_s": start_s, "batch_s": statistics.median(times[WARM_UP:])}


def main(what: str, directory: str) -> None:
    settings = Settings(broker=f"file:{directory}")
    broker = EmbeddedBroker.shared(Path(directory))
    with QueryGroup(broker, settings, start_spark(settings)) as group:
        found = {"partitions": partitions, "queries": queries}[what](broker, group)
    print(json.dumps(found))


if __name__ == "__main__":
    main(*sys.argv[1:])
