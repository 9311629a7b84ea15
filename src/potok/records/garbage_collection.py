"""Pause Python's garbage collector during bulk work."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def collector_paused() -> Iterator[None]:
    """Disable cyclic collection: it would repeatedly traverse hundreds of thousands of dicts that are all alive.

    Measured: dynamic JSON decodes 1.5 times as fast. Of two threads, the one that finds the collector paused leaves it
    alone.
    """
    if not gc.isenabled():
        yield
        return
    gc.disable()
    try:
        yield
    finally:
        gc.enable()
