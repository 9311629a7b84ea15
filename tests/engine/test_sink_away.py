"""A sink that is away for a while during a query, and comes back: nothing is lost, and nothing counts twice."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from kernels.in_process import LocalContext
from potok.dsl.builder import StreamsBuilder
from potok.engine.batch import BatchRunner
from potok.engine.batch_loop import BatchLoop
from potok.engine.planner import Planner
from potok.engine.prepare import prepare
from potok.log.open import open_broker
from potok.records.log_record import LogRecord
from potok.settings import Settings
from potok.views.progress import read_progress
from potok.views.tables import Tables
from sinks.web import Site, web_server

BATCHES, RECORDS = 4, 12
REFUSED = {5: 3, 17: 2, 18: 1, 40: 4}
"""How often which record is refused, before it is taken."""


@pytest.fixture
def site() -> Iterator[Site]:
    with web_server() as found:
        yield found


class Endpoint:
    """Answers 503 to some records, for as often as it was told, and notes those that it took."""

    def __init__(self) -> None:
        self._left, self._guard = dict(REFUSED), threading.Lock()
        self.taken: list[int] = []

    def answer(self, body: Any, _: int) -> int:
        with self._guard:
            if self._left.get(body["n"], 0):
                self._left[body["n"]] -= 1
                return 503
            self.taken.append(body["n"])
            return 200


@pytest.mark.parametrize("brief_ms", [1, 60_000], ids=["tried again by the query", "tried again by the sink"])
def test_an_endpoint_that_answers_503_and_then_200_gets_every_record_once(
    tmp_path: Path, site: Site, monkeypatch: pytest.MonkeyPatch, brief_ms: int
) -> None:
    monkeypatch.setattr("potok.retry.FIRST_S", 0.002)
    monkeypatch.setattr("potok.sinks.http_outlet.BRIEFLY_MS", brief_ms)
    endpoint = Endpoint()
    site.answer = endpoint.answer
    waited_for = run(tmp_path, site.url)

    everything = list(range(BATCHES * RECORDS))
    assert sorted(set(endpoint.taken)) == everything
    assert sorted(body["n"] for body in site.by_key.values()) == everything, (
        "a record has one key, however often it comes"
    )
    if brief_ms == 1:
        assert any("503" in message for message in waited_for)
    else:
        assert (waited_for, sorted(endpoint.taken)) == ([], everything)


def run(tmp_path: Path, url: str) -> list[str]:
    """Count and post records, in batches; returns what the query waited for."""
    broker = open_broker(tmp_path / "log")
    broker.create_topic("numbers", 1)
    builder = StreamsBuilder("posting")
    numbers = builder.stream("numbers", value="n bigint")
    numbers.group_by_key().count(name="counts")
    numbers.to_http(url, concurrency=2)
    prepared = prepare(builder, broker, Settings(shards=2))
    context: Any = LocalContext()
    parts = prepared.plan, prepared.ledger, prepared.directory, prepared.pulse
    runner = BatchRunner(context, broker, *parts, 2, prepared.state)
    planner = Planner(broker, "posting", ["numbers"], {}, 1 << 40, 1 << 40)
    waited_for: list[str] = []
    loop = BatchLoop(
        "posting",
        tmp_path,
        work=lambda _: (runner.run(planner.next()), None)[1],
        close=lambda _: None,
        waiting=lambda error: waited_for.append(error.message) if error is not None else None,
        retry_for_ms=120_000,
    )
    nothing: Any = None
    for batch in range(BATCHES):
        first = batch * RECORDS
        records = [LogRecord(b"k%d" % (n % 3), b'{"n": %d}' % n, n) for n in range(first, first + RECORDS)]
        broker.append("numbers", records, 0)
        loop._on_batch(nothing, batch)
    each = BATCHES * RECORDS // 3
    assert Tables(broker, "posting")["counts"].all() == {f"k{key}": each for key in range(3)}
    progress = read_progress(broker, "posting")
    assert progress is not None
    assert (progress.batch, progress.total_in, progress.dead_letters) == (BATCHES, BATCHES * RECORDS, 0)
    runner.close()
    prepared.release()
    broker.close()
    return waited_for
