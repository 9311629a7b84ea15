"""Test one agent alone: `async with agent.test_context() as t: await t.put(...)`.

The agent runs as in a batch, over its own tables, which are deleted after the test. Inside the context, tables and
topics are those of the test: it can read the rows that the agent wrote, and write rows for the agent to read.
"""

from __future__ import annotations

import tempfile
from collections.abc import Mapping
from inspect import isawaitable
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import orjson
import pyarrow as pa

from potok.clock import now_ms
from potok.faust.agent_start import StartAgent
from potok.faust.messaging.event import Event, current_event
from potok.faust.records.record import Record
from potok.log.broker import LOG_SCHEMA
from potok.operators.agents import context
from potok.operators.agents.context import Running
from potok.operators.agents.drive import Driven, Turns
from potok.operators.agents.tables import OpenTable
from potok.operators.agents.values import copied
from potok.operators.agents.window_closing import CloseWindows
from potok.operators.agents.windows import OpenWindows
from potok.operators.core.chunk import Chunk
from potok.operators.core.dead_letters import InputPartition
from potok.state.fence import Attempt, Fence
from potok.state.lmdb.lmdb_store import LmdbStore
from potok.state.session import StateSession
from potok.topology.agents import AgentPart

if TYPE_CHECKING:
    from potok.faust.agent import Agent
    from potok.faust.app import App

SECOND_MS = 1000


class SentInTest(NamedTuple):
    """What an agent sent; the value is decoded if it is JSON."""

    topic: str
    key: bytes | None
    value: Any
    timestamp: float | None
    headers: dict[str, bytes]


class _Topics(dict[str, int]):
    """All possible topics, numbered on first use."""

    def get(self, name: str, default: Any = None) -> Any:
        return self.setdefault(name, len(self))


class TestRunning(Running):
    """The agent group of a test, shared by all agents that are tested at once, so that they share their tables."""

    __test__ = False

    def __init__(self, app: App) -> None:
        self.names, self.input_partitions = _Topics(), list[InputPartition]()
        super().__init__(app.id, self.names, now_ms(), self.input_partitions)
        self._directory = tempfile.TemporaryDirectory(prefix="potok-")
        self._store = LmdbStore(Path(self._directory.name))
        session = StateSession(self._store, Fence(Attempt(1, 1)))
        parts = [(table.windowed or table).part(None) for table in app.tables.values()]
        self.tables: dict[str, OpenTable] = {
            part.name: (OpenTable if part.window is None else OpenWindows)(part, self, session, spread=False)
            for part in parts
        }
        self.users = 0

    def close(self) -> None:
        self._store.close()
        self._directory.cleanup()


class AgentTest:
    """An agent under test.

    `results` maps the offset of each record to what the agent yielded for it, or to the value if it yields
    nothing. `sent` is what it sent to topics, and `posted` what it put into channels. Exceptions of the agent
    are raised by `put`.
    """

    def __init__(self, agent: Agent, on_error: Any = None) -> None:
        self.agent, self._on_error = agent, on_error
        self.results: dict[int, Any] = {}
        self.posted: list[tuple[str, Any]] = []
        self.sent_offset = self.processed_offset = 0
        self._raised: BaseException | None = None

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any:
            """Return a member of the agent, as in Faust, where the test is an agent itself."""
            return getattr(self.agent, name)

    async def __aenter__(self) -> AgentTest:
        agent, running = self.agent, context.current()
        agent.app.note_use()
        self._before = running
        self._running = running if isinstance(running, TestRunning) else TestRunning(agent.app)
        self._running.users += 1
        start = StartAgent(agent.app.id, agent.fun, (*agent.sinks, self._yielded))
        self._driven = Driven(AgentPart(agent.name, start, (), self._failed, agent.timeout_s))
        self._turns = Turns(self._running, careful=True)
        context.drive(self._running)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._turns.drop(self._driven)
        self._running.users -= 1
        context.drive(self._before)
        if not self._running.users:
            self._running.close()

    async def put(
        self,
        value: Any = None,
        key: Any = None,
        partition: int | None = None,
        timestamp: float | None = None,
        headers: Mapping[str, bytes] | None = None,
        **_: Any,
    ) -> Event:
        """Send a record to the agent, and wait until it has processed it."""
        # A fixture may enter the test in another context.
        context.drive(self._running)
        offset = self.sent_offset
        self.sent_offset += 1
        at_ms = now_ms() if timestamp is None else round(timestamp * SECOND_MS)
        item = self._seen(value)
        self._set_to(offset, partition or 0, key, item, at_ms, headers or {})
        event = current_event()
        self._raised = None
        await self._turns.take(self._driven, offset, item)
        await self._note_posted()
        if self._raised is not None:
            raise self._raised
        self.results.setdefault(offset, item)
        self.processed_offset = offset + 1
        await self._close_windows()
        self._set_to(offset, partition or 0, key, item, at_ms, headers or {})
        return event

    def _seen(self, value: Any) -> Any:
        """Return a value as the agent sees it."""
        model = getattr(self.agent.topic, "value_type", None)
        if isinstance(model, type) and issubclass(model, Record) and isinstance(value, dict):
            return model.from_data(value)
        return copied(value)

    def _set_to(
        self, offset: int, partition: int, key: Any, item: Any, at_ms: int, headers: Mapping[str, bytes]
    ) -> None:
        running = self._running
        running.input_partitions[:] = [InputPartition(self.agent.topic.names[0], partition)]
        times, none = np.array([at_ms], np.int64), np.zeros(1, np.int64)
        header_column = pa.array(
            [[{"name": name, "value": data} for name, data in headers.items()]], LOG_SCHEMA.field("headers").type
        )
        running.chunk = Chunk([key], [item], times, times, none, np.array([offset], np.int64), headers=header_column)
        running.record, running.row, running.key, running.value = offset, 0, key, item
        running.timestamp, running.stream_time = at_ms, max(running.stream_time, at_ms)
        running.processing_time_ms = now_ms()

    async def _close_windows(self) -> None:
        running = self._running
        closing = CloseWindows(running.stream_time, running.processing_time_ms)
        await closing.run(running, running.tables.values(), self._note_posted, self.agent.timeout_s)

    async def _note_posted(self, number: int = 0) -> None:
        self.posted += self._running.posted
        self._running.posted = []

    @property
    def sent(self) -> list[SentInTest]:
        names = {number: name for name, number in self._running.names.items()}
        return [
            SentInTest(names[topic], key, _read(value), None if at is None else at / SECOND_MS, dict(headers or ()))
            for topic, _, key, value, at, headers in self._running.sent
        ]

    def _yielded(self, value: Any) -> None:
        self.results[self._running.record] = value

    async def _failed(self, agent: str, error: BaseException) -> None:
        self._raised = error
        for handler in (self.agent.on_error, self._on_error):
            if handler is not None:
                answer = handler(agent, error)
                if isawaitable(answer):
                    await answer

    async def throw(self, error: BaseException) -> None:
        """Raise an error in the agent where it waits for a record."""
        if self._driven.coroutine is None:
            raise error
        sent = self._running.begin_turn()
        try:
            self._driven.coroutine.throw(error)
        except StopIteration:
            self._driven.coroutine = self._driven.send = None
        except BaseException:
            self._running.take_back(sent)
            self._turns.drop(self._driven)
            raise


def _read(data: bytes | None) -> Any:
    if data is None:
        return None
    try:
        return orjson.loads(data)
    except orjson.JSONDecodeError:
        return data
