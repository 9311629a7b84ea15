"""Read records again: replays next to a query, other offsets, and shadows that take a query's place."""

from __future__ import annotations

from pathlib import Path

import pytest

import potok
from operators.core.in_process import InProcess
from potok import StreamsBuilder
from potok.log.embedded.embedded_broker import EmbeddedBroker
from potok.log.errors import FellBehindError
from potok.records.log_record import LogRecord
from potok.runtime.operations import reset_offsets
from potok.runtime.operations.replay import NothingToReplay, ReplayExists, start_replay
from potok.runtime.operations.shadow import catch_up, shadow_of, start_shadow, swap
from potok.runtime.queries.directory import query_directory
from potok.runtime.queries.lock import QueryLock
from potok.runtime.queries.prepare import prepare
from potok.settings import Settings
from potok.snapshots.ledger_view import read_entry
from potok.snapshots.tables import Tables
from potok.spark.spark_executor import start_spark
from potok.testing.outputs import read_outputs

pytestmark = [pytest.mark.usefixtures("spark"), pytest.mark.timeout(300)]


def counting(times: int = 1) -> StreamsBuilder:
    """How often each word came, so many times over: a program, and a changed one."""
    builder = StreamsBuilder("words")
    words = builder.stream("texts", value=str).group_by(lambda v: v)
    words.aggregate(initializer=0, aggregator=lambda k, v, n: n + times, name="counts").to_stream().to("changes")
    return builder


def written(path: Path, *words: str, first_ms: int = 0) -> EmbeddedBroker:
    """Each word a second after the one before."""
    broker = EmbeddedBroker.shared(path)
    broker.create_topic("texts", 1, exist_ok=True)
    records = [LogRecord(None, word.encode(), first_ms + 1_000 * number) for number, word in enumerate(words)]
    broker.append("texts", records)
    return broker


def counts(broker: EmbeddedBroker, query: str) -> dict[str, int]:
    return dict(Tables(broker, query)["counts"].all())


def test_a_replay_writes_to_other_topics_and_tables_and_does_not_change_the_query(tmp_path: Path) -> None:
    broker = written(tmp_path, "a", "b", "a", "b", "b")
    potok.run(counting(), broker=tmp_path, until_end=True)
    standing = read_entry(broker, "words")
    settings = Settings(broker=str(tmp_path))

    start_replay(counting(10).build(), broker, 1_000, 4_000, "again-", settings, start_spark).wait()

    assert counts(broker, "again-words") == {"a": 10, "b": 20}
    assert {record.key: record.value for record in read_outputs(broker, "again-changes")} == {"a": 10, "b": 20}
    assert counts(broker, "words") == {"a": 2, "b": 3}
    assert read_entry(broker, "words") == standing
    with pytest.raises(ReplayExists, match="again-words"):
        start_replay(counting().build(), broker, 0, 4_000, "again-", settings, start_spark)
    with pytest.raises(NothingToReplay):
        start_replay(counting().build(), broker, 4_000, 4_000, "more-", settings, start_spark)


def test_offsets_are_reset_with_tables_rebuilt_or_kept(tmp_path: Path) -> None:
    broker = written(tmp_path, "a", "b", "a")
    potok.run(counting(), broker=tmp_path, until_end=True)
    moves = reset_offsets.plan_moves(broker, "words", {"texts": {0: 1}})
    assert [(move.before, move.after) for move in moves] == [(3, 1)]

    with pytest.raises(reset_offsets.StateInTheWay, match="counts"):
        reset_offsets.reset(broker, "words", lambda: {"texts": {0: 1}}, drop_state=False, keep_state=False)
    done = reset_offsets.reset(broker, "words", lambda: {"texts": {0: 1}}, drop_state=True, keep_state=False)
    assert done == moves
    potok.run(counting(), broker=tmp_path, until_end=True)
    assert counts(broker, "words") == {"b": 1, "a": 1}

    reset_offsets.reset(broker, "words", lambda: {"texts": {0: 0}}, drop_state=False, keep_state=True)
    potok.run(counting(), broker=tmp_path, until_end=True)
    assert counts(broker, "words") == {"b": 2, "a": 3}

    with pytest.raises(reset_offsets.OutsideTheLog, match="no offset 9"):
        reset_offsets.plan_moves(broker, "words", {"texts": {0: 9}})


