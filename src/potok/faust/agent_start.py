"""The coroutine of an agent, and where its results go."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Coroutine, Sequence
from inspect import isawaitable
from typing import Any

from potok.faust.messaging.replies import reply
from potok.faust.messaging.sending import Destination
from potok.faust.stream import Stream
from potok.operators.agents.drive import Inlet

AgentFunction = Callable[[Any], Any]


class StartAgent:
    """Starts an agent over an inlet; it is pickled and sent to the workers."""

    def __init__(self, app: str, function: AgentFunction, sinks: Sequence[Any]) -> None:
        self._app, self._function, self._sinks = app, function, tuple(sinks)

    def __call__(self, inlet: Inlet) -> Coroutine[Any, Any, Any]:
        return start_agent(self._app, self._function, self._sinks, Stream(inlet))


def start_agent(app: str, function: AgentFunction, sinks: Sequence[Any], stream: Stream) -> Coroutine[Any, Any, Any]:
    """Return the coroutine of an agent; what it yields goes to its sinks."""
    made = function(stream)
    if isinstance(made, AsyncIterator):
        return _deliver(app, made, sinks)
    return made  # type: ignore[no-any-return]


async def _deliver(app: str, results: AsyncIterator[Any], sinks: Sequence[Any]) -> None:
    async for result in results:
        reply(app, result)
        for sink in sinks:
            if isinstance(sink, Destination):
                await sink.send(value=result)
            else:
                answer = sink(result)
                if isawaitable(answer):
                    await answer
