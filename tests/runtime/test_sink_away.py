"""A sink that is away for a while during a query, and comes back: nothing is lost, and nothing counts twice."""

from __future__ import annotations

import shutil
import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from tests.faults.row import NotHere
from tests.faults.small_disk import small_disk

from potok.dsl.builder import StreamsBuilder
from potok.dsl.stream import Stream
from potok.errors import PotokError
from potok.log.open import open_broker
from potok.records.log_record import LogRecord
from potok.runtime.queries.prepare import prepare
from potok.settings import Settings
from potok.sinks.errors import DeliveryFailed
from potok.sinks.files import FilesWriter
from potok.snapshots.progress import read_progress
from potok.snapshots.tables import Tables
from runtime.one_query import group_of, process_all
from sinks.web import Site, web_server

BATCHES, RECORDS = 4, 12
REFUSED = {5: 3, 17: 2, 18: 1, 40: 4}
"""How often which record is refused, before it is taken."""


@pytest.fixture
def site() -> Iterator[Site]:
    with web_server() as found:
        yield found


class Endpoint:
    """Answers 503 to some records, as often as requested, and notes those that it accepted."""

    def __init__(self) -> None:
        self._left, self._guard = dict(REFUSED), threading.Lock()
        self.taken: list[int] = []

    def answer(self, body: Any, _: int) -> int:
        with self._guard:
            if self._left.get(body["n"], 0):
                self._left[body["n"]] -= 1
                return 503
            self.taken.append(body["n"])
            return 200


@pytest.mark.parametrize("brief_ms", [1, 60_000], ids=["tried again by the query", "tried again by the sink"])
def test_an_endpoint_that_answers_503_and_then_200_gets_every_record_once(
    tmp_path: Path, site: Site, monkeypatch: pytest.MonkeyPatch, brief_ms: int
) -> None:
    monkeypatch.setattr("potok.retry_policy.FIRST_S", 0.002)
    monkeypatch.setattr("potok.sinks.http.writer.BRIEFLY_MS", brief_ms)
    endpoint = Endpoint()
    site.answer = endpoint.answer
    waited_for = run(tmp_path, lambda numbers: numbers.to_http(site.url, concurrency=2))

    everything = list(range(BATCHES * RECORDS))
    assert sorted(set(endpoint.taken)) == everything
    assert sorted(body["n"] for body in site.by_key.values()) == everything, (
        "a record has one key, however often it comes"
    )
    if brief_ms == 1:
        assert any("503" in message for message in waited_for)
    else:
        assert (waited_for, sorted(endpoint.taken)) == ([], everything)


class Disk:
    """A directory of files, whose disk is away in the third batch until the query waits for it."""

    def __init__(self, path: Path, go: Callable[[], None], come_back: Callable[[], None]) -> None:
        self.path, self.go, self._come_back = path, go, come_back
        self.left_over: list[list[str]] = []

    def before(self, batch: int) -> None:
        if batch == 2:
            self.go()

    def waiting(self) -> None:
        self.left_over.append([found.name for found in self.path.glob("_potok/tmp-*/*")])
        if len(self.left_over) == 2:
            self._come_back()

    def numbers(self) -> list[int]:
        return sorted(pq.read_table(self.path).column("n").to_pylist())


@contextmanager
def unmounted(tmp_path: Path) -> Iterator[Disk]:
    """Another directory, which is empty, is in its place, as when a disk is unmounted."""
    path, away = tmp_path / "mounted" / "files", tmp_path / "away"

    def go() -> None:
        path.parent.rename(away)
        path.parent.mkdir()

    def come_back() -> None:
        assert list(path.parent.iterdir()) == [], "another disk was written to"
        path.parent.rmdir()
        away.rename(path.parent)

    yield Disk(path, go, come_back)


@contextmanager
def full(tmp_path: Path) -> Iterator[Disk]:
    try:
        with small_disk(tmp_path / "mounted") as disk:
            yield Disk(tmp_path / "mounted" / "files", disk.fill, disk.make_room)
    except NotHere as error:
        pytest.skip(str(error))


