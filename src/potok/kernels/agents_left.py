"""Tasks that agents have started beside themselves and not waited for: their batch waits for them before it ends."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterable
from typing import Any, NoReturn

from potok.errors import QueryError
from potok.kernels import agents_running
from potok.kernels.agents_running import Running
from potok.kernels.call import describe_error

_logger = logging.getLogger("potok.app")

PATIENCE_S = 30.0
"""How long they are waited for if agents may wait for ever."""

_endless: set[str] = set()
"""Those that were waited for in vain, in this process: no other batch waits for them."""


class LeftBehind(QueryError):
    """A table or a topic that was used by a task whose record is dealt with."""

    def __init__(self) -> None:
        super().__init__(
            "a task that an agent had started used a table or a topic when all records were dealt with",
            hint="await it in the agent, and write down there what it returns; or send to another agent",
        )


class _NoRecord:
    """Stands where the running crew is found, when there is no record left to do something for."""

    def __getattr__(self, name: str) -> NoReturn:
        raise LeftBehind


async def finish_tasks(running: Running, patience_s: float | None) -> None:
    """Wait for all tasks of this event loop, as long as an agent may wait; those that are not done then are ended."""
    if not (left := _left()):
        return
    no_record: Any = _NoRecord()
    agents_running.current = no_record
    loop = asyncio.get_running_loop()
    until = loop.time() + (PATIENCE_S if patience_s is None else patience_s)
    while left:
        done, waiting = await asyncio.wait(left, timeout=max(0.0, until - loop.time()))
        _tell_failures(done)
        if loop.time() >= until:
            _give_up(waiting)
        left = _left()
    agents_running.current = running


def _left() -> set[asyncio.Task[Any]]:
    return {task for task in asyncio.all_tasks() - {asyncio.current_task()} if _name(task) not in _endless}


def _name(task: asyncio.Task[Any]) -> str:
    return str(getattr(task.get_coro(), "__qualname__", "a task"))


def _tell_failures(done: Iterable[asyncio.Task[Any]]) -> None:
    for task in done:
        error = None if task.cancelled() else task.exception()
        if error is not None:
            told = describe_error(error)
            _logger.error("%s, which an agent has started and not waited for, has failed: %s", _name(task), told)


def _give_up(waiting: Iterable[asyncio.Task[Any]]) -> None:
    for name in sorted({_name(task) for task in waiting}):
        _endless.add(name)
        _logger.warning(
            "%s, which an agent has started and not waited for, is still at work: from now on it is ended with each "
            "batch. Await it in the agent; what never ends belongs in a function with @app.task",
            name,
        )
