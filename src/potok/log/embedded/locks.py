"""One appender at a time on each partition, across processes and threads."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path

from potok.permissions import FILE_MODE


@contextmanager
def partition_locks(directories: Sequence[Path]) -> Iterator[None]:
    """Hold the locks of partitions, given in an order that every caller uses.

    The file is opened each time: a lock belongs to the open file, so it excludes threads of one process as well as
    processes, and the system releases it when the process dies.
    """
    with ExitStack() as held:
        for directory in directories:
            held.enter_context(_lock(f"{directory}/lock"))
        yield


@contextmanager
def upkeep_lock(directory: Path, *, wait: bool) -> Iterator[bool]:
    """Hold the lock for compaction and archiving of a partition, which does not block appends and reads.

    Without `wait`, yield False at once if another process holds it.
    """
    with ExitStack() as held:
        try:
            held.enter_context(_lock(f"{directory}/upkeep", wait=wait))
            free = True
        except BlockingIOError:
            free = False
        yield free


@contextmanager
def _lock(path: str, *, wait: bool = True) -> Iterator[None]:
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, FILE_MODE)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX if wait else fcntl.LOCK_EX | fcntl.LOCK_NB)
        yield
    finally:
        # A child forked meanwhile shares the open file, so closing it would not release the lock.
        fcntl.flock(descriptor, fcntl.LOCK_UN)
        os.close(descriptor)
