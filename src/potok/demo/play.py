"""Run the demo: orders are written, Spark counts them, a page shows the result."""

from __future__ import annotations

import contextlib
import logging
import signal
import subprocess
import sys
import threading
import webbrowser
from collections.abc import Callable, Iterator
from typing import Protocol

import potok
from potok.demo.shop import ORDERS
from potok.demo.topology import PANELS, QUERY, build
from potok.dsl.builder import StreamsBuilder
from potok.errors import QueryError
from potok.log.broker import Broker
from potok.log.open import open_broker
from potok.server.app_server import CannotListen
from potok.server.figures.query_feed import QueryFeed
from potok.server.server import Server
from potok.settings import Settings
from potok.statements.database import Database
from potok.statements.queries.query_tables import QueryTables

PARTITIONS = 2
RETENTION_BYTES = 256 << 20
DEFAULT_PORT = 8400
PORTS = 20
"""How many ports are tried, if none is asked for."""

LOOK_SECONDS = 0.25


class GeneratorDied(QueryError):
    """The process that writes the orders ended."""

    def __init__(self, code: int) -> None:
        super().__init__(
            f"the process that writes the orders ended with {code}", hint="its own message is printed above"
        )


class Running(Protocol):
    """The methods of a query that the demo uses."""

    def wait(self, timeout: float | None = None) -> bool: ...

    def stop(self) -> None: ...


Start = Callable[[StreamsBuilder, str], Running]


def start_query(builder: StreamsBuilder, url: str) -> Running:
    # Some orders are malformed or late on purpose: the page counts them, and logging them would look like an
    # error.
    logging.getLogger("potok.runtime.output.dead_letter_reporter").disabled = True
    query: Running = potok.start(builder, broker=url)
    return query


def play(
    url: str,
    *,
    port: int | None = None,
    rate: float = 3000,
    seconds: float | None = None,
    open_browser: bool = True,
    say: Callable[[str], None] = print,
    start: Start = start_query,
) -> None:
    """Run the demo until Ctrl-C, or for a number of seconds.

    Args:
        url: The broker; missing topics are created.
        port: The port of the page; by default the first free one from 8400.
        rate: Orders per second.
        seconds: How long to run, measured from the start of the query.
        open_browser: Open the page in the user's browser.
        say: Prints a line.
        start: Starts the query.
    """
    broker = open_broker(url)
    create_topics(broker)
    builder = build()
    topology = builder.build()
    database = QueryTables(broker, Settings.load(broker=url), [topology.name])
    server = listening(database, port)
    server.figures.add(topology.name, QueryFeed(broker, topology.name, topology=topology, panels=PANELS))
    with database, server:
        server.figures.watch()
        page = f"{server.url}/console/#/queries/{topology.name}"
        say(f"Potok demo: {page}   (Ctrl-C ends it)")
        if open_browser:
            webbrowser.open(page)
        with _generator(url, rate) as generator:
            query = start(builder, url)
            # Spark installs its own handler when it starts, which would cancel the current batch, so ours is
            # installed after it.
            with _until_signal(threading.Event()) as ending:
                try:
                    _wait(ending, query, generator, seconds)
                finally:
                    ending.set()  # from here on, Ctrl-C does not wait for the batch
                    say("stopping at the end of the batch")
                    query.stop()


def listening(database: Database, port: int | None) -> Server:
    """Return a server on a port, or on the first free one from 8400."""
    if port is not None:
        return Server(database, port=port)
    for candidate in range(DEFAULT_PORT, DEFAULT_PORT + PORTS - 1):
        with contextlib.suppress(CannotListen):
            return Server(database, port=candidate)
    return Server(database, port=DEFAULT_PORT + PORTS - 1)


def create_topics(broker: Broker) -> None:
    """Create the topics of the demo, with a retention of minutes: the demo may run for days."""
    for topic in (ORDERS, "high-value-orders", "order-counts", f"{QUERY}-dead-letters"):
        broker.create_topic(
            topic, PARTITIONS, segment_bytes=RETENTION_BYTES // 8, retention_bytes=RETENTION_BYTES, exist_ok=True
        )


@contextlib.contextmanager
def _generator(url: str, rate: float) -> Iterator[subprocess.Popen[bytes]]:
    """Start a separate process for the orders, so that they do not compete with the page and the driver."""
    command = [sys.executable, "-m", "potok.demo.orders", url, "--rate", str(rate)]
    # In its own session, or Ctrl-C in the terminal would reach it before the query is stopped.
    process = subprocess.Popen(command, stdin=subprocess.PIPE, start_new_session=True)
    try:
        yield process
    finally:
        assert process.stdin is not None
        process.stdin.close()
        try:
            process.wait(timeout=5)
        except subprocess.TimeoutExpired:
            process.kill()


def _wait(ending: threading.Event, query: Running, generator: subprocess.Popen[bytes], seconds: float | None) -> None:
    left = seconds
    while left is None or left > 0:
        if ending.wait(LOOK_SECONDS if left is None else min(left, LOOK_SECONDS)):
            return
        if query.wait(0):
            return
        code = generator.poll()
        if code is not None:
            raise GeneratorDied(code)
        left = None if left is None else left - LOOK_SECONDS


@contextlib.contextmanager
def _until_signal(ending: threading.Event) -> Iterator[threading.Event]:
    """Turn Ctrl-C and SIGTERM into an event; a second Ctrl-C does not wait."""
    if threading.current_thread() is not threading.main_thread():
        yield ending
        return

    def handle(*_: object) -> None:
        if ending.is_set():
            raise KeyboardInterrupt
        ending.set()

    before = {number: signal.signal(number, handle) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield ending
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
