"""Keep Python's garbage collector from bulk work, and from what a process has imported."""

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


def spare_imports() -> None:
    """Exempt everything that the process has created so far from collections.

    A full collection traverses all imported modules while all threads wait. Measured in a gateway under load: 75 ms,
    several times per second; 3 ms without them.
    """
    gc.collect()
    gc.freeze()
