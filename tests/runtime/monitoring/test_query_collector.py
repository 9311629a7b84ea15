"""Metrics of queries are what their batches have committed, and how far that is behind the topics."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from potok import StreamsBuilder, hours, tumbling
from potok.clock import now_ms
from potok.errors import LogError, SinkError
from potok.monitoring.exposition import expose
from potok.monitoring.scrape import Scrape
from potok.records.log_record import LogRecord
from potok.runtime.monitoring.query_collector import QueryCollector
from potok.runtime.monitoring.readings import group_readings, stored_readings
from runtime.queries.by_hand import FIRST, ByHand, counting, send


@pytest.fixture
def collector(shared: ByHand) -> QueryCollector:
    return QueryCollector(shared.broker, lambda: group_readings(shared))


def series(collector: QueryCollector) -> dict[str, float]:
    scrape = Scrape()
    collector(scrape)
    lines = expose(scrape).body.decode().splitlines()
    return {line.rpartition(" ")[0]: float(line.rpartition(" ")[2]) for line in lines if not line.startswith("#")}


def test_counters_count_what_was_committed(shared: ByHand, collector: QueryCollector) -> None:
    send(shared.broker, 100)
    shared.add(counting("one"))
    shared.settle()
    found = series(collector)
    assert found['potok_records_total{query="one",direction="in"}'] == 100
    assert found['potok_batches_total{query="one"}'] == 1
    assert found['potok_state_keys{query="one",table="counts"}'] == 5
    assert found['potok_batch_duration_seconds_count{query="one",phase="total"}'] == 1


def test_an_attempt_that_fails_counts_nothing(shared: ByHand, collector: QueryCollector) -> None:
    send(shared.broker, 100)
    shared.add(counting("one"))
    shared.settle()
    send(shared.broker, 50)
    shared.executor.dies_with = {"one"}
    shared.step()
    failed = series(collector)
    assert failed['potok_records_total{query="one",direction="in"}'] == 100
    assert failed['potok_query_state{query="one",state="failed"}'] == 1
    assert failed['potok_batch_duration_seconds_count{query="one",phase="total"}'] == 1
    shared.executor.dies_with = set()
    shared.retry("one")
    shared.settle()
    found = series(collector)
    assert found['potok_records_total{query="one",direction="in"}'] == 150
    assert found['potok_batches_total{query="one"}'] == 2
    assert found['potok_restarts_total{query="one",cause="query"}'] == 1


def test_a_scrape_in_the_middle_of_an_attempt_sees_the_last_commit(
    shared: ByHand, collector: QueryCollector, monkeypatch: pytest.MonkeyPatch
) -> None:
    send(shared.broker, 100)
    shared.add(counting("one"))
    seen: list[dict[str, float]] = []
    publish = shared.broker.publish

    def scraped(*args: object, **named: object) -> None:
        # The totals of the attempt are complete here, and nothing is committed.
        seen.append(series(collector))
        publish(*args, **named)

    monkeypatch.setattr(shared.broker, "publish", scraped)
    shared.settle()
    assert seen[0]['potok_records_total{query="one",direction="in"}'] == 0
    assert series(collector)['potok_records_total{query="one",direction="in"}'] == 100


def test_totals_continue_after_a_restart(tmp_path: Path) -> None:
    first = ByHand(tmp_path)
    send(first.broker, 100)
    first.add(counting("one"))
    first.settle()
    first.stop()
    second = ByHand(tmp_path, broker=first.broker)
    second.add(counting("one"))
    found = series(QueryCollector(second.broker, lambda: group_readings(second)))
    assert found['potok_records_total{query="one",direction="in"}'] == 100
    assert found['potok_batches_total{query="one"}'] == 1
    second.stop()
    second.broker.close()


def test_lag_is_counted_to_the_current_ends_also_while_no_batch_runs(shared: ByHand, collector: QueryCollector) -> None:
    send(shared.broker, 10)
    shared.add(counting("one"))
    shared.settle()
    assert series(collector)['potok_source_lag_seconds{query="one",topic="orders"}'] == 0
    send(shared.broker, 30)
    found = series(collector)
    assert found['potok_source_lag_records{query="one",topic="orders"}'] == 30
    lags = [found[f'kafka_consumergroup_group_lag{{group="one",topic="orders",partition="{n}"}}'] for n in (0, 1)]
    assert sum(lags) == 30


def test_the_age_of_a_record_from_before_the_first_scrape_is_read_from_the_record(
    shared: ByHand, collector: QueryCollector
) -> None:
    send(shared.broker, 10)
    shared.add(counting("one"))
    first = series(collector)
    assert 'potok_source_lag_seconds{query="one",topic="orders"}' not in first
    collector.lag_times.settle()
    second = series(collector)
    assert 0 <= second['potok_source_lag_seconds{query="one",topic="orders"}'] < 60
    assert second['potok_table_freshness_seconds{query="one",table="counts"}'] == pytest.approx(
        second['potok_source_lag_seconds{query="one",topic="orders"}']
    )


def test_a_log_that_does_not_answer_leaves_out_the_lag_and_nothing_else(
    shared: ByHand, collector: QueryCollector, monkeypatch: pytest.MonkeyPatch
) -> None:
    send(shared.broker, 10)
    shared.add(counting("one"))
    shared.settle()

    def away(topics: object) -> None:
        error = LogError("the log does not answer")
        error.passing = True
        raise error

    monkeypatch.setattr(shared.broker, "end_offsets_of", away)
    found = series(collector)
    assert found['potok_records_total{query="one",direction="in"}'] == 10
    assert not [name for name in found if "lag" in name or "freshness" in name]


def test_dead_letters_and_late_records_are_counted_by_reason_and_step(
    shared: ByHand, collector: QueryCollector
) -> None:
    builder = StreamsBuilder("one")
    orders = builder.stream("orders", value="user string, amount bigint")
    orders.group_by("user").windowed_by(tumbling(hours(1), grace=0)).count(name="hourly")
    hour = 3_600_000
    shared.broker.create_topic("orders", 1)
    shared.add(builder)
    for records in ([(b"{bad", 0)], [(b'{"user": "a", "amount": 1}', 9 * hour)], [(b'{"user": "a", "amount": 1}', 0)]):
        shared.broker.append("orders", [LogRecord(b"k", value, at) for value, at in records])
        shared.settle()
    found = series(collector)
    assert found['potok_dead_letters_total{query="one",reason="decode"}'] == 1
    assert found['potok_dead_letters_total{query="one",reason="late"}'] == 1
    assert found['potok_dead_letters_total{query="one",reason="no_key"}'] == 0
    assert found['potok_late_records_total{query="one",step="hourly"}'] == 1
    watermark_s = found['potok_watermark_lag_seconds{query="one",step="hourly"}']
    assert watermark_s == pytest.approx(now_ms() / 1000 - 9 * 3600, abs=60)


def test_waits_are_counted_by_what_did_not_respond(shared: ByHand, collector: QueryCollector) -> None:
    send(shared.broker, 10)
    shared.add(counting("one"))
    [query] = shared.members()
    error = SinkError("the sink does not answer")
    error.passing = True
    assert query.wait(error, 60_000)
    found = series(collector)
    assert found['potok_waits_total{query="one",cause="sink"}'] == 1
    assert found['potok_sink_retries_total{query="one"}'] == 1
    assert found['potok_query_state{query="one",state="waiting"}'] == 1


def test_a_query_of_another_process_is_read_from_what_it_stored(shared: ByHand) -> None:
    send(shared.broker, 10)
    shared.add(counting("one"))
    shared.settle()
    send(shared.broker, 5)
    elsewhere = QueryCollector(shared.broker, lambda: stored_readings(shared.broker, ["one", "never"]))
    found = series(elsewhere)
    assert found['potok_records_total{query="one",direction="in"}'] == 10
    assert found['potok_source_lag_records{query="one",topic="orders"}'] == 5
    assert found['potok_query_state{query="one",state="running"}'] == 1
    assert found['potok_query_state{query="never",state="starting"}'] == 1


def test_a_query_that_left_has_no_metrics(shared: ByHand, collector: QueryCollector) -> None:
    send(shared.broker, 10)
    shared.add(counting("one"))
    shared.settle()
    shared.remove("one")
    assert not [name for name in series(collector) if '"one"' in name]


def test_a_table_is_as_fresh_as_the_topics_that_feed_it(shared: ByHand, collector: QueryCollector) -> None:
    builder = StreamsBuilder("two")
    builder.stream("orders", value="user string, amount bigint").group_by("user").count(name="of_orders")
    builder.stream("clicks", value="user string, amount bigint").group_by("user").count(name="of_clicks")
    shared.broker.create_topic("clicks", 1)
    send(shared.broker, 10)
    shared.add(builder)
    shared.settle()
    send(shared.broker, 1, "clicks")
    series(collector)
    collector.lag_times.settle()
    shared.broker.append("clicks", [LogRecord(b"k", json.dumps({"user": "a", "amount": 1}).encode(), 1)])
    found = series(collector)
    assert found['potok_table_freshness_seconds{query="two",table="of_orders"}'] == 0
    assert found['potok_table_freshness_seconds{query="two",table="of_clicks"}'] > 0
    assert FIRST == "orders"


@pytest.fixture
def shared(tmp_path: Path) -> Iterator[ByHand]:
    found = ByHand(tmp_path)
    yield found
    found.stop()
    found.broker.close()
