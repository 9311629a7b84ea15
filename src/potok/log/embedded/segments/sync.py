"""Sync the files of one commit in parallel, so that the file system merges its own writes for them."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait

Sync = Callable[[], None]

_THREADS = 8

_pool: ThreadPoolExecutor | None = None


def sync_all(syncs: Sequence[Sync]) -> None:
    """Run all syncs and return when all have ended, even if one fails: a file must not be closed during its sync."""
    if not syncs:
        return
    started: list[Future[None]] = []
    left = [syncs[0]]
    try:
        for number, sync in enumerate(syncs[1:], 1):
            try:
                started.append(_running().submit(sync))
            except RuntimeError:
                # At interpreter exit no thread can be started any more.
                left += syncs[number:]
                break
        for sync in left:
            sync()
    finally:
        wait(started)
    for future in started:
        future.result()


def _running() -> ThreadPoolExecutor:
    global _pool
    if _pool is None:
        _pool = ThreadPoolExecutor(_THREADS, "potok-sync")
    return _pool


def _after_fork_in_child() -> None:
    global _pool
    _pool = None


os.register_at_fork(after_in_child=_after_fork_in_child)