@pytest.mark.parametrize("away", [unmounted, full])
@pytest.mark.parametrize("guarantee", ["exactly_once", "at_least_once", "at_most_once"])
def test_a_disk_that_is_away_or_full_for_a_while_gets_every_record_once(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    guarantee: Any,
    away: Callable[[Path], AbstractContextManager[Disk]],
) -> None:
    monkeypatch.setattr("potok.retry_policy.FIRST_S", 0.002)
    with away(tmp_path) as disk:
        path = str(disk.path)
        waited_for = run(tmp_path, lambda numbers: numbers.to_files(path, guarantee=guarantee), disk)
        assert len(waited_for) == 2
        assert all("rejected batch 3" in message for message in waited_for)
        assert disk.left_over == [[], []], "an attempt that failed takes no room"
        assert disk.numbers() == list(range(BATCHES * RECORDS))


@pytest.mark.parametrize("guarantee", ["exactly_once", "at_least_once", "at_most_once"])
def test_records_are_written_once_if_the_disk_fails_before_files_are_renamed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, guarantee: Any
) -> None:
    monkeypatch.setattr("potok.retry_policy.FIRST_S", 0.002)
    accept, tried = FilesWriter._give_names, list[int]()

    def at_the_last_moment(sink_writer: FilesWriter, parts: Any) -> None:
        tried.append(1)
        if len(tried) == 3:
            disk.go()
        if len(tried) == 5 and guarantee == "at_most_once":
            disk.waiting()
            disk.waiting()
        accept(sink_writer, parts)

    monkeypatch.setattr(FilesWriter, "_give_names", at_the_last_moment)
    monkeypatch.setattr(Disk, "before", lambda *_: None)
    with unmounted(tmp_path) as disk:
        path = str(disk.path)
        waited_for = run(tmp_path, lambda numbers: numbers.to_files(path, guarantee=guarantee), disk)
        assert len(waited_for) == (0 if guarantee == "at_most_once" else 2)
        assert disk.numbers() == list(range(BATCHES * RECORDS))


def test_a_file_in_the_way_of_a_directory_is_not_waited_for(tmp_path: Path) -> None:
    path = tmp_path / "files"

    def block() -> None:
        shutil.rmtree(path)
        path.write_text("in the way")

    disk = Disk(path, block, lambda: None)
    with pytest.raises(DeliveryFailed, match="Not a directory"):
        run(tmp_path, lambda numbers: numbers.to_files(str(path)), disk)
    assert disk.left_over == []


def run(tmp_path: Path, deliver: Callable[[Stream], object], disk: Disk | None = None) -> list[str]:
    """Count and deliver records, in batches; returns what the query waited for."""
    broker = open_broker(tmp_path / "log")
    broker.create_topic("numbers", 1)
    builder = StreamsBuilder("posting")
    numbers = builder.stream("numbers", value="n bigint")
    numbers.group_by_key().count(name="counts")
    deliver(numbers)
    settings = Settings(shards=2, retry_for_ms=120_000)
    group = group_of(prepare(builder, broker, settings), settings)
    waited_for: list[str] = []

    def waiting(error: PotokError) -> None:
        waited_for.append(error.message)
        if disk is not None:
            disk.waiting()

    for batch in range(BATCHES):
        first = batch * RECORDS
        records = [LogRecord(b"k%d" % (n % 3), b'{"n": %d}' % n, n) for n in range(first, first + RECORDS)]
        broker.append("numbers", records, 0)
        if disk is not None:
            disk.before(batch)
        process_all(group, waiting)
    each = BATCHES * RECORDS // 3
    assert Tables(broker, "posting")["counts"].all() == {f"k{key}": each for key in range(3)}
    progress = read_progress(broker, "posting")
    assert progress is not None
    assert (progress.batch, progress.total_in, progress.dead_letters) == (BATCHES, BATCHES * RECORDS, 0)
    group.stop()
    broker.close()
    return waited_for
