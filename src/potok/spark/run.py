"""Run a program: in the background, or until it is stopped."""

from __future__ import annotations

import signal
import threading
from functools import partial
from pathlib import Path
from types import FrameType
from typing import Any

from potok.errors import SetupError
from potok.log.open import open_broker
from potok.log.start import Start
from potok.program_loading import is_loading
from potok.runtime.operations.table_refresh import keep_refreshing, load_tables, refreshers_of
from potok.runtime.planning.start_offsets import start_positions
from potok.runtime.queries.prepare import Buildable, prepare, topology_of
from potok.runtime.queries.query import Query
from potok.runtime.queries.stop_deadline import StopDeadline
from potok.settings import Settings
from potok.spark.dataframes import session_of
from potok.spark.spark_executor import start_spark
from potok.topology.graph import Topology


class StartedWhileLoading(SetupError):
    """A program that starts a query while a command loads it."""

    def __init__(self) -> None:
        super().__init__(
            "the program starts a query while it is loaded",
            hint='put the call below if __name__ == "__main__":, or run the file with python',
        )


def start(
    program: Buildable | Topology,
    *,
    broker: str | Path | None = None,
    until_end: bool = False,
    start: Start = "earliest",
    **settings: Any,
) -> Query:
    """Start a topology in the background of this process.

    >>> query = potok.start(builder, broker="file:./data")
    >>> query.stop()

    Args:
        program: A `StreamsBuilder`, or the topology it built.
        broker: The URL of the log: `file:./data` unless a setting says otherwise.
        until_end: Stop when all current records have been processed, including those written to topics
            that the topology writes and reads again.
        start: Where a new query starts: "earliest", "latest", a datetime, or offsets by topic and partition. Tables are
            read from their first record unless offsets say otherwise. A query that ran before resumes where it stopped.
        settings: Any setting of `potok.toml`, such as `shards=4`.
    """
    if is_loading():
        raise StartedWhileLoading
    chosen = Settings.load(broker=None if broker is None else str(broker), **settings)
    topology = topology_of(program)
    log = open_broker(chosen.broker, chosen)
    refreshers = refreshers_of(topology, log, partial(session_of, chosen))
    positions = start_positions(log, topology, start)
    prepared = prepare(topology, log, chosen, start=positions, load=partial(load_tables, refreshers, log))
    try:
        read, written = prepared.plan.topology.source_topics, prepared.plan.topology.sink_topics
        target, own = log.end_offsets_of(read) if until_end else None, frozenset(read).intersection(written)
        query = Query(prepared, start_spark(chosen), chosen, target=target, own=own).start()
        keep_refreshing(refreshers, query.has_ended)
        return query
    except BaseException:
        prepared.release()
        raise


_start = start


def run(
    program: Buildable | Topology,
    *,
    broker: str | Path | None = None,
    until_end: bool = False,
    start: Start = "earliest",
    **settings: Any,
) -> None:
    """Run a topology until it is stopped (Ctrl-C or SIGTERM), or until the end of its input. The arguments are those of
    `start`.

    While a command such as `potok run` or `potok describe` loads the program, this does nothing: the command runs the
    topology, or does not.

    >>> potok.run(builder)
    >>> potok.run(builder, broker="file:./data", until_end=True)
    """
    if is_loading():
        return
    query = _start(program, broker=broker, until_end=until_end, start=start, **settings)
    wait_for(query)


def wait_for(query: Query) -> None:
    """Wait for a query; the first SIGINT or SIGTERM stops it at a batch boundary. Raise `StopTimedOut` if that takes
    longer than the setting `stop_timeout`."""
    deadline = StopDeadline(query.stop_timeout_ms)

    def stop(_: int, __: FrameType | None) -> None:
        deadline.begin()
        threading.Thread(target=query.stop, daemon=True).start()

    if threading.current_thread() is not threading.main_thread():
        query.wait()
        return
    before = {number: signal.signal(number, stop) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        while not query.wait(0.2):
            if deadline.is_over:
                raise deadline.error()
    finally:
        deadline.stopped()
        for number, handler in before.items():
            signal.signal(number, handler)
