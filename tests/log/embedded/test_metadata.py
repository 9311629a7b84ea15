from __future__ import annotations

import errno
import multiprocessing
import threading
from itertools import pairwise
from pathlib import Path
from typing import Any

import lmdb
import pytest

from log.records import values
from potok.errors import LogError
from potok.log.embedded.embedded_broker import EmbeddedBroker
from potok.log.embedded.metadata import Metadata
from potok.log.errors import BrokerClosed
from potok.machine import MachineError
from potok.records.log_record import LogRecord


def test_the_map_grows_when_it_is_full(tmp_path: Path) -> None:
    broker = EmbeddedBroker(tmp_path, map_bytes=64 << 10)
    for n in range(20):
        broker.set_metadata({f"m{n:02d}": bytes(20_000)})
    assert len(broker.list_metadata("m")) == 20
    broker.close()


def test_the_map_grows_while_other_threads_read_and_write(tmp_path: Path) -> None:
    broker = EmbeddedBroker(tmp_path, map_bytes=64 << 10)
    broker.create_topic("t")

    def work(name: str) -> None:
        for n in range(10):
            broker.set_metadata({f"{name}{n}": bytes(10_000)})
            broker.end_offsets("t")

    threads = [threading.Thread(target=work, args=(name,)) for name in "abcd"]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(broker.list_metadata("")) == 40
    broker.close()


def test_a_map_grown_by_another_process_is_followed(run, tmp_path: Path) -> None:
    broker = EmbeddedBroker(tmp_path / "data", map_bytes=64 << 10)
    grow = "b = EmbeddedBroker(DATA)\nfor n in range(40): b.set_metadata({f'%s{n}': bytes(20_000)})"
    assert run(grow % "r").returncode == 0
    assert len(broker.list_metadata("r")) == 40
    assert run(grow % "w").returncode == 0
    broker.set_metadata({"w0": None})
    assert len(broker.list_metadata("w")) == 39
    broker.close()


def test_the_environment_is_opened_once_for_all_users(tmp_path: Path) -> None:
    first = Metadata.open(tmp_path / "meta")
    second = Metadata.open(tmp_path / "x" / ".." / "meta")
    assert first is second
    first.close()
    assert second.read(lambda txn: txn.get(b"k")) is None
    second.close()
    with pytest.raises(BrokerClosed):
        second.read(lambda txn: txn.get(b"k"))


def test_a_directory_made_again_is_another_log(tmp_path: Path) -> None:
    first = EmbeddedBroker(tmp_path / "data")
    first.set_metadata({"a": b"1"})
    (tmp_path / "data").rename(tmp_path / "old")
    second = EmbeddedBroker(tmp_path / "data")
    assert second.list_metadata("") == {}
    assert first.list_metadata("") == {"a": b"1"}
    first.close()
    second.close()


def _append_in_child(broker: EmbeddedBroker, name: bytes) -> None:
    for n in range(20):
        broker.append("t", [LogRecord(name, b"%d" % n)])


def test_a_broker_works_on_both_sides_of_a_fork(broker: EmbeddedBroker) -> None:
    broker.create_topic("t")
    broker.append("t", [LogRecord(b"before", b"0")])
    children = [
        multiprocessing.get_context("fork").Process(target=_append_in_child, args=(broker, name))
        for name in (b"a", b"b")
    ]
    for child in children:
        child.start()
    _append_in_child(broker, b"parent")
    for child in children:
        child.join(60)
        assert child.exitcode == 0
    assert len(values(broker, "t")) == 61


def test_a_fork_waits_for_the_transactions_of_other_threads(broker: EmbeddedBroker) -> None:
    broker.create_topic("t")
    stop = threading.Event()
    seen: list[dict[int, int]] = []

    def poll() -> None:
        while not stop.is_set():
            seen.append(broker.end_offsets("t"))

    poller = threading.Thread(target=poll)
    poller.start()
    for _ in range(5):
        child = multiprocessing.get_context("fork").Process(target=_append_in_child, args=(broker, b"k"))
        child.start()
        child.join(60)
        assert child.exitcode == 0
    stop.set()
    poller.join()
    assert broker.end_offsets("t") == {0: 100}
    assert all(later[0] >= earlier[0] for earlier, later in pairwise(seen))


def test_an_lmdb_error_is_raised_as_a_log_error(broker: EmbeddedBroker) -> None:
    def fail(txn: object) -> None:
        raise lmdb.DiskError("page 7")

    with pytest.raises(Exception, match="cannot be written: page 7"):
        broker._metadata.write(fail)


class Refusing:
    """An environment that begins no transaction."""

    def __init__(self, error: Exception) -> None:
        self._error = error

    def begin(self, write: bool = False) -> Any:
        raise self._error

    def close(self) -> None: ...


@pytest.mark.parametrize("error", [lmdb.ReadersFullError("full"), lmdb.BadRslotError("bad"), lmdb.Error("other")])
@pytest.mark.parametrize("verb", ["read", "write"])
def test_an_error_of_lmdb_is_an_error_of_the_log(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: Exception, verb: str
) -> None:
    metadata = Metadata(tmp_path)
    monkeypatch.setattr(metadata, "_environment", Refusing(error))
    with pytest.raises(LogError, match="the metadata of the log cannot be") as raised:
        getattr(metadata, verb)(lambda txn: None)
    assert str(tmp_path) in str(raised.value)


@pytest.mark.parametrize(("verb", "step"), [("read", "detect_changes"), ("write", "writing")])
def test_a_file_that_the_machine_refuses_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, verb: str, step: str
) -> None:
    def refuse() -> Any:
        raise OSError(errno.EMFILE, "Too many open files", "lock")

    metadata = Metadata(tmp_path)
    monkeypatch.setattr(metadata._checked, step, refuse)
    with pytest.raises(MachineError, match="Too many open files: lock"):
        getattr(metadata, verb)(lambda txn: None)
