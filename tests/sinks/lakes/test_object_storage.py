"""Delta and Iceberg tables in object storage."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

from potok.sinks.errors import DeliveryFailed, SinkTaken
from potok.sinks.lakes.delta import DeltaTarget
from potok.sinks.sink_spec import Batch
from tests.sinks.lakes.lake import DeltaLake, IcebergLake, Lake
from tests.sinks.lakes.s3 import BUCKET
from tests.sinks.rows import opening
from tests.sinks.table_contract import TableContract
from tests.sinks.tables import ANN, BOB, EVE, TYPES


@pytest.fixture(params=[DeltaLake, IcebergLake])
def lake(request: pytest.FixtureRequest, tmp_path: Path, s3_server: str) -> Lake:
    made: Lake = request.param(tmp_path, s3_server)
    return made


class TestLakeInObjectStorage(TableContract):
    @pytest.fixture
    def table(self, lake: Lake) -> Lake:
        return lake


def test_a_batch_that_comes_again_with_other_rows_replaces_what_the_dead_attempt_left(lake: Lake) -> None:
    lake.options = {"partition_by": ("name",)}
    lake.put([ANN])
    lake.put([BOB], Batch(1, 2))
    lake.append(pa.table({"name": ["other"], "amount": [0]}))
    lake.put([EVE, EVE], Batch(2, 2))
    lake.put([EVE, EVE], Batch(3, 2))
    assert lake.rows() == [("other", 0), ("ann", 1), ("eve", 3), ("eve", 3)]


def test_two_processes_that_write_the_same_batch_write_it_once(lake: Lake) -> None:
    """The storage accepts a commit only if no other has its number."""
    before, after = lake.open(1), lake.open(2)
    lake.put([ANN, BOB], Batch(2, 1), after)
    with pytest.raises(SinkTaken):
        lake.put([ANN, BOB], Batch(1, 1), before)
    assert lake.put([ANN, BOB], Batch(2, 1), after) == {}
    assert lake.rows() == [("ann", 1), ("bob", 2)]


def test_a_bucket_that_does_not_exist_is_named_and_secrets_are_not(tmp_path: Path, s3_server: str) -> None:
    lake = DeltaLake(tmp_path, s3_server)
    target = DeltaTarget("s3://nowhere/orders", lake.shape, (), tuple(lake.storage.items()), 100)
    with pytest.raises(DeliveryFailed, match="nowhere") as caught:
        target.open(opening(TYPES))
    assert "not-a-secret" not in str(caught.value) + repr(target)
    assert BUCKET not in str(caught.value)
