"""Tables that are loaded from DataFrames."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import potok
from operators.core.in_process import InProcess
from potok.dsl.builder import StreamsBuilder
from potok.errors import TopologyError
from potok.runtime.operations.table_refresh import TableNotLoadedError
from potok.topology.nodes import TableSource

FIRST = {"id": ["a", "b"], "city": ["Riga", "Oslo"], "rank": [1, 2]}
SECOND = {"id": ["a", "c"], "city": ["Rome", "Bonn"], "rank": [1, 3]}


class Loader:
    """Returns one table after the other."""

    def __init__(self, *frames: Any) -> None:
        self._frames = list(frames)
        self.sessions: list[Any] = []

    def __call__(self, spark: Any) -> Any:
        self.sessions.append(spark)
        frame = self._frames.pop(0)
        if isinstance(frame, Exception):
            raise frame
        return frame


def shop(load: Any, **options: Any) -> StreamsBuilder:
    builder = StreamsBuilder("shop")
    customers = builder.dataframe("customers", load=load, **{"key": "id", **options})
    orders = builder.stream("orders", value="amount double")
    orders.join(customers, lambda order, customer: {"city": customer["city"]}).to("cities")
    return builder


def test_each_refresh_appends_what_has_changed() -> None:
    with InProcess(shop(Loader(*map(pa.table, (FIRST, SECOND, SECOND))))) as driver:
        assert driver.refresh("customers") == 2
        driver.run()
        driver.send("orders", {"amount": 1.0}, "a")
        driver.run()
        assert driver.refresh("customers") == 3
        assert driver.refresh("customers") == 0
        driver.run()
        assert driver.table("customers").all() == {
            "a": {"id": "a", "city": "Rome", "rank": 1},
            "c": {"id": "c", "city": "Bonn", "rank": 3},
        }
        assert [record.value for record in driver.read("cities")] == [{"city": "Riga"}]


@pytest.mark.parametrize("make", [pa.table, pd.DataFrame, pl.DataFrame])
def test_a_declared_row_has_the_fields_of_its_type(make: Any) -> None:
    with InProcess(shop(Loader(make(FIRST)), value="rank bigint, city string")) as driver:
        driver.refresh("customers")
        driver.run()
        assert driver.table("customers").get("b") == {"rank": 2, "city": "Oslo"}


def test_a_restarted_query_compares_with_what_its_topic_holds() -> None:
    with InProcess(shop(Loader(pa.table(FIRST)))) as driver:
        driver.refresh("customers")
        topic = "shop-customers-dataframe"
        assert driver.broker.describe_topic(topic).config.compacted
        with InProcess(shop(Loader(pa.table(FIRST))), directory=driver.broker.directory / "other") as other:
            other.broker.append(topic, next(iter(driver.broker.read(topic, 0, 0, 2))))
            assert other.refresh("customers") == 0


@pytest.mark.parametrize(
    ("frame", "options", "message"),
    [
        (pa.table({"id": ["a", "a"]}), {}, "1 rows repeat a key"),
        (pa.table({"id": ["a", None]}), {}, "1 nulls"),
        (pa.table({"no": ["a"]}), {}, 'no column "id"; it has no'),
        (pa.table({"id": ["a"]}), {"value": "city string"}, 'no column "city"'),
        (pa.table({"id": ["a"], "city": ["x"]}), {"value": "city int"}, "int32"),
        (ValueError("away"), {}, "ValueError: away"),
        (3, {}, "load= returned int"),
    ],
)
def test_a_frame_that_cannot_be_a_table_changes_nothing(frame: Any, options: Any, message: str) -> None:
    with InProcess(shop(Loader(frame), **options)) as driver:
        with pytest.raises(TableNotLoadedError, match=message):
            driver.refresh("customers")
        assert driver.broker.end_offsets("shop-customers-dataframe") == {0: 0}


def test_the_function_is_not_sent_to_the_tasks() -> None:
    builder = shop(Loader())
    (source,) = builder.build().of_type(TableSource)
    import pickle

    assert source.refresh is not None
    assert pickle.loads(pickle.dumps(source.refresh)).load is None


def test_a_wrong_interval_is_an_error() -> None:
    with pytest.raises(TopologyError, match="positive duration"):
        shop(Loader(), refresh="0 s")


def test_a_program_loads_its_tables_with_spark_before_it_starts(spark: Any, tmp_path: Path) -> None:
    broker = potok.open_broker(f"file:{tmp_path}")
    broker.create_topic("orders")
    broker.append("orders", pa.record_batch({"key": [b"b"], "value": [b'{"amount": 1.0}']}))
    builder = shop(lambda session: session.createDataFrame([("b", "Oslo")], "id string, city string"), refresh="1 hour")
    potok.run(builder, broker=f"file:{tmp_path}", until_end=True)
    with potok.open_tables(tmp_path, "shop") as tables:
        assert tables["customers"].get("b") == {"id": "b", "city": "Oslo"}
    assert [row["value"] for batch in broker.read("cities", 0, 0, 1) for row in batch.to_pylist()] == [
        b'{"city":"Oslo"}'
    ]
