"""A replay starts where it is asked to, under a name of its own."""

from __future__ import annotations

from pathlib import Path
from typing import NoReturn

import pytest

from potok import StreamsBuilder
from potok.log.embedded.embedded_broker import EmbeddedBroker
from potok.records.log_record import LogRecord
from potok.runtime.operations.replay import PrefixMissing, ReplayExists, start_replay, with_prefix
from potok.runtime.queries.prepare import prepare
from potok.settings import Settings
from potok.snapshots.ledger_view import read_entry
from potok.topology.graph import Topology


def started(_: Settings) -> NoReturn:
    raise AssertionError("an executor was started")


@pytest.fixture
def topology() -> Topology:
    builder = StreamsBuilder("words")
    builder.stream("texts", value=str).to("copies")
    return builder.build()


@pytest.fixture
def broker(tmp_path: Path) -> EmbeddedBroker:
    opened = EmbeddedBroker.shared(tmp_path)
    opened.create_topic("texts")
    opened.append("texts", [LogRecord(None, b"a", second * 1_000) for second in range(5)])
    return opened


def test_a_replay_ignores_the_start_of_an_earlier_one_that_ran_no_batch(
    topology: Topology, broker: EmbeddedBroker, tmp_path: Path
) -> None:
    settings = Settings(broker=str(tmp_path))
    prepare(with_prefix(topology, "again-"), broker, settings, start={"texts": {0: 4}}).release()
    before = read_entry(broker, "again-words")
    with pytest.raises(ReplayExists, match="again-words"):
        start_replay(topology, broker, 0, 9_000, "again-", settings, started)
    assert read_entry(broker, "again-words") == before


def test_a_replay_without_a_prefix_is_refused_before_it_touches_the_query(
    topology: Topology, broker: EmbeddedBroker, tmp_path: Path
) -> None:
    with pytest.raises(PrefixMissing, match="words"):
        start_replay(topology, broker, 0, 9_000, "", Settings(broker=str(tmp_path)), started)
    assert read_entry(broker, "words") is None
