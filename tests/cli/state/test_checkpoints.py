from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from operators.core.in_process import InProcess
from potok import StreamsBuilder, tumbling
from potok.log.embedded.embedded_broker import EmbeddedBroker
from potok.runtime.queries.lock import QueryLock


class Crash(BaseException):
    """The process dies here."""


def crash(*_: Any, **__: Any) -> None:
    raise Crash


def shop() -> StreamsBuilder:
    builder = StreamsBuilder("shop")
    orders = builder.stream("orders")
    orders.group_by_key().windowed_by(tumbling("10 s")).count(name="counts")
    # A sink outside the log gets the same batch again after a crash, so where it ends is in the ledger.
    orders.to_callable(lambda records: None, name="outside", guarantee="at_least_once")
    return builder


@pytest.fixture
def data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A query that committed two batches, died in the third, and was started again and killed."""
    directory = tmp_path / "data"
    with InProcess(shop(), directory=directory, partitions={"orders": 2}) as driver:
        for second in (1, 12, 25):
            driver.send("orders", second, key="a", timestamp=second * 1000, partition=0)
            if second < 25:
                driver.run(1, more_to_come=True)
        with monkeypatch.context() as patched:
            patched.setattr(EmbeddedBroker, "publish", crash)
            with pytest.raises(Crash):
                driver.run(1)
        driver.restart()
    return directory


def test_every_query_is_listed_with_its_last_batch(potok, data: Path) -> None:
    (row,) = potok("--broker", str(data), "checkpoints", "list", "--json").objects
    assert (row["query"], row["start"], row["batch"], row["lag"]) == ("shop", 2, 2, 1)
    assert row["pending"] == {"batch": 3, "records": 1}
    heading, line = potok("--broker", str(data), "checkpoints", "list").out.splitlines()
    assert heading.split()[:4] == ["query", "state", "start", "batch"]
    assert line.split()[0] == "shop"
    assert "batch 3, 1 record" in line


def test_a_query_counts_as_running_while_its_lock_is_held(potok, data: Path) -> None:
    def state() -> str:
        (row,) = potok("--broker", str(data), "checkpoints", "list", "--json").objects
        return str(row["state"])

    assert state() == "died"
    lock = QueryLock(data / "queries" / "shop", "shop")
    assert state() == "starting"
    left = (data / "queries" / "shop" / "lock").read_text()
    lock.release()
    # What a killed process leaves behind, after its number has become somebody else's.
    (data / "queries" / "shop" / "lock").write_text(left)
    assert state() == "died"


def test_one_is_shown_with_all_that_the_ledger_says(potok, data: Path) -> None:
    (found,) = potok("--broker", str(data), "checkpoints", "show", "shop", "--json").objects
    assert found["void"] == [{"start": 1, "after_batch": 2}]
    assert (found["ended_in_order"], found["shards"]) == (False, 2)
    assert [(row["partition"], row["offset"], row["end_offset"]) for row in found["offsets"]] == [(0, 2, 3), (1, 0, 0)]
    assert found["offsets"][0]["stream_time_ms"] == 12_000
    assert found["tables"] == [{"table": "counts", "keys": 2}]
    assert found["watermarks"][0]["step"] == "counts"
    assert found["state_in"] == f"file:{data}"
    assert len(found["shard_bytes"]) == 2
    assert 0 < found["state_bytes"] == sum(found["shard_bytes"])


def test_the_text_says_what_never_counted_and_what_comes_again(potok, data: Path) -> None:
    result = potok("--broker", str(data), "checkpoints", "show")
    assert "1970-01-01 00:00:12" in result.out
    assert "not started" in result.out
    assert "its writes after batch 2 have no effect" in result.err
    assert "batch 3 is pending" in result.err


def test_a_committed_batch_is_not_pending(potok, data: Path) -> None:
    with InProcess(shop(), directory=data) as driver:
        driver.run()
    (found,) = potok("--broker", str(data), "checkpoints", "show", "shop", "--json").objects
    assert found["pending"] is None
    assert found["lag"] == 0


def test_a_query_that_never_ran_is_named(potok, data: Path) -> None:
    result = potok("--broker", str(data), "checkpoints", "show", "bank")
    assert result.code == 1
    assert 'there is no query "bank"' in result.err
