"""A thread that delivers batch after batch to a sink, while its server is restarted."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

from potok.sinks.guarantee import Guarantee
from potok.sinks.sink_spec import Batch, Rows, Types
from tests.sinks.rows import deliver, opening, rows_of

EACH = 500
TIMEOUT_S = 120.0


class Load:
    """Batches of numbers that never repeat. `failures` has those that became dead letters."""

    def __init__(
        self,
        target: Any,
        types: Types,
        guarantee: Guarantee,
        rows: Callable[[range], list[tuple[Any, Any]]] | None = None,
        *,
        each: int = EACH,
        pause_s: float = 0.0,
    ) -> None:
        self.target, self._types = target, types
        self._each, self._pause_s = each, pause_s
        self._rows = rows or (lambda numbers: [("k", number) for number in numbers])
        self.failures: set[int] = set()
        self._writer = target.open(opening(types, guarantee))
        self._batches = 0
        self._error: BaseException | None = None
        self._changed, self._ending = threading.Condition(), threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    @property
    def sent(self) -> list[int]:
        return list(range(self._batches * self._each))

    def wait_for_batches(self, count: int) -> None:
        """Wait for so many more."""
        with self._changed:
            wanted = self._batches + count
            assert self._changed.wait_for(lambda: self._batches >= wanted or self._error, TIMEOUT_S)
        assert self._error is None, self._error

    def end(self) -> None:
        """Deliver a last batch, and close the sink."""
        self.wait_for_batches(1)
        self._ending.set()
        self._thread.join(TIMEOUT_S)
        self._writer.close()
        assert self._error is None, self._error

    def _run(self) -> None:
        try:
            while not self._ending.wait(self._pause_s):
                self._deliver()
        except BaseException as error:  # noqa: BLE001 - reported in the thread of the test
            self._error = error
        with self._changed:
            self._changed.notify_all()

    def _deliver(self) -> None:
        first = self._batches * self._each
        rows: Rows = rows_of(self._rows(range(first, first + self._each)), self._types)
        found = deliver(self.target, self._writer, rows, self._types, Batch(1, self._batches + 1))
        self.failures |= {first + row for row in found}
        with self._changed:
            self._batches += 1
            self._changed.notify_all()
