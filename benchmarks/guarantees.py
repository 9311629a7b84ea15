"""What a guarantee costs on the embedded log: records copied from topic to topic, against exactly once."""

from __future__ import annotations

from benchmarks.bench import Bench, Row, speed
from benchmarks.foundation import USERS

NOT_MUCH_SLOWER = 0.8
"""There is nothing to gain here: output beside the commit takes one more transaction of the log's metadata."""


def copying(bench: Bench, guarantee: str) -> Row:
    log = bench.log("copies-log", bench.records // 2, USERS)
    batch = bench.batch // 4
    return bench.at_least(
        f"a copy {guarantee.replace('_', ' ')}, against exactly once",
        lambda: speed(bench.potok(f"copy_{guarantee}", log, batch)),
        lambda: speed(bench.potok("copy_exactly_once", log, batch)),
        NOT_MUCH_SLOWER,
    )


def at_least_once(bench: Bench) -> Row:
    return copying(bench, "at_least_once")


def at_most_once(bench: Bench) -> Row:
    return copying(bench, "at_most_once")
