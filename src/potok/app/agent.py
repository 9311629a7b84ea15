"""Agents: coroutines that take the records of a topic."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import AsyncIterator, Callable, Coroutine, Sequence
from inspect import isawaitable
from typing import TYPE_CHECKING, Any

from potok.app.channel import Channel
from potok.app.discover import mentions
from potok.app.replies import ask, reply
from potok.app.stream import Stream
from potok.app.topic import Topic
from potok.errors import Location, TopologyError
from potok.kernels.agents_drive import Inlet

if TYPE_CHECKING:
    from potok.app.app import App
    from potok.app.tables import Table

AgentFunction = Callable[[Any], Any]


class NoAgent(TopologyError):
    """A function that cannot be an agent."""

    def __init__(self, name: str, at: Location | None) -> None:
        super().__init__(
            f'"{name}" is no agent: it must be an async function of one stream',
            hint="write async def process(orders): async for order in orders: ...",
            at=at,
        )


class Agent:
    """A function that takes the records of a topic, one after the other.

    `key` spreads it over the shards by a field or a function of the value; `sends` and `tables` name what the build
    cannot see in its code.
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
        at: Location | None = None,
    ) -> None:
        self.app, self.fun, self.topic, self.at = app, function, topic, at
        self.name = name or getattr(function, "__name__", type(function).__name__)
        self.sinks, self.on_error, self.key = list(sink), on_error, key
        self.sends, self.tables, self.timeout_s = list(sends), list(tables), timeout_s
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
        """Give what the agent yields to a topic, another agent or a function too."""
        self.sinks.append(sink)

    def moves(self) -> list[tuple[str, Any]]:
        """What the agent asks of its stream before the first record: to be grouped, or to come through a topic.

        The code before its loop is run for that, if it mentions one of these.
        """
        if not mentions(self.fun, "group_by", "through"):
            return []
        stream = Stream(Inlet())
        coroutine = begin(self.app.id, self.fun, (), stream)
        try:
            coroutine.send(None)
        except StopIteration:
            pass
        finally:
            coroutine.close()
        return stream.moves

    async def ask(self, value: Any = None, *, key: Any = None, timeout: float = 30.0) -> Any:
        """Send a value to the agent, and wait for what it yields; for pages, tasks and programs, not for agents."""
        assert isinstance(self.topic, Topic)
        return await ask(self.app, self.name, self.topic, value, key, timeout)

    async def map(self, values: Any, *, key: Any = None, timeout: float = 30.0) -> AsyncIterator[Any]:
        """Ask for one value after the other."""
        for value in values:
            yield await self.ask(value, key=key, timeout=timeout)

    async def join(self, values: Any, *, key: Any = None, timeout: float = 30.0) -> list[Any]:
        """Ask for several values at once, and wait for all that it yields, in their order."""
        return list(await asyncio.gather(*(self.ask(value, key=key, timeout=timeout) for value in values)))

    @property
    def yields(self) -> bool:
        return inspect.isasyncgenfunction(self.fun)

    async def cast(self, value: Any = None, *, key: Any = None, **options: Any) -> None:
        """Send a value to the agent, and do not wait for what becomes of it."""
        await self.topic.send(key=key, value=value, **options)

    async def send(self, *, key: Any = None, value: Any = None, **options: Any) -> None:
        await self.topic.send(key=key, value=value, **options)


class Begin:
    """Begins an agent over an inlet; it travels to where agents run."""

    def __init__(self, app: str, function: AgentFunction, sinks: Sequence[Any]) -> None:
        self._app, self._function, self._sinks = app, function, tuple(sinks)

    def __call__(self, inlet: Inlet) -> Coroutine[Any, Any, Any]:
        return begin(self._app, self._function, self._sinks, Stream(inlet))


def begin(app: str, function: AgentFunction, sinks: Sequence[Any], stream: Stream) -> Coroutine[Any, Any, Any]:
    """The coroutine of an agent; what it yields goes to its sinks."""
    made = function(stream)
    if isinstance(made, AsyncIterator):
        return _deliver(app, made, sinks)
    return made  # type: ignore[no-any-return]


async def _deliver(app: str, results: AsyncIterator[Any], sinks: Sequence[Any]) -> None:
    async for result in results:
        reply(app, result)
        for sink in sinks:
            if isinstance(sink, Topic | Channel | Agent):
                await sink.send(value=result)
            else:
                told = sink(result)
                if isawaitable(told):
                    await told
