from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import DeltaTable

from potok.errors import TopologyError
from potok.sinks.errors import DeliveryFailed, SinkMisfit
from potok.sinks.guarantee import Guarantee
from potok.sinks.lakes.delta import DeltaTarget
from potok.sinks.sink_spec import Batch, Types
from potok.sinks.typed_rows import RowShape
from tests.sinks.lakes.lake import DeltaLake
from tests.sinks.rows import opening, typed
from tests.sinks.tables import ANN, BOB, TYPES


@pytest.fixture
def lake(tmp_path: Path) -> DeltaLake:
    return DeltaLake(tmp_path)


def test_a_commit_has_the_transaction_identifier_of_its_batch(lake: DeltaLake) -> None:
    lake.put([ANN])
    lake.put([BOB], Batch(1, 2))
    table = DeltaTable(lake.uri)
    assert table.transaction_version("potok/q/orders.sink") == 2
    assert table.history(1)[0]["potok"] == "potok/q/orders.sink:2"


@pytest.mark.parametrize("mode", ["append", "upsert"])
def test_a_row_that_violates_a_constraint_is_rejected(lake: DeltaLake, mode: str) -> None:
    lake.mode = mode  # type: ignore[assignment]
    lake.put([ANN])
    DeltaTable(lake.uri).alter.add_constraint({"positive": "amount > 0"})
    refused = ("x", {"name": "x", "amount": -1})
    failures = lake.put([BOB, refused, BOB], Batch(1, 2))
    assert failures == {1: "it violates a constraint: amount > 0"}
    assert lake.put([BOB, refused, BOB], Batch(2, 2)) == failures
    assert [row[-1] for row in lake.rows()] == [1, 2] if mode == "upsert" else [1, 2, 2]


def test_a_deletion_violates_no_constraint(lake: DeltaLake) -> None:
    lake.mode = "upsert"
    lake.put([ANN, BOB])
    DeltaTable(lake.uri).alter.add_constraint({"named": "name IS NOT NULL"})
    assert lake.put([("a", None)], Batch(1, 2)) == {}
    assert lake.rows() == [("b", "bob", 2)]


def test_rows_of_a_dead_attempt_that_were_compacted_stop_the_query(lake: DeltaLake) -> None:
    lake.put([ANN])
    lake.put([BOB], Batch(1, 2))
    DeltaTable(lake.uri).optimize.compact()
    lake.put([BOB], Batch(2, 2))
    with pytest.raises(DeliveryFailed, match="left other rows, which cannot be removed: the table was compacted"):
        lake.put([ANN], Batch(3, 2))


def test_a_process_that_dies_between_removing_rows_and_writing_them_again_leaves_nothing_undone(
    lake: DeltaLake, monkeypatch: pytest.MonkeyPatch
) -> None:
    lake.put([ANN])
    lake.put([BOB], Batch(1, 2))
    with monkeypatch.context() as dying:
        dying.setattr("potok.sinks.lakes.delta_writer.write_deltalake", lambda *_, **__: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            lake.put([ANN, ANN], Batch(2, 2))
    assert lake.rows() == [("ann", 1)]
    lake.put([ANN, ANN], Batch(3, 2))
    assert lake.rows() == [("ann", 1)] * 3


def test_storage_that_does_not_answer_is_retried_and_named(tmp_path: Path) -> None:
    options = {"AWS_ENDPOINT_URL": "http://127.0.0.1:9", "AWS_ALLOW_HTTP": "true", "AWS_REGION": "eu-west-1"}
    options |= {"AWS_ACCESS_KEY_ID": "me", "AWS_SECRET_ACCESS_KEY": "top-secret-key", "max_retries": "0"}
    target = DeltaTarget("s3://lake/orders", RowShape("append"), (), tuple(options.items()), 100)
    with pytest.raises(DeliveryFailed, match="s3://lake/orders") as caught:
        target.open(opening(TYPES))
    assert "\x1b" not in str(caught.value)
    assert "top-secret-key" not in str(caught.value) + repr(target)


def test_a_directory_that_cannot_be_made_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    target = DeltaTarget(str(tmp_path / "file" / "orders"), RowShape("append"), (), (), 100)
    with pytest.raises(SinkMisfit, match="Could not create local directory"):
        target.open(opening(TYPES))


def test_a_time_of_day_is_refused(lake: DeltaLake) -> None:
    times = Types(None, pa.struct([("at", pa.time64("us"))]))
    with pytest.raises(TopologyError, match='"at" is a time of day, which Delta does not have'):
        lake.target().check(times, Guarantee.EXACTLY_ONCE)


def test_names_of_columns_may_be_words_of_sql_and_have_blanks(lake: DeltaLake) -> None:
    lake.mode, lake.types = "upsert", Types(typed("string"), pa.struct([("Select x", pa.int64()), ("a`b", pa.int64())]))
    lake.put([("k", {"Select x": 1, "a`b": 2})])
    lake.put([("k", {"Select x": 3, "a`b": 4})], Batch(1, 2))
    assert lake.rows("key") == [("k", 3, 4)]
