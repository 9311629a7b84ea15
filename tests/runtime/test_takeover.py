"""A driver that was paused, and whose query another one runs by now."""

from __future__ import annotations

import os
import socket
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from potok.cli.main import app
from potok.dsl.builder import StreamsBuilder
from potok.errors import PotokError
from potok.log.embedded.embedded_broker import EmbeddedBroker
from potok.records.log_record import LogRecord
from potok.runtime.batches.batch import BatchRunner
from potok.runtime.batches.group_batch import run_batch
from potok.runtime.batches.in_process_executor import InProcessExecutor
from potok.runtime.planning.planner import Planner
from potok.runtime.planning.watermark import windowed_steps
from potok.runtime.queries.lock import QueryTakenOver
from potok.runtime.queries.prepare import Prepared, prepare
from potok.settings import Settings
from potok.state.entry import metadata_key_of
from potok.topology.nodes.windows import tumbling_ms

HERE = f"process {os.getpid()} on {socket.gethostname()}"


def counted(builder: StreamsBuilder) -> None:
    builder.stream("a").group_by_key().count(name="n").to_stream().to("out")


def joined(builder: StreamsBuilder) -> None:
    left, right = builder.stream("a"), builder.stream("b")
    left.join(right, lambda one, two: [one, two], within=1_000).to("out")


def windowed(builder: StreamsBuilder) -> None:
    grouped = builder.stream("a").group_by_key().windowed_by(tumbling_ms(10, 0, 100))
    grouped.aggregate(list, lambda k, v, seen: [*seen, v], name="n")


class Driver:
    """A process that runs the query; the lock is that of another machine."""

    def __init__(self, broker: EmbeddedBroker, program: Callable[[StreamsBuilder], None]) -> None:
        builder = StreamsBuilder("q")
        program(builder)
        self.prepared: Prepared = prepare(builder, broker, Settings(shards=2))
        self.prepared.lock.release()
        parts = self.prepared
        made = parts.plan, parts.ledger, parts.directory, parts.metrics, parts.state
        self.runner = BatchRunner(InProcessExecutor(), broker, *made)
        topology = parts.plan.topology
        steps = windowed_steps(topology)
        self.planner = Planner(broker, parts.ledger, topology.source_topics, steps, 1 << 40, 1 << 40)

    def step(self) -> None:
        run_batch(self.runner, self.planner.next())


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[EmbeddedBroker]:
    broker = EmbeddedBroker.shared(tmp_path)
    yield broker
    broker.close()


def send(broker: EmbeddedBroker, count: int, at: int) -> None:
    for topic in ("a", "b"):
        broker.create_topic(topic, 1, exist_ok=True)
        broker.append(topic, [LogRecord(b"k%d" % (n % 7), b"%d" % n, at + n) for n in range(count)], 0)


@pytest.mark.parametrize("program", [counted, joined, windowed])
@pytest.mark.parametrize("batches", [0, 1, 3])
def test_a_driver_that_was_replaced_says_so_and_names_the_other(
    broker: EmbeddedBroker, program: Callable[[StreamsBuilder], None], batches: int
) -> None:
    send(broker, 50, 0)
    paused = Driver(broker, program)
    paused.step()
    other = Driver(broker, program)
    for batch in range(batches):
        send(broker, 50, 100 * batch)
        other.step()
    send(broker, 50, 1_000)
    with pytest.raises(QueryTakenOver, match=f'query "q" was taken over by {HERE}'):
        paused.step()
    other.step()


def test_errors_caused_by_foreign_state_are_reported_as_such(
    broker: EmbeddedBroker, monkeypatch: pytest.MonkeyPatch
) -> None:
    send(broker, 5, 0)
    paused = Driver(broker, counted)
    Driver(broker, counted)

    def run(*_: object) -> None:
        raise ValueError("need at least one array to concatenate")

    monkeypatch.setattr(InProcessExecutor, "run", run)
    with pytest.raises(QueryTakenOver) as raised:
        paused.step()
    assert isinstance(raised.value.__cause__, ValueError)


def test_a_driver_that_was_replaced_leaves_what_the_other_has_staged(broker: EmbeddedBroker) -> None:
    send(broker, 5, 0)
    paused, other = Driver(broker, counted), Driver(broker, counted)
    staged = other.prepared.directory / "staging" / "2-1" / "output.staged"
    staged.parent.mkdir(parents=True)
    staged.write_bytes(b"output of the batch that the other is in")
    with pytest.raises(QueryTakenOver):
        paused.step()
    assert staged.exists()


def test_one_that_has_nothing_to_read_finds_out_too(broker: EmbeddedBroker) -> None:
    send(broker, 5, 0)
    paused = Driver(broker, counted)
    paused.runner.ledger.check_owner()
    Driver(broker, counted)
    for check in (paused.runner.ledger.check_owner, lambda: paused.runner.ledger.end_epoch({})):
        with pytest.raises(QueryTakenOver):
            check()


def test_an_error_of_a_driver_that_was_not_replaced_stays_what_it_is(
    broker: EmbeddedBroker, monkeypatch: pytest.MonkeyPatch
) -> None:
    send(broker, 5, 0)
    driver = Driver(broker, counted)

    def run(*_: object) -> None:
        raise PotokError("something else")

    monkeypatch.setattr(InProcessExecutor, "run", run)
    with pytest.raises(PotokError, match="something else"):
        driver.step()


def test_a_commit_whose_answer_was_lost_is_not_taken_for_a_takeover(
    broker: EmbeddedBroker, monkeypatch: pytest.MonkeyPatch
) -> None:
    send(broker, 5, 0)
    driver = Driver(broker, counted)
    publish = EmbeddedBroker.publish

    def lost(self: EmbeddedBroker, *given: Any, **more: Any) -> None:
        publish(self, *given, **more)
        monkeypatch.setattr(EmbeddedBroker, "publish", publish)
        raise PotokError("the connection is gone")

    monkeypatch.setattr(EmbeddedBroker, "publish", lost)
    end = driver.planner.next()
    run_batch(driver.runner, end)
    assert driver.runner.ledger.entry.offsets == end
    assert broker.get_metadata(metadata_key_of("q", "ledger")) == driver.runner.ledger.entry.to_bytes()


def test_a_command_whose_query_was_taken_over_has_an_exit_code_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(*_: object) -> None:
        raise QueryTakenOver("q", "process 7 on elsewhere")

    monkeypatch.setattr("potok.cli.log.topics.opened_log", fails)
    found = CliRunner().invoke(app, ["topics", "list"])
    assert found.exit_code == QueryTakenOver.exit_code == 3
    assert "process 7 on elsewhere" in found.output
