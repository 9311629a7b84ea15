"""State copied with its batch and its offsets, and put back: into the same query or another log, into any store."""

from __future__ import annotations

import json
import threading
import uuid
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from operators.core.in_process import InProcess
from potok.dsl.builder import StreamsBuilder
from potok.runtime.operations.backup import BackupExists, QueryHasState, backup, restore
from potok.runtime.queries.lock import QueryAlreadyRuns
from potok.snapshots.tables import NoSuchQuery
from potok.state.backup import MANIFEST, DamagedBackup, Manifest, NoBackup
from potok.topology.nodes.windows import tumbling_ms


@pytest.fixture(params=["lmdb", "redis", "postgres", "cassandra"])
def state(request: pytest.FixtureRequest) -> str:
    """Where the query keeps its state: next to the log, or on a server."""
    url: str = "" if request.param == "lmdb" else request.getfixturevalue(f"{request.param}_url")
    return url


@pytest.fixture
def name() -> str:
    return f"q-{uuid.uuid4().hex}"


def program(name: str) -> StreamsBuilder:
    builder = StreamsBuilder(name)
    stream = builder.stream("t", value=int)
    stream.group_by_key().sum(name="n")
    stream.group_by_key().windowed_by(tumbling_ms(10, 0, 100)).count(name="w")
    return builder


def feed(driver: InProcess, first: int, last: int) -> None:
    for number in range(first, last):
        driver.send("t", number, f"k{number % 7}" * (1 + number % 3 * 200), timestamp=number)
    driver.run(5)


def test_a_restored_query_resumes_at_its_batch(state: str, name: str, tmp_path: Path) -> None:
    with InProcess(program(name), state=state) as driver:
        feed(driver, 0, 20)
        before, offsets = driver.tables.snapshot(), driver._prepared.ledger.entry.offsets
        manifest = backup(driver.broker, name, tmp_path / "copy")
        feed(driver, 20, 40)
        after = driver.tables.snapshot()
        driver._prepared.release()
        assert restore(driver.broker, tmp_path / "copy", force=True) == manifest
        driver._begin()
        assert driver.tables.snapshot() == before
        assert driver._prepared.ledger.entry.offsets == offsets
        driver.run(5)
        assert driver.tables.snapshot() == after


