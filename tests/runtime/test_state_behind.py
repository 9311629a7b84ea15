"""A query does not go on with state that lacks what a committed batch wrote."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from operators.core.in_process import InProcess
from potok import StreamsBuilder
from potok.runtime.operations import reset_offsets
from potok.state.store import StateBehind


def counting() -> StreamsBuilder:
    builder = StreamsBuilder("shop")
    builder.stream("orders").group_by_key().count(name="counts")
    return builder


def driver(path: Path, *, shards: int = 2) -> InProcess:
    return InProcess(counting(), directory=path, shards=shards)


def sell(shop: InProcess, *keys: str) -> None:
    for key in keys:
        shop.send("orders", {}, key)
    shop.run()


@pytest.mark.parametrize("shard", [0, 1])
def test_a_shard_that_is_gone_stops_the_query(tmp_path: Path, shard: int) -> None:
    with driver(tmp_path) as shop:
        sell(shop, "a", "b", "c")
    shutil.rmtree(tmp_path / "queries" / "shop" / "state" / str(shard))
    with driver(tmp_path) as shop, pytest.raises(StateBehind, match=r"is missing, but batch 1") as caught:
        sell(shop, "a")
    assert "potok run PROGRAM --shadow" in caught.value.hint


def test_an_older_copy_of_a_shard_stops_the_query(tmp_path: Path) -> None:
    state = tmp_path / "queries" / "shop" / "state"
    with driver(tmp_path) as shop:
        sell(shop, "a", "b")
    shutil.copytree(state, tmp_path / "older")
    with driver(tmp_path) as shop:
        sell(shop, "a")
        sell(shop, "a")
        assert shop.table("counts").get("a") == 3
    shutil.rmtree(state)
    shutil.copytree(tmp_path / "older", state)
    with driver(tmp_path) as shop, pytest.raises(StateBehind, match=r"ends with batch 1, but batch 3"):
        sell(shop, "a")


def test_state_that_was_dropped_on_purpose_is_rebuilt(tmp_path: Path) -> None:
    with driver(tmp_path) as shop:
        sell(shop, "a", "b", "a")
    with driver(tmp_path) as shop:
        shop._prepared.release()
        reset_offsets.reset(shop.broker, "shop", lambda: {"orders": {0: 0}}, drop_state=True, keep_state=False)
        shop.restart()
        shop.run()
        assert shop.table("counts").all() == {"a": 2, "b": 1}


def test_a_query_that_had_no_state_may_start_to_keep_some(tmp_path: Path) -> None:
    builder = StreamsBuilder("shop")
    builder.stream("orders").to("copy")
    with InProcess(builder, directory=tmp_path) as shop:
        sell(shop, "a", "b")
        shop.replace(counting())
        sell(shop, "a")
        assert shop.table("counts").all() == {"a": 1}
