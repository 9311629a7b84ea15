"""A directory as object storage."""

from __future__ import annotations

import os
import threading
from pathlib import Path

import pytest

from potok.backends.objects.directory import DirectoryClient
from potok.errors import StateError


@pytest.fixture
def client(tmp_path: Path) -> DirectoryClient:
    return DirectoryClient("here", tmp_path / "shared")


def test_of_many_concurrent_creations_one_succeeds_and_is_whole(client: DirectoryClient) -> None:
    wins: list[bytes] = []

    def create(number: int) -> None:
        data = bytes([number]) * 100_000
        if client.create("a/b", data) is not None:
            wins.append(data)

    threads = [threading.Thread(target=create, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    found = client.get("a/b")
    assert found is not None and [found.data] == wins


def test_an_object_is_replaced_only_in_the_version_that_was_read(client: DirectoryClient) -> None:
    first = client.create("a", b"1")
    assert first is not None
    second = client.replace("a", b"2", first)
    assert second is not None and client.replace("a", b"3", first) is None
    assert client.get("a") == (b"2", second)
    assert client.replace("missing", b"1", first) is None


def test_files_that_a_killed_process_left_are_no_objects_and_are_removed_later(client: DirectoryClient) -> None:
    client.create("a/b", b"1")
    left = client._directory / "a" / ".partial-123"
    left.write_bytes(b"half")
    assert [found.name for found in client.list("a/")] == ["a/b"]
    assert left.exists()
    os.utime(left, (0, 0))
    client.list("a/")
    assert not left.exists()


def test_deleting_the_last_object_of_a_directory_removes_it(client: DirectoryClient) -> None:
    client.create("a/b/c", b"1")
    client.create("d", b"1")
    client.delete(["a/b/c", "a/missing"])
    assert [found.name for found in client.list("")] == ["d"]
    assert not (client._directory / "a").exists()


def test_a_directory_that_cannot_be_written_is_an_error_with_a_hint(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("not a directory")
    with pytest.raises(StateError, match="here") as raised:
        DirectoryClient("here", tmp_path / "file" / "shared").create("a", b"1")
    assert raised.value.hint
