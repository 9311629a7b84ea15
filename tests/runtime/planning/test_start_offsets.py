"""Where a query starts or resumes."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from potok import StreamsBuilder
from potok.log.embedded.embedded_broker import EmbeddedBroker
from potok.records.log_record import LogRecord
from potok.runtime.planning.start_offsets import OnLost, start_positions, starting_offsets


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[EmbeddedBroker]:
    found = EmbeddedBroker.shared(tmp_path)
    found.create_topic("orders", 2)
    for partition in (0, 1, 1):
        found.append("orders", [LogRecord(b"k", b"v", 1)], partition)
    yield found
    found.close()


def test_the_latest_records_of_streams_and_the_first_of_tables(broker: EmbeddedBroker) -> None:
    broker.create_topic("users", 1)
    broker.append("users", [LogRecord(b"k", b"{}", 1)], 0)
    builder = StreamsBuilder("query")
    users = builder.table("users", name="users")
    builder.stream("orders").join(users, lambda order, user: order).to("out")
    builder.stream("not-there-yet").to("other")
    topology = builder.build()
    assert start_positions(broker, topology, "latest") == {"orders": {0: 1, 1: 2}}
    assert start_positions(broker, topology, "earliest") == {}
    assert start_positions(broker, topology, {"orders": {0: 1}}) == {"orders": {0: 1}}


def test_a_partition_that_came_later_is_read_from_its_first_record(broker: EmbeddedBroker) -> None:
    ends = broker.end_offsets_of(["orders"])
    found = starting_offsets(broker, ["orders"], {"orders": {0: 0}}, ends, OnLost.STOP, "query")
    assert found == {"orders": {0: 0, 1: 0}}
    assert starting_offsets(broker, ["orders"], {}, ends, OnLost.STOP, "query") == {"orders": {0: 1, 1: 2}}
