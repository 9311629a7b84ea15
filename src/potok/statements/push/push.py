"""Push queries (SELECT ... EMIT) and PRINT. Rows arrive with the records, until LIMIT or close."""

from __future__ import annotations

import itertools
import logging
import threading
import time
from abc import abstractmethod
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from potok.clock import now_ms
from potok.errors import QueryError
from potok.sql.catalog import Catalog
from potok.sql.errors import UnknownName, closest
from potok.sql.expressions.typed import ColumnRef, Typed
from potok.sql.properties import OFFSET_RESET, Properties
from potok.sql.syntax import ast
from potok.sql.types import VARCHAR
from potok.statements.database import Database
from potok.statements.frames import Frame, python_rows
from potok.statements.pull.pull import spread_over
from potok.statements.push.failures import OFFSET, PushFailures
from potok.statements.push.plan import RecordPlan, needs_topology, plan_records, plan_transient
from potok.statements.push.tail import MOST_BYTES, Block, Memory, Subscription, tail_of
from potok.statements.push.transient import Transient, transient_name
from potok.statements.records.decode import ReadRecords, RecordReader
from potok.statements.records.print_records import printed_lines
from potok.statements.results import Push, ResultColumn, Row

log = logging.getLogger(__name__)

Computing = Callable[[Sequence[Typed], Frame], list[pa.Array]]
"""Computes expressions over the rows of a frame; a failed one is NULL, and the failure is recorded."""

CHECK_S = 0.25
"""How often a push query without rows checks that its topology is still running."""

PER_KEY = 128
"""The estimated size of a remembered key, in addition to its bytes."""

_numbers = itertools.count(1)


def check_push(catalog: Catalog, query: ast.Select, properties: Properties) -> None:
    """Raise if a push query is invalid; nothing is run."""
    if needs_topology(query):
        plan_transient(catalog, query, "push", properties)
    else:
        plan_records(catalog, query, properties)


def start_push(database: Database, query: ast.Select, properties: Properties, text: str) -> Push:
    """Start a push query at the end of its sources, or at their start if `auto.offset.reset` is `earliest`.

    A query that processes one record at a time is computed in this process as records are appended. A query that groups
    or joins runs as a topology in the group of persistent queries until it ends.
    """
    start = _begin(properties)
    name = f"transient_{query.relation.name}_{next(_numbers)}"
    log.debug("%s: %s", name, text)
    if not needs_topology(query):
        plan = plan_records(database.catalog, query, properties)
        failures = PushFailures(database.broker, name, plan.source.topic)
        return RecordPush(name, plan, _subscribed(database, plan.source.topic, start), failures)
    topic = transient_name(name)
    transient = plan_transient(database.catalog, query, topic, properties)
    run = Transient.started(database, transient.topology, topic, start)
    subscription = tail_of(database).subscribe(topic, {})
    return RecordPush(name, transient.reading, subscription, PushFailures(database.broker, name, topic), run)


def start_print(database: Database, statement: ast.Print) -> Push:
    """Start printing the records of a topic, one line each."""
    broker, topic = database.broker, statement.topic
    if not broker.has_topic(topic):
        known = broker.topics()
        same = next((name for name in known if name.upper() == topic.upper()), "")
        hint = f"did you mean '{same}'?" if same else closest(topic, known) or "SHOW TOPICS lists them"
        raise UnknownName(f"there is no topic '{topic}'", hint=hint, location=statement.at)
    start = "earliest" if statement.from_beginning else "latest"
    name = f"print_{topic}_{next(_numbers)}"
    return PrintPush(name, database.catalog, statement, _subscribed(database, topic, start))


def _begin(properties: Properties) -> str:
    return properties.text(OFFSET_RESET).lower() or "latest"


def _subscribed(database: Database, topic: str, start: str) -> Subscription:
    broker = database.broker
    positions = broker.earliest_offsets(topic) if start == "earliest" else broker.end_offsets(topic)
    return tail_of(database).subscribe(topic, positions)


class TailPush(Push):
    """Rows computed from the records appended to a topic."""

    def __init__(
        self,
        query_id: str,
        columns: Sequence[ResultColumn],
        limit: int | None,
        subscription: Subscription,
        run: Transient | None = None,
    ) -> None:
        self.query_id, self.columns = query_id, tuple(columns)
        self._left, self._subscription, self._run = limit, subscription, run

    def next(self, timeout_s: float | None = None) -> Sequence[Row] | None:
        end = None if timeout_s is None else time.monotonic() + timeout_s
        try:
            return self._next(end)
        except BaseException:
            self.close()
            raise

    def _next(self, end: float | None) -> Sequence[Row] | None:
        if self._left == 0:
            self.close()
        while not self._subscription.closed:
            wait = CHECK_S if end is None else max(0.0, min(CHECK_S, end - time.monotonic()))
            rows = [row for block in self._subscription.take(wait) for row in self.rows_of(block)]
            self.looked()
            if self._subscription.closed:
                break
            if rows:
                return self._counted(rows)
            if self._run is not None:
                self._run.check()
            if end is not None and time.monotonic() >= end:
                self._subscription.remind()
                return []
        return None

    def notify(self, wake: Callable[[], None]) -> bool:
        self._subscription.wake = wake
        return True

    def _counted(self, rows: list[Row]) -> list[Row]:
        if self._left is None:
            return rows
        taken = rows[: self._left]
        self._left -= len(taken)
        return taken

    def looked(self) -> None:
        """Hook, called after each read, with or without records."""

    @abstractmethod
    def rows_of(self, block: Block) -> list[Row]:
        """Compute the rows of a block of records."""

    def close(self) -> None:
        self._subscription.close()
        if self._run is not None:
            self._run.end()