def test_what_a_batch_that_died_has_written_counts_for_nothing_behind_other_offsets(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    class Died(Exception):
        pass

    def die(*_: object, **__: object) -> None:
        raise Died

    with InProcess(counting()) as driver:
        driver.send("texts", b"a")
        driver.run()
        driver.send("texts", b"phantom")
        with monkeypatch.context() as patched:
            patched.setattr(driver.broker, "publish", die)
            with pytest.raises(Died):
                driver.run()
        driver._prepared.release()
        reset_offsets.reset(driver.broker, "words", lambda: {"texts": {0: 2}}, drop_state=False, keep_state=True)
        assert driver.table("counts").all() == {"a": 1}
        driver._begin()
        driver.send("texts", b"b")
        driver.run()
        assert driver.table("counts").all() == {"a": 1, "b": 1}


def test_a_reset_is_planned_while_the_query_cannot_start() -> None:
    with InProcess(counting()) as driver:
        driver.send("texts", b"a")
        driver.run()
        driver._prepared.release()
        asked: list[bool] = []

        def wanted() -> dict[str, dict[int, int]]:
            with pytest.raises(potok.PotokError, match="is already running"):
                driver._begin()
            asked.append(True)
            return {"texts": {0: 0}}

        (move,) = reset_offsets.reset(driver.broker, "words", wanted, drop_state=True, keep_state=False)
        assert asked == [True]
        assert (move.before, move.after) == (1, 0)


def test_a_query_that_is_forgotten_starts_over(tmp_path: Path) -> None:
    broker = written(tmp_path, "a", "b", "a")
    potok.run(counting(), broker=tmp_path, until_end=True)
    reset_offsets.forget(broker, "words")
    assert read_entry(broker, "words") is None
    assert broker.list_metadata("query/words/") == {}
    potok.run(counting(), broker=tmp_path, until_end=True)
    assert counts(broker, "words") == {"a": 2, "b": 1}


def test_a_running_query_cannot_be_repaired(tmp_path: Path) -> None:
    broker = written(tmp_path, "a")
    potok.run(counting(), broker=tmp_path, until_end=True)
    lock = QueryLock(query_directory(broker, "words"), "words")
    try:
        with pytest.raises(potok.PotokError, match="is already running"):
            reset_offsets.forget(broker, "words")
    finally:
        lock.release()


def test_a_promoted_shadow_resumes_at_the_offsets_of_the_query(tmp_path: Path) -> None:
    broker = written(tmp_path, "a", "b", "a")
    settings = Settings(broker=str(tmp_path))
    potok.run(counting(), broker=tmp_path, until_end=True)
    written(tmp_path, "b", "b", first_ms=10_000)

    with start_shadow(counting(100).build(), broker, settings, start_spark) as building:
        while building.offsets.topics.get("texts", {}).get(0, 0) < 3:
            assert not building.wait(0.05)
        assert counts(broker, "words") == {"a": 2, "b": 1}, "the old tables are served meanwhile"
    shadow = shadow_of(counting().build()).name
    assert counts(broker, shadow) == {"a": 200, "b": 100}, "it does not pass the query"

    potok.run(counting(), broker=tmp_path, until_end=True)
    catch_up(counting(100).build(), broker, settings, start_spark).wait()
    assert swap(broker, "words") == "words"
    assert counts(broker, "words") == {"a": 200, "b": 300}
    assert read_entry(broker, shadow) is None

    written(tmp_path, "a", first_ms=20_000)
    potok.run(counting(100), broker=tmp_path, until_end=True)
    assert counts(broker, "words") == {"a": 300, "b": 300}
    assert [record.value for record in read_outputs(broker, "changes")][-1] == 300

    start_shadow(counting().build(), broker, settings, start_spark).stop()
    catch_up(counting().build(), broker, settings, start_spark).wait()
    assert swap(broker, "words") == f"{shadow}.1", "a second shadow has cells of its own"
    assert counts(broker, "words") == {"a": 3, "b": 3}


def test_a_query_that_has_fallen_off_the_log_says_so_or_jumps(tmp_path: Path) -> None:
    broker = EmbeddedBroker.shared(tmp_path)
    broker.create_topic("texts", 1, segment_bytes=200, retention_bytes=1)
    potok.run(counting(), broker=tmp_path, until_end=True)
    for number in range(40):
        broker.append("texts", [LogRecord(None, f"word-{number}".encode(), number)])
    broker.set_protected("query/words/", {})
    broker.enforce_retention("texts")
    first = broker.start_offsets("texts")[0]
    assert first > 0
    with pytest.raises(FellBehindError, match=f"{first} records"):
        prepare(counting(), broker, Settings(broker=str(tmp_path)))
    potok.run(counting(), broker=tmp_path, until_end=True, on_lost="jump")
    assert len(counts(broker, "words")) == 40 - first
