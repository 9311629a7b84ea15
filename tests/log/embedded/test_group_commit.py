from __future__ import annotations

import threading
from pathlib import Path

import pytest

from log.records import values
from potok.errors import LogError
from potok.log.embedded.embedded_broker import EmbeddedBroker
from potok.log.embedded.locks import partition_locks
from potok.log.embedded.segments import segment
from potok.log.errors import RecordTooLarge, TopicNotFound
from potok.records.log_record import LogRecord


def lock_of(broker: EmbeddedBroker, topic: str) -> Path:
    (directory,) = broker.directory.glob(f"log/topics/{topic}-*/0")
    return directory


def test_appends_of_many_threads_share_their_fsyncs(broker: EmbeddedBroker, monkeypatch: pytest.MonkeyPatch) -> None:
    broker.create_topic("t")
    syncs = []
    sync = segment.sync_data
    monkeypatch.setattr(segment, "sync_data", lambda descriptor: syncs.append(1) or sync(descriptor))
    results: dict[int, int] = {}

    def append(n: int) -> None:
        (result,) = broker.append("t", [LogRecord(b"k", b"%d" % n)])
        results[n] = result.first_offset

    threads = [threading.Thread(target=append, args=(n,)) for n in range(20)]
    with partition_locks([lock_of(broker, "t")]):
        for thread in threads:
            thread.start()
        # One of them leads and waits for the lock, the others wait for it.
        while broker._appends.waiting < 19:
            pass
    for thread in threads:
        thread.join()
    assert len(syncs) == 2
    stored = values(broker, "t")
    assert len(stored) == 20
    assert all(stored[offset] == b"%d" % n for n, offset in results.items())


def test_an_append_that_fails_does_not_fail_those_written_with_it(broker: EmbeddedBroker) -> None:
    broker.create_topic("t")
    broker.create_topic("doomed")
    errors: list[LogError] = []

    def append(topic: str) -> None:
        try:
            broker.append(topic, [LogRecord(b"k", b"v")])
        except LogError as error:
            errors.append(error)

    threads = [threading.Thread(target=append, args=("t" if n else "doomed",)) for n in range(5)]
    with partition_locks([lock_of(broker, "t")]):
        leader = threading.Thread(target=append, args=("t",))
        leader.start()
        while not broker._appends._led:
            pass
        for thread in threads:
            thread.start()
        while broker._appends.waiting < 5:
            pass
        broker.delete_topic("doomed")
    for thread in [leader, *threads]:
        thread.join()
    assert [type(error) for error in errors] == [TopicNotFound]
    assert broker.end_offsets("t") == {0: 5}


def test_a_record_too_large_is_refused_before_it_is_queued(broker: EmbeddedBroker) -> None:
    broker.create_topic("t")
    broker.max_record_bytes = 10
    with pytest.raises(RecordTooLarge):
        broker.append("t", [LogRecord(None, b"x" * 11)])
    broker.append("t", [LogRecord(None, b"x" * 10)])
    assert broker.end_offsets("t") == {0: 1}
