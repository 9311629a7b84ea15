"""Kill a query whose state is in object storage at each durable step, and continue on another machine."""

from __future__ import annotations

import signal
from pathlib import Path

import pytest

from potok.log.embedded.embedded_broker import EmbeddedBroker
from potok.records.log_record import LogRecord
from potok.snapshots.ledger_view import read_entry
from tests.kill import orders_program
from tests.kill.answer import check
from tests.kill.test_kill import RECORDS, run

pytestmark = [pytest.mark.kill, pytest.mark.timeout(600)]

FAILPOINTS = [
    "epoch.started",
    "objects.delta.before:3",
    "objects.delta.written",
    "state.written:3",
    "ledger.before:2",
    "ledger.committed",
    "objects.snapshot.written",
    "objects.collected",
    "objects.delta.written:4",
]


@pytest.mark.parametrize(
    ("kind", "failpoints"), [("directory", FAILPOINTS), ("s3", ["objects.delta.written:4", "objects.collected"])]
)
def test_a_query_killed_at_each_durable_step_continues_on_another_machine(
    kind: str, failpoints: list[str], request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("POTOK_STATE", request.getfixturevalue(f"{kind}_url"))
    data = tmp_path / "data"
    broker = EmbeddedBroker.shared(data)
    broker.create_topic("orders", 2)
    broker.append("orders", [LogRecord(*orders_program.record(number)) for number in range(RECORDS)])
    for number, failpoint in enumerate(failpoints):
        monkeypatch.setenv("POTOK_CACHE_DIR", str(tmp_path / f"machine{number % 2}"))
        assert run(f"file:{data}", failpoint, program="object_state_without_spark") == -signal.SIGKILL, failpoint
        check(broker)
    assert run(f"file:{data}", program="object_state_without_spark") == 0
    check(broker)
    entry = read_entry(broker, "orders-query")
    assert entry is not None
    assert sum(entry.offsets.topics["orders"].values()) == RECORDS
    assert sorted(entry.positions) == [0, 1]
