"""Lines of files that grow, are rotated, truncated and removed."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from potok.errors import TopologyError
from potok.log.embedded.embedded_broker import EmbeddedBroker
from potok.sources import Gateway, GrowingFiles, Overload
from tests.log.waiting import until
from tests.sources.test_appender import values


@contextmanager
def following(directory: Path, **options: Any) -> Iterator[Gateway]:
    given = {"name": "f", "topic": "t", "path": str(directory / "app.log"), "poll_interval": "5 ms"}
    with Gateway(EmbeddedBroker(directory / "data"), [GrowingFiles(**given | options)]) as gateway:  # type: ignore[arg-type]
        yield gateway


def add(path: Path, text: bytes) -> None:
    with path.open("ab") as file:
        file.write(text)


def landed(gateway: Gateway, *lines: bytes) -> None:
    until(lambda: values(gateway.broker) == list(lines))


def test_lines_land_as_they_are_completed(tmp_path: Path) -> None:
    add(tmp_path / "app.log", b"one\ntw")
    with following(tmp_path) as gateway:
        landed(gateway, b"one")
        add(tmp_path / "app.log", b"o\r\n\nthree\n")
        landed(gateway, b"one", b"two", b"three")


def test_reading_resumes_behind_the_last_line_that_landed(tmp_path: Path) -> None:
    add(tmp_path / "app.log", b"one\ntwo")
    with following(tmp_path) as gateway:
        landed(gateway, b"one")
    add(tmp_path / "app.log", b" and a half\nthree\n")
    with following(tmp_path) as gateway:
        landed(gateway, b"one", b"two and a half", b"three")


def test_a_renamed_file_is_read_to_its_end_and_then_the_new_one(tmp_path: Path) -> None:
    add(tmp_path / "app.log", b"one\n")
    with following(tmp_path) as gateway:
        landed(gateway, b"one")
        add(tmp_path / "app.log", b"two\n")
        (tmp_path / "app.log").rename(tmp_path / "app.log.1")
        add(tmp_path / "app.log", b"three\n")
        until(lambda: set(values(gateway.broker)) == {b"one", b"two", b"three"})


def test_a_file_that_was_renamed_while_the_gateway_was_down_is_read_to_its_end(tmp_path: Path) -> None:
    add(tmp_path / "app.log", b"one\n")
    with following(tmp_path) as gateway:
        landed(gateway, b"one")
    add(tmp_path / "app.log", b"two\n")
    (tmp_path / "app.log").rename(tmp_path / "app.log.1")
    add(tmp_path / "app.log", b"three\n")
    with following(tmp_path) as gateway:
        until(lambda: sorted(values(gateway.broker)) == [b"one", b"three", b"two"])


def test_a_truncated_file_is_read_from_its_beginning(tmp_path: Path) -> None:
    add(tmp_path / "app.log", b"first line\n")
    with following(tmp_path) as gateway:
        landed(gateway, b"first line")
        (tmp_path / "app.log").write_bytes(b"new\n")
        landed(gateway, b"first line", b"new")


def test_another_file_with_the_inode_of_a_removed_one_is_new(tmp_path: Path) -> None:
    add(tmp_path / "app.log", b"first\n")
    with following(tmp_path) as gateway:
        landed(gateway, b"first")
    # The same inode with other bytes, as if the file system had given it away again.
    (tmp_path / "app.log").write_bytes(b"other\n")
    with following(tmp_path) as gateway:
        landed(gateway, b"first", b"other")


def test_latest_skips_what_is_there_at_the_first_start_only(tmp_path: Path) -> None:
    add(tmp_path / "app.log", b"old\n")
    with following(tmp_path, start="latest") as gateway:
        until(lambda: gateway.status()[0].state["files"] != {})
        add(tmp_path / "app.log", b"new\n")
        landed(gateway, b"new")
    add(tmp_path / "app.log", b"later\n")
    with following(tmp_path, start="latest") as gateway:
        landed(gateway, b"new", b"later")


def test_a_line_that_is_too_long_is_counted_and_the_next_one_lands(tmp_path: Path) -> None:
    add(tmp_path / "app.log", b"x" * 3_000_000 + b"\nshort\n")
    with following(tmp_path, max_line=1_000) as gateway:
        landed(gateway, b"short")
        assert gateway.counts("f").lost == {"too_large": 1}


def test_a_pattern_follows_files_that_appear_later(tmp_path: Path) -> None:
    with following(tmp_path, path=str(tmp_path / "*.log")) as gateway:
        add(tmp_path / "a.log", b"a\n")
        add(tmp_path / "b.log", b"b\n")
        until(lambda: sorted(values(gateway.broker)) == [b"a", b"b"])


def test_files_wait_for_room(tmp_path: Path) -> None:
    add(tmp_path / "app.log", b"".join(b"%d\n" % number for number in range(50_000)))
    with following(tmp_path, overload=Overload(max_records=10)) as gateway:
        landed(gateway, *[b"%d" % number for number in range(50_000)])
        assert gateway.counts("f").lost == {}


def test_files_accept_no_policy_that_drops() -> None:
    spec = GrowingFiles(name="f", topic="t", path="x", overload=Overload(when_full="drop_newest"))
    with pytest.raises(TopologyError, match="a file is read when there is room"):
        spec.check()
