"""What a reader is told of how current a table is."""

from __future__ import annotations

import json
import os
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from potok.cli.state.freshness import freshness
from potok.dsl.builder import StreamsBuilder
from potok.log.broker import Broker
from potok.log.open import open_broker
from potok.records.log_record import LogRecord
from potok.runtime.queries.lock import is_held
from potok.runtime.queries.prepare import Prepared, prepare
from potok.settings import Settings


def builder() -> StreamsBuilder:
    made = StreamsBuilder("shop")
    made.stream("orders").group_by_key().count(name="counts")
    return made


@pytest.fixture
def log(tmp_path: Path) -> Iterator[Broker]:
    opened = open_broker(tmp_path / "data")
    yield opened
    opened.close()


@pytest.fixture
def query(log: Broker) -> Iterator[Prepared]:
    """A query that holds its lock and has run no batch."""
    prepared = prepare(builder(), log, Settings(shards=1))
    yield prepared
    prepared.release()


def send(log: Broker, count: int) -> None:
    log.append("orders", [LogRecord(b"anna", b"1") for _ in range(count)])


def write_down(log: Broker, **changes: Any) -> None:
    found = json.loads(log.get_metadata("query/shop/progress") or b"")
    log.set_metadata({"query/shop/progress": json.dumps(found | changes).encode()})


def test_a_query_that_never_ran_is_not_spoken_of(log: Broker) -> None:
    assert freshness(log, "shop") == ""


def test_tables_that_show_everything_need_no_word(log: Broker, query: Prepared) -> None:
    assert freshness(log, "shop") == ""
    query.release()
    assert freshness(log, "shop") == ""


def test_a_query_that_is_starting_says_what_is_missing(log: Broker, query: Prepared) -> None:
    send(log, 3)
    assert freshness(log, "shop") == 'query "shop" is starting, 3 records are not in its tables yet'


def test_a_query_at_work_says_what_is_missing(log: Broker, query: Prepared) -> None:
    write_down(log, state="running")
    send(log, 1)
    assert freshness(log, "shop") == 'query "shop" is running, 1 record is not in its tables yet'


def test_a_query_that_does_not_run_says_so(log: Broker, query: Prepared) -> None:
    write_down(log, state="running")
    query.release()
    send(log, 1)
    text = freshness(log, "shop")
    assert text == 'query "shop" is not running, 1 record is not in its tables yet: potok run PROGRAM starts it'


def test_a_query_that_failed_says_why(log: Broker, query: Prepared) -> None:
    query.release()
    write_down(log, state="failed", error="the disk is full\n  hint: make room")
    send(log, 1)
    assert freshness(log, "shop").endswith(": the disk is full")


def test_a_lock_is_held_as_long_as_its_process_says_so(log: Broker, query: Prepared) -> None:
    assert is_held(query.directory)
    query.release()
    assert not is_held(query.directory)
    assert not is_held(query.directory / "nowhere")
    (query.directory / "lock").write_text(f"process {os.getpid()} on {socket.gethostname()}\n")
    assert not is_held(query.directory), "a killed process left it behind, and its number is taken again"
    (query.directory / "lock").write_text("process 1 on another.machine\n")
    assert is_held(query.directory)


def test_tables_get_says_on_stderr_that_the_query_is_behind(potok, log: Broker, query: Prepared) -> None:
    send(log, 2)
    result = potok("tables", "get", "counts", "anna")
    assert result.code == 1
    assert 'query "shop" is starting, 2 records are not in its tables yet' in result.err
    assert 'table "counts" has no row for "anna"' in result.err
    assert "is starting" in potok("tables", "scan", "counts").err
    assert "is starting" in potok("tables", "list").err