class TooManyKeys(QueryError):
    """A push query would have to remember too many keys."""

    def __init__(self) -> None:
        super().__init__(
            f"the query would have to store more than {MOST_BYTES >> 20} MB of keys",
            hint="leave WHERE out, or write the result to a table: CREATE TABLE ... AS SELECT",
        )


class KeysSent:
    """The keys of a table that are in the result of a push query with a condition. They count as memory of the tail
    until `clear`, which any thread may call."""

    def __init__(self, memory: Memory) -> None:
        self._memory, self._keys, self._size, self._counted = memory, set[bytes](), 0, 0
        self._lock, self._is_over = threading.Lock(), False

    def add(self, key: bytes) -> None:
        if key not in self._keys:
            self._keys.add(key)
            self._size += len(key) + PER_KEY

    def remove(self, key: bytes) -> bool:
        """Remove a key; return whether it was present."""
        if key not in self._keys:
            return False
        self._keys.remove(key)
        self._size -= len(key) + PER_KEY
        return True

    def check(self) -> None:
        """Raise if there are too many keys."""
        with self._lock:
            if self._is_over:
                return
            self._memory.add(self._size - self._counted)
            self._counted = self._size
        if self._size > MOST_BYTES or (self._size and self._memory.is_full):
            raise TooManyKeys

    def clear(self) -> None:
        with self._lock:
            self._keys, self._size, self._is_over = set(), 0, True
            self._memory.add(-self._counted)
            self._counted = 0


class RecordPush(TailPush):
    """The rows of a query that processes one record at a time."""

    def __init__(
        self,
        query_id: str,
        plan: RecordPlan,
        subscription: Subscription,
        failures: PushFailures,
        run: Transient | None = None,
    ) -> None:
        super().__init__(query_id, plan.columns, plan.limit, subscription, run)
        self._failures = failures
        self._plan, self._reader = plan, RecordReader(plan.source, plan.alias, plan.wanted)
        self._sent = KeysSent(subscription.memory)

    def looked(self) -> None:
        self._failures.report()

    def rows_of(self, block: Block) -> list[Row]:
        plan, read = self._plan, self._reader.read(block.batch, block.partition)
        self._failures.unreadable(block.partition, read.unreadable)
        computing = partial(self._failures.computed, partition=block.partition, now_ms=now_ms())
        frame = read.frame.with_columns({OFFSET: read.offsets})
        if plan.source.is_table:
            return self._changes(frame, read, computing)
        if plan.where is not None:
            fits = computing([plan.where], frame)[0]
            frame = frame if fits.true_count == frame.rows else frame.take(pc.indices_nonzero(fits))
        if plan.lists:
            frame = spread_over(frame, computing(plan.lists, frame))
        return python_rows(computing(plan.projected, frame), frame.rows)

    def _changes(self, frame: Frame, read: ReadRecords, computing: Computing) -> list[Row]:
        """Return the changes of a table. A row that is deleted, or no longer matches, has its key, if selected, and
        NULL in the other columns."""
        plan = self._plan
        gone = read.deletes.to_numpy(zero_copy_only=False)
        if plan.where is None:
            reported = np.ones(frame.rows, np.bool_)
        else:
            fits = computing([plan.where], frame)[0].fill_null(False)
            gone = gone | ~fits.to_numpy(zero_copy_only=False)
            reported = self._remembered(read.keys.to_pylist(), gone)
        at = np.flatnonzero(reported)
        return self._with_gaps(frame.take(at), gone[at], computing)

    def _remembered(self, keys: list[bytes | None], gone: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
        """Of the rows that are not in the result, return those that were."""
        reported = np.ones(len(keys), np.bool_)
        for row, (key, is_gone) in enumerate(zip(keys, gone.tolist(), strict=True)):
            if key is None:
                reported[row] = not is_gone
            elif not is_gone:
                self._sent.add(key)
            elif not self._sent.remove(key):
                reported[row] = False
        self._sent.check()
        return reported

    def _with_gaps(self, frame: Frame, gone: np.ndarray[Any, Any], computing: Computing) -> list[Row]:
        computed = computing(self._plan.projected, frame)
        if gone.any():
            there = pa.array(np.arange(frame.rows), mask=gone)
            keyed = [
                column.is_key and isinstance(typed, ColumnRef)
                for column, typed in zip(self.columns, self._plan.projected, strict=True)
            ]
            computed = [c if is_key else c.take(there) for c, is_key in zip(computed, keyed, strict=True)]
        return python_rows(computed, frame.rows)

    def close(self) -> None:
        super().close()
        self._sent.clear()
        self.left_out = self._failures.left_out + (self._run.dead_letters if self._run is not None else 0)
        self._failures.report(at_once=True)


class PrintPush(TailPush):
    """Formatted records of PRINT."""

    def __init__(self, query_id: str, catalog: Catalog, statement: ast.Print, subscription: Subscription) -> None:
        super().__init__(query_id, (ResultColumn("LINE", VARCHAR),), statement.limit, subscription)
        self._source = next(iter(catalog.readers([statement.topic])), None)
        self._every, self._seen = statement.interval or 1, 0

    def rows_of(self, block: Block) -> list[Row]:
        lines = printed_lines(block.batch, block.partition, self._source)
        first = -self._seen % self._every
        self._seen += len(lines)
        return [(line,) for line in lines[first :: self._every]]
