"""Kill a query whose state is on a server, around each write of it, start it again, and compare with plain Python."""

from __future__ import annotations

import uuid
from pathlib import Path

import pytest

from potok.log.embedded.embedded_broker import EmbeddedBroker
from potok.records.log_record import LogRecord
from potok.snapshots.ledger_view import read_entry
from tests.kill import orders_program
from tests.kill.answer import check
from tests.kill.test_kill import run

pytestmark = [pytest.mark.spark, pytest.mark.kill, pytest.mark.timeout(600)]

RECORDS = 1_500
FAILPOINTS = ["state.written", "ledger.before:2"]


@pytest.mark.parametrize("kind", ["redis", "postgres", "cassandra"])
def test_a_query_killed_around_each_write_of_its_state_ends_with_the_right_answer(
    kind: str, request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("POTOK_STATE", request.getfixturevalue(f"{kind}_url"))
    # All tests share the server, so the query has a name of its own.
    prefix = f"{uuid.uuid4().hex}-"
    broker = EmbeddedBroker.shared(tmp_path)
    broker.create_topic(f"{prefix}orders", 2)
    broker.append(f"{prefix}orders", [LogRecord(*orders_program.record(number)) for number in range(RECORDS)])
    for failpoint in FAILPOINTS:
        assert run(f"file:{tmp_path}", failpoint, prefix) != 0, f"{failpoint} was never reached"
        check(broker, prefix)
    assert run(f"file:{tmp_path}", "", prefix) == 0
    check(broker, prefix)
    entry = read_entry(broker, f"{prefix}orders-query")
    assert entry is not None
    assert sum(entry.offsets.topics[f"{prefix}orders"].values()) == RECORDS
    assert not (tmp_path / "queries" / f"{prefix}orders-query" / "state").exists()
