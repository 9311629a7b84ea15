"""Queries whose state is elsewhere: the same tables, the same deaths, and readers that need not be reported."""

from __future__ import annotations

import shutil
import uuid
from pathlib import Path
from typing import Any

import pytest

from operators.core.in_process import InProcess
from potok.dsl.builder import StreamsBuilder
from potok.snapshots.state_location import StateIsElsewhere
from potok.snapshots.tables import Tables
from potok.state.entry import metadata_key_of
from potok.topology.nodes.windows import tumbling_ms


@pytest.fixture(params=["directory", "redis", "postgres", "cassandra", "objects", "s3"])
def state(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> str:
    if request.param == "directory":
        return f"file:{tmp_path_factory.mktemp('elsewhere')}"
    if request.param in ("objects", "s3"):
        request.getfixturevalue("cache")
    if request.param == "objects":
        return f"object+file://{tmp_path_factory.mktemp('shared')}"
    url: str = request.getfixturevalue(f"{request.param}_url")
    return url


@pytest.fixture
def name() -> str:
    """All tests share the servers, so each has a query of its own."""
    return f"q-{uuid.uuid4().hex}"


def tables(name: str) -> StreamsBuilder:
    builder = StreamsBuilder(name)
    stream = builder.stream("t", value=int)
    stream.group_by_key().count(name="n")
    stream.group_by_key().collect_list(name="all")
    stream.group_by_key().windowed_by(tumbling_ms(10, 0, 20)).count(name="w")
    stream.to_table(name="last").filter(lambda v: v > 0, name="kept")
    return builder


def feed(driver: InProcess) -> None:
    for at, key in enumerate("abcabcdda"):
        driver.send("t", at, key, timestamp=at * 7)


def test_a_query_keeps_the_same_tables_wherever_its_state_is(state: str, name: str) -> None:
    with InProcess(tables(name), state=state) as there, InProcess(tables(name)) as other:
        for driver in (there, other):
            feed(driver)
            driver.run(2)
        assert there.tables.snapshot() == other.tables.snapshot()
        assert there.table("n").get("a") == 3
        assert there.table("last").range("b", "d") == other.table("last").range("b", "d")
        assert not (there._prepared.directory / "state").exists()


def test_nothing_that_matters_is_on_the_disk_of_the_driver(state: str, name: str) -> None:
    with InProcess(tables(name), state=state) as driver:
        feed(driver)
        driver.run(4)
        before = driver.tables.snapshot()
        shutil.rmtree(driver._prepared.directory, ignore_errors=True)
        driver.restart()
        assert driver.tables.snapshot() == before
        driver.send("t", 1, "a", timestamp=100)
        driver.run()
        assert driver.table("n").get("a") == 4


def test_readers_find_the_state_by_themselves(state: str, name: str) -> None:
    with InProcess(tables(name), state=state) as driver:
        feed(driver)
        driver.run()
        assert driver.broker.get_metadata(metadata_key_of(name, "state")) == state.encode()
        assert Tables(driver.broker, name)["n"].all() == {"a": 3, "b": 2, "c": 2, "d": 2}


def test_a_batch_that_died_is_done_again_as_if_it_had_never_been(
    state: str, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Died(Exception):
        pass

    def die(*_: Any, **__: Any) -> None:
        raise Died

    with InProcess(tables(name), state=state) as driver, InProcess(tables(name)) as undisturbed:
        for target in (driver, undisturbed):
            target.send("t", 1, "a", timestamp=1)
            target.run()
            feed(target)
        with monkeypatch.context() as patched:
            patched.setattr(driver.broker, "publish", die)
            with pytest.raises(Died):
                driver.run()
        assert driver.table("n").all() == {"a": 1}
        driver.restart()
        driver.run()
        undisturbed.run()
        assert driver.tables.snapshot() == undisturbed.tables.snapshot()


def test_a_step_that_is_gone_leaves_no_cells(state: str, name: str) -> None:
    with InProcess(tables(name), state=state, shards=1) as driver:
        feed(driver)
        driver.run()
        store = driver._prepared.state.store(0)
        assert store.entries("all") == 4
        builder = StreamsBuilder(name)
        builder.stream("t", value=int).group_by_key().count(name="n")
        driver.replace(builder)
        assert driver._prepared.state.store(0).entries("all") == 0
        assert driver.table("n").get("a") == 3


def test_state_is_not_looked_for_at_another_location(state: str, name: str, tmp_path: Path) -> None:
    with InProcess(tables(name), directory=tmp_path, state=state) as driver:
        feed(driver)
        driver.run()
    with pytest.raises(StateIsElsewhere, match=name) as caught:
        InProcess(tables(name), directory=tmp_path, state=f"file:{tmp_path}/other")
    assert "potok state restore" in caught.value.hint
    with InProcess(tables(name), directory=tmp_path) as driver:
        assert driver.table("n").get("a") == 3
