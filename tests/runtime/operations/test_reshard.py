"""State rewritten for another number of shards: whatever came before counts as if it had always been so."""

from __future__ import annotations

from typing import Any

import pytest

from operators.core.in_process import InProcess
from potok.dsl.builder import StreamsBuilder
from potok.runtime.operations.cell_swap import next_name
from potok.runtime.operations.reshard import UnplacedTables, reshard
from potok.state.cell import encode_cell
from potok.state.fence import Attempt
from potok.topology.compare import StateDoesNotFit
from potok.topology.nodes.windows import tumbling_ms


def counts(name: str = "n") -> StreamsBuilder:
    builder = StreamsBuilder("q")
    builder.stream("t", value=int).group_by_key().count(name=name)
    return builder


def resharded(driver: InProcess, shards: int) -> None:
    """Stop, rewrite, and start again."""
    driver._prepared.release()
    reshard(driver._topology, driver.broker, shards)
    driver._begin()


def fill(driver: InProcess, keys: int = 50) -> None:
    for number in range(keys):
        driver.send("t", number, f"k{number}", timestamp=number)
    driver.run(20)


@pytest.mark.parametrize(("before", "after"), [(2, 3), (3, 2), (1, 5), (4, 1)])
def test_a_restored_table_is_unchanged_and_can_be_updated(before: int, after: int) -> None:
    with InProcess(counts(), shards=before) as driver:
        fill(driver)
        resharded(driver, after)
        assert driver._prepared.plan.shards == after
        assert driver.table("n").all() == {f"k{number}": 1 for number in range(50)}
        fill(driver)
        assert driver.table("n").all() == {f"k{number}": 2 for number in range(50)}
        assert sum(driver._prepared.state.store(shard).entries("n") for shard in range(after)) == 50


def test_the_old_cells_are_removed_and_the_next_time_has_another_name() -> None:
    with InProcess(counts()) as driver:
        fill(driver)
        first = driver._prepared.state
        resharded(driver, 3)
        second = driver._prepared.state
        resharded(driver, 2)
        names = [first.name, second.name, driver._prepared.state.name]
        assert names == ["q", "q@1", "q@2"]
        queries = driver._prepared.directory.parent
        assert sorted(path.name for path in queries.iterdir() if (path / "state").exists()) == ["q@2"]


def test_nothing_happens_where_the_number_is_the_same() -> None:
    with InProcess(counts()) as driver:
        fill(driver)
        resharded(driver, 2)
        assert driver._prepared.state.name == "q"


def test_void_and_deleted_cells_are_left_behind(monkeypatch: pytest.MonkeyPatch) -> None:
    class Died(Exception):
        pass

    def die(*_: Any, **__: Any) -> None:
        raise Died

    builder = StreamsBuilder("q")
    builder.table("t", name="rows")
    with InProcess(builder) as driver:
        fill(driver)
        driver.send("t", None, "k0", timestamp=100)
        driver.run()
        driver.send("t", 99, "phantom", timestamp=101)
        driver.send("t", 99, "k1", timestamp=101)
        with monkeypatch.context() as patched:
            patched.setattr(driver.broker, "publish", die)
            with pytest.raises(Died):
                driver.run()
        driver._prepared.release()
        reshard(driver._topology, driver.broker, 3)
        driver._begin()
        found = driver.table("rows").all()
        assert len(found) == 49
        assert found["k1"] == 1
        stores = [driver._prepared.state.store(shard) for shard in range(3)]
        assert [table for store in stores for table in store.tables() if "deleted" in table] == []
        driver.run()
        assert driver.table("rows").get("k1") == driver.table("rows").get("phantom") == 99


@pytest.mark.parametrize("failing", ["exchange.before", "exchange.done"])
def test_a_rewrite_that_dies_has_happened_as_a_whole_or_not_at_all(
    failing: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Died(Exception):
        pass

    def die(name: str) -> None:
        if name == failing:
            raise Died

    with InProcess(counts()) as driver:
        fill(driver)
        driver._prepared.release()
        with monkeypatch.context() as patched:
            patched.setattr("potok.runtime.operations.cell_swap.failpoint", die)
            with pytest.raises(Died):
                reshard(driver._topology, driver.broker, 5)
        driver._begin()
        assert driver._prepared.plan.shards == (2 if failing == "exchange.before" else 5)
        fill(driver)
        resharded(driver, 3)
        assert driver.table("n").all() == {f"k{number}": 2 for number in range(50)}
        queries = driver._prepared.directory.parent
        there = sorted(path.name for path in queries.iterdir() if (path / "state").exists())
        assert there == [driver._prepared.state.name]


def test_a_program_that_does_not_fit_the_state_is_refused() -> None:
    with InProcess(counts()) as driver:
        fill(driver)
        driver._prepared.release()
        other = StreamsBuilder("q")
        other.stream("t", value=int).group_by_key().windowed_by(tumbling_ms(10, 0, 20)).count(name="n")
        with pytest.raises(StateDoesNotFit):
            reshard(other.build(), driver.broker, 3)


def test_cells_that_no_step_keeps_are_not_thrown_away_in_silence() -> None:
    with InProcess(counts()) as driver:
        fill(driver)
        attempt = Attempt(1, 3)
        driver._prepared.state.store(0).put_many(attempt, [("other", [(b"a", encode_cell(attempt, b"1", None))])])
        driver._prepared.release()
        with pytest.raises(UnplacedTables, match="other"):
            reshard(driver._topology, driver.broker, 3)


@pytest.mark.parametrize(("name", "following"), [("q", "q@1"), ("q@1", "q@2"), ("q@9", "q@10"), ("shadow-q", "q@1")])
def test_names_of_cells_follow_each_other(name: str, following: str) -> None:
    assert next_name("q", name) == following
