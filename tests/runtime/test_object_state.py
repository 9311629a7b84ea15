"""Queries whose cells are in object storage: what other machines find there."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from potok import StreamsBuilder, backup, open_broker, reshard, restore, seconds, tumbling
from potok.snapshots.progress import read_progress
from potok.snapshots.state_location import state_of
from potok.snapshots.tables import open_tables
from potok.state.objects import object_store
from potok.state.verify import verify
from potok.testing import TestDriver


def program() -> StreamsBuilder:
    builder = StreamsBuilder("orders")
    orders = builder.stream("orders", value=float).group_by_key()
    orders.sum(name="totals")
    orders.windowed_by(tumbling(seconds(10))).count(name="counts")
    return builder


@pytest.fixture(params=["directory_url", "s3_url"])
def url(request: pytest.FixtureRequest, cache: Path) -> str:
    return str(request.getfixturevalue(request.param))


def send(driver: TestDriver, first: int, last: int) -> None:
    for number in range(first, last):
        driver.send("orders", float(number), f"user{number % 7}", timestamp=number * 1_000)
    driver.run()


def expected(last: int) -> dict[str, float]:
    totals: dict[str, float] = {}
    for number in range(last):
        totals[f"user{number % 7}"] = totals.get(f"user{number % 7}", 0.0) + number
    return totals


def test_another_machine_restores_the_shards_and_resumes(url: str, tmp_path: Path, cache: Path) -> None:
    with TestDriver(program(), directory=tmp_path / "data", shards=2, state=url) as driver:
        send(driver, 0, 50)
        shutil.rmtree(cache)
        send(driver, 50, 60)
        assert driver.table("totals").all() == expected(60)
    shutil.rmtree(cache)
    with TestDriver(program(), directory=tmp_path / "data", state=url) as driver:
        assert driver.table("totals").all() == expected(60)
        send(driver, 60, 70)
        assert driver.table("totals").all() == expected(70)
    shutil.rmtree(cache)
    with open_tables(tmp_path / "data", "orders") as tables:
        assert dict(tables["totals"].all()) == expected(70)


def test_a_reader_on_another_machine_follows_a_running_query(
    url: str, tmp_path: Path, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(object_store, "MOST_DELTAS", 3)
    with TestDriver(program(), directory=tmp_path / "data", shards=2, state=url) as driver:
        for first in range(0, 100, 10):
            send(driver, first, first + 10)
            with monkeypatch.context() as elsewhere, open_tables(tmp_path / "data", "orders") as tables:
                elsewhere.setenv("POTOK_CACHE_DIR", str(tmp_path / "reader"))
                assert dict(tables["totals"].all()) == expected(first + 10)
        shard = next((tmp_path / "reader").rglob("0"))
        assert len([path for path in shard.iterdir() if path.is_dir()]) == 1


def test_a_machine_that_has_the_last_version_sends_one_request_per_changed_shard(url: str, tmp_path: Path) -> None:
    with TestDriver(program(), directory=tmp_path / "data", shards=2, state=url) as driver:
        send(driver, 0, 50)
        before = requests_of(driver)
        send(driver, 50, 60)
        after = requests_of(driver)
    assert after["puts"] - before["puts"] == 2
    assert [after.get(kind, 0) - before.get(kind, 0) for kind in ("gets", "lists", "deletes")] == [0, 0, 0]
    assert after["bytes_out"] > before["bytes_out"] > 0


def requests_of(driver: TestDriver) -> dict[str, int]:
    progress = read_progress(driver.broker, "orders")
    assert progress is not None
    return progress.object_requests


def test_backup_restore_reshard_and_verify_work(url: str, tmp_path: Path, cache: Path) -> None:
    with TestDriver(program(), directory=tmp_path / "data", shards=2, state=url) as driver:
        send(driver, 0, 50)
        backup(driver.broker, "orders", tmp_path / "backup")
        send(driver, 50, 60)
    assert reshard(program().build(), open_broker(tmp_path / "data"), 3) == 2
    with TestDriver(program(), directory=tmp_path / "data") as driver:
        assert driver.table("totals").all() == expected(60)
        send(driver, 60, 70)
    restore(open_broker(tmp_path / "data"), tmp_path / "backup", force=True)
    shutil.rmtree(cache)
    location = state_of(open_broker(tmp_path / "data"), "orders")
    assert str(location.where) == url
    found = verify(location, 2)
    assert found.sound and found.cells > 0
    with TestDriver(program(), directory=tmp_path / "data") as driver:
        assert driver.table("totals").all() == expected(50)
        driver.run()
        assert driver.table("totals").all() == expected(70)


def test_verify_reads_the_objects_and_not_the_copy_of_this_machine(tmp_path: Path, cache: Path) -> None:
    shared = tmp_path / "shared"
    with TestDriver(program(), directory=tmp_path / "data", shards=2, state=f"object+file://{shared}") as driver:
        send(driver, 0, 50)
        location = state_of(driver.broker, "orders")
        assert verify(location, 2).sound
        delta = next(shared.rglob("delta/*"))
        data = bytearray(delta.read_bytes())
        data[-40] ^= 0xFF
        delta.write_bytes(data)
        found = verify(location, 2)
    assert [each.shard for each in found.shards] == [int(delta.parents[1].name)]
    assert "delta" in found.shards[0].why
