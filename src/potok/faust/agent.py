"""Agents: coroutines that process the records of a topic."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import AsyncIterator, Callable, Sequence
from typing import TYPE_CHECKING, Any

from potok.duration import to_seconds
from potok.errors import Location, TopologyError
from potok.faust.agent_start import AgentFunction, start_agent
from potok.faust.build.discover import has_ampersand, mentions
from potok.faust.messaging.channel import Channel
from potok.faust.messaging.replies import ask
from potok.faust.messaging.sending import Destination, Sent
from potok.faust.messaging.topic import Topic
from potok.faust.stream import Stream
from potok.faust.testing import AgentTest
from potok.faust.unsupported import REFUSED, without
from potok.operators.agents.drive import Inlet

if TYPE_CHECKING:
    from potok.faust.app import App
    from potok.faust.tables.tables import Table


class NoAgent(TopologyError):
    """A function that cannot be an agent."""

    def __init__(self, name: str, at: Location | None) -> None:
        super().__init__(
            f'"{name}" is not an agent: it must be an async function of one stream',
            hint="write async def process(orders): async for order in orders: ...",
            at=at,
        )


@without(REFUSED["Agent"])
class Agent(Destination):
    """A function that processes the records of a topic, one after the other.

    `key` spreads it over the shards by a field or a function of the value; `sends` and `tables` name topics and tables
    that static analysis of its code cannot find.
    """

    def __init__(
        self,
        app: App,
        function: AgentFunction,
        topic: Topic | Channel,
        *,
        name: str = "",
        sink: Sequence[Any] = (),
        on_error: Callable[..., Any] | None = None,
        key: Any = None,
        sends: Sequence[Topic | str] = (),
        tables: Sequence[Table] = (),
        timeout_s: float | None = 30.0,
        concurrency: int = 1,
        help: str = "",
        at: Location | None = None,
    ) -> None:
        self.app, self.fun, self.topic, self.at = app, function, topic, at
        self.name = name or getattr(function, "__name__", type(function).__name__)
        self.sinks, self.on_error, self.key = list(sink), on_error, key
        self.sends, self.tables, self.timeout_s = list(sends), list(tables), timeout_s
        self.concurrency = concurrency
        self.help = help or (getattr(function, "func", function).__doc__ or "").strip().partition("\n")[0]
        if concurrency < 1:
            said = f'agent "{self.name}" takes {concurrency} records at once'
            raise TopologyError(said, hint="concurrency=10", at=at)
        if not (inspect.iscoroutinefunction(function) or inspect.isasyncgenfunction(function)):
            raise NoAgent(self.name, at)

    def __repr__(self) -> str:
        return f'<Agent "{self.name}">'

    def __call__(self, stream: Any) -> Any:
        return self.fun(stream)

    @property
    def channel(self) -> Topic | Channel:
        return self.topic

    def add_sink(self, sink: Any) -> None:
        """Send what the agent yields to a topic, another agent or a function too."""
        self.sinks.append(sink)

    def moves(self) -> list[tuple[str, Any]]:
        """Return the operations that the agent requests of its stream before the first record: grouping, a topic in
        between, combining with another stream, or echoing.

        The code before its loop is run for that, if it mentions one of these.
        """
        if not (mentions(self.fun, "group_by", "through", "combine", "echo") or has_ampersand(self.fun)):
            return []
        stream = Stream(Inlet())
        coroutine = start_agent(self.app.id, self.fun, (), stream)
        try:
            coroutine.send(None)
        except StopIteration:
            pass
        finally:
            coroutine.close()
        return stream.moves

    async def ask(self, value: Any = None, *, key: Any = None, timeout: float | None = None) -> Any:
        """Send a value to the agent, and wait for what it yields; for pages, tasks and programs, not for agents.
        The time limit is `reply_expires` of the app, or 30 s.
        """
        assert isinstance(self.topic, Topic)
        seconds = to_seconds(timeout or self.app.options.get("reply_expires") or 30.0)
        return await ask(self.app, self.name, self.topic, value, key, seconds)

    async def ask_nowait(
        self, value: Any = None, *, key: Any = None, timeout: float | None = None
    ) -> asyncio.Task[Any]:
        """Like `ask`, but wait later: `await reply`."""
        return asyncio.ensure_future(self.ask(value, key=key, timeout=timeout))

    async def map(self, values: Any, key: Any = None, *, timeout: float | None = None) -> AsyncIterator[Any]:
        """Ask for one value after the other."""
        async for value in _each(values):
            yield await self.ask(value, key=key, timeout=timeout)

    async def kvmap(self, items: Any, *, timeout: float | None = None) -> AsyncIterator[Any]:
        """Like `map`, with pairs of key and value."""
        async for key, value in _each(items):
            yield await self.ask(value, key=key, timeout=timeout)

    async def join(self, values: Any, key: Any = None, *, timeout: float | None = None) -> list[Any]:
        """Ask for several values concurrently, and wait for all answers, in the same order."""
        return await self.kvjoin([(key, value) async for value in _each(values)], timeout=timeout)

    async def kvjoin(self, items: Any, *, timeout: float | None = None) -> list[Any]:
        """Like `join`, with pairs of key and value."""
        asked = [self.ask(value, key=key, timeout=timeout) async for key, value in _each(items)]
        return list(await asyncio.gather(*asked))

    def test_context(self, channel: Any = None, supervisor_strategy: Any = None, on_error: Any = None) -> AgentTest:
        """Run the agent alone, for a test: `async with agent.test_context() as t: await t.put(order)`."""
        return AgentTest(self, on_error)

    def get_topic_names(self) -> list[str]:
        return list(self.topic.names)

    def info(self) -> dict[str, Any]:
        return {"app": self.app, "fun": self.fun, "name": self.name, "channel": self.topic}

    @property
    def yields(self) -> bool:
        return inspect.isasyncgenfunction(self.fun)

    async def cast(self, value: Any = None, *, key: Any = None, **options: Any) -> None:
        """Send a value to the agent, without waiting for the result."""
        await self.topic.send(key=key, value=value, **options)

    async def send(self, *, key: Any = None, value: Any = None, **options: Any) -> Sent:
        """Like `cast`, but return the position of the record."""
        return await self.topic.send(key=key, value=value, **options)


async def _each(items: Any) -> AsyncIterator[Any]:
    if hasattr(items, "__aiter__"):
        async for item in items:
            yield item
    else:
        for item in items:
            yield item
