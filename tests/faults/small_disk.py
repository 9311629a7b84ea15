"""A disk of a few megabytes at some place in a directory, which can be filled to the last byte."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.faults.row import NotHere

MEGABYTES = 64


class SmallDisk:
    def __init__(self, path: Path) -> None:
        self._filler = path / "filler"

    def fill(self) -> None:
        """Leave no room, not for a page."""
        with self._filler.open("wb", buffering=0) as file:
            for size in (1 << 20, 1 << 12, 1):
                try:
                    while True:
                        file.write(bytes(size))
                except OSError:
                    continue

    def make_room(self) -> None:
        self._filler.unlink()


@contextmanager
def small_disk(path: Path) -> Iterator[SmallDisk]:
    """A file system of its own at `path`, which is made."""
    path.mkdir(parents=True)
    words = ["mount", "-t", "tmpfs", "-o", f"size={MEGABYTES}m,mode=0755", "tmpfs", str(path)]
    try:
        done = subprocess.run(words, capture_output=True, text=True, check=False)
    except FileNotFoundError as error:
        raise NotHere("no mount on this machine") from error
    if done.returncode:
        raise NotHere(f"a disk of its own needs a user who may mount one: {done.stderr.strip()}")
    try:
        yield SmallDisk(path)
    finally:
        os.sync()
        subprocess.run(["umount", "--lazy", str(path)], capture_output=True, check=False)