@pytest.mark.parametrize("target", ["", "redis", "postgres", "cassandra"])
def test_a_backup_fits_into_any_store(
    state: str, target: str, name: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    url = request.getfixturevalue(f"{target}_url") if target else f"file:{tmp_path}/elsewhere"
    with InProcess(program(name), state=state) as driver:
        feed(driver, 0, 20)
        before = driver.tables.snapshot()
        backup(driver.broker, name, tmp_path / "copy")
        driver._prepared.release()
        restore(driver.broker, tmp_path / "copy", url, force=True)
        driver._settings = type(driver._settings)(broker=driver._settings.broker)
        driver._begin()
        assert str(driver._prepared.state.where) == url
        assert driver.tables.snapshot() == before
        feed(driver, 20, 30)
        assert driver.table("n").get("k0") == 21


def test_a_backup_of_a_running_query_is_of_one_batch(
    state: str, name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The next batch has written all its cells when the copy is made, and is never committed."""

    class Died(Exception):
        pass

    def die(*_: Any, **__: Any) -> None:
        raise Died

    with InProcess(program(name), state=state) as driver:
        feed(driver, 0, 20)
        before = driver.tables.snapshot()
        driver.send("t", 1000, "k0", timestamp=30)
        driver.send("t", 1000, "phantom", timestamp=30)
        with monkeypatch.context() as patched:
            patched.setattr(driver.broker, "publish", die)
            with pytest.raises(Died):
                driver.run()
        backup(driver.broker, name, tmp_path / "copy")
        driver._prepared.release()
        restore(driver.broker, tmp_path / "copy", force=True)
        assert driver.tables.snapshot() == before
        driver._begin()
        driver.run()
        assert driver.table("n").get("phantom") == 1000
        assert driver.table("n").get("k0") == before["n"]["k0"] + 1000


def test_backups_during_writes_are_consistent(state: str, name: str, tmp_path: Path) -> None:
    """Every record adds one to each of two tables, so a copy of one batch has the same sum in both."""
    builder = StreamsBuilder(name)
    stream = builder.stream("t", value=int)
    stream.group_by_key().count(name="n")
    stream.group_by(lambda k, v: v % 5).count(name="m")
    with InProcess(builder, state=state) as driver:
        feed(driver, 0, 5)
        done = threading.Event()
        copies: list[Path] = []

        def copy() -> None:
            while not done.is_set():
                copies.append(tmp_path / f"copy-{len(copies)}")
                backup(driver.broker, name, copies[-1])

        copier = threading.Thread(target=copy)
        copier.start()
        for number in range(5, 40):
            feed(driver, number, number + 1)
        done.set()
        copier.join()
        driver._prepared.release()
        for path in copies[:: max(len(copies) // 5, 1)]:
            restore(driver.broker, path, force=True)
            sums = [sum(rows.values()) for rows in driver.tables.snapshot().values()]
            assert sums[0] == sums[1] > 0
        driver._begin()


def test_a_backup_is_restored_where_the_query_never_ran(name: str, tmp_path: Path) -> None:
    with InProcess(program(name)) as driver, InProcess(program("other")) as fresh:
        feed(driver, 0, 20)
        manifest = backup(driver.broker, name, tmp_path / "copy")
        restore(fresh.broker, tmp_path / "copy")
        from potok.snapshots.tables import Tables

        assert Tables(fresh.broker, name).snapshot() == driver.tables.snapshot()
        assert manifest.cells > 0


def test_a_running_query_is_not_overwritten(name: str, tmp_path: Path) -> None:
    with InProcess(program(name)) as driver:
        feed(driver, 0, 20)
        backup(driver.broker, name, tmp_path / "copy")
        with pytest.raises(QueryAlreadyRuns):
            restore(driver.broker, tmp_path / "copy", force=True)


def test_state_is_not_overwritten_unless_one_says_so(name: str, tmp_path: Path) -> None:
    with InProcess(program(name)) as driver:
        feed(driver, 0, 20)
        backup(driver.broker, name, tmp_path / "copy")
        driver._prepared.release()
        with pytest.raises(QueryHasState, match=name) as caught:
            restore(driver.broker, tmp_path / "copy")
        assert "--force" in caught.value.hint
        driver._begin()


@pytest.mark.parametrize("failing", ["exchange.before", "exchange.done"])
def test_a_restore_that_dies_has_happened_as_a_whole_or_not_at_all(
    state: str, name: str, failing: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Died(Exception):
        pass

    def die(point: str) -> None:
        if point == failing:
            raise Died

    with InProcess(program(name), state=state) as driver:
        feed(driver, 0, 20)
        before = driver.tables.snapshot()
        backup(driver.broker, name, tmp_path / "copy")
        feed(driver, 20, 40)
        after = driver.tables.snapshot()
        driver._prepared.release()
        with monkeypatch.context() as patched:
            patched.setattr("potok.runtime.operations.cell_swap.failpoint", die)
            with pytest.raises(Died):
                restore(driver.broker, tmp_path / "copy", force=True)
        assert driver.tables.snapshot() == (after if failing == "exchange.before" else before)
        restore(driver.broker, tmp_path / "copy", force=True)
        driver._begin()
        driver.run(5)
        assert driver.tables.snapshot() == after


def test_numbers_of_batches_never_come_again(name: str, tmp_path: Path) -> None:
    with InProcess(program(name)) as driver:
        feed(driver, 0, 20)
        backup(driver.broker, name, tmp_path / "copy")
        feed(driver, 20, 40)
        last = driver._prepared.ledger.entry
        driver._prepared.release()
        restore(driver.broker, tmp_path / "copy", force=True)
        driver._begin()
        entry = driver._prepared.ledger.entry
        assert (entry.batch > last.batch, entry.epoch > last.epoch) == (True, True)


def test_a_directory_that_is_not_empty_is_left_alone(name: str, tmp_path: Path) -> None:
    (tmp_path / "copy").mkdir()
    (tmp_path / "copy" / "mine").write_text("x")
    with InProcess(program(name)) as driver:
        feed(driver, 0, 5)
        with pytest.raises(BackupExists):
            backup(driver.broker, name, tmp_path / "copy")
    assert (tmp_path / "copy" / "mine").read_text() == "x"


def test_a_query_that_never_ran_has_nothing_to_copy(name: str, tmp_path: Path) -> None:
    with InProcess(program(name)) as driver, pytest.raises(NoSuchQuery):
        backup(driver.broker, "nobody", tmp_path / "copy")
    assert not (tmp_path / "copy").exists()
    assert not (tmp_path / "copy.partial").exists()


def test_a_damaged_backup_changes_nothing(name: str, tmp_path: Path) -> None:
    copy = tmp_path / "copy"
    with InProcess(program(name)) as driver:
        feed(driver, 0, 20)
        manifest = backup(driver.broker, name, copy)
        driver._prepared.release()
        before = driver.tables.snapshot()
        file = copy / manifest.files[0].name
        data = bytearray(file.read_bytes())
        data[len(data) // 2] ^= 1
        file.write_bytes(data)
        with pytest.raises(DamagedBackup):
            restore(driver.broker, copy, force=True)
        file.unlink()
        with pytest.raises(DamagedBackup):
            restore(driver.broker, copy, force=True)
        assert driver.tables.snapshot() == before
        driver._begin()


def test_a_manifest_with_any_bit_changed_is_refused(name: str, tmp_path: Path) -> None:
    with InProcess(program(name)) as driver:
        feed(driver, 0, 5)
        backup(driver.broker, name, tmp_path / "copy")
    path = tmp_path / "copy" / MANIFEST
    whole, right = path.read_bytes(), Manifest.read(tmp_path / "copy")
    for position in range(0, len(whole), 7):
        path.write_bytes(whole[:position] + bytes([whole[position] ^ 1]) + whole[position + 1 :])
        # A space between two words of JSON may be another.
        with suppress(NoBackup, DamagedBackup):
            assert Manifest.read(tmp_path / "copy") == right


def test_a_backup_of_another_format_is_refused(name: str, tmp_path: Path) -> None:
    with InProcess(program(name)) as driver:
        feed(driver, 0, 5)
        backup(driver.broker, name, tmp_path / "copy")
    path = tmp_path / "copy" / MANIFEST
    path.write_text(json.dumps(json.loads(path.read_text()) | {"format": 99}))
    with pytest.raises(NoBackup, match="99"):
        Manifest.read(tmp_path / "copy")
    with pytest.raises(NoBackup):
        Manifest.read(tmp_path)
