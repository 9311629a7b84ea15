"""Tasks that agents have started beside themselves and not waited for: their batch waits for them before it ends."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Iterable
from typing import Any, NoReturn

from potok.errors import QueryError
from potok.operators.agents.context import Running
from potok.operators.core.call import describe_error

_logger = logging.getLogger("potok.faust")

PATIENCE_S = 30.0
"""How long they are waited for if agents may wait for ever."""

SHORT_PATIENCE_S = 1.0
"""How long those are waited for that have not ended in time before."""

TELL_EVERY_S = 60.0

_slow: dict[str, float] = {}
"""Those that were waited for in vain, in this process, and when that was told."""


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
    if not _left():
        return
    running.stand_in = _NoRecord()
    await _wait(PATIENCE_S if patience_s is None else patience_s, slow=False)
    await _wait(SHORT_PATIENCE_S, slow=True)
    running.stand_in = None


async def _wait(patience_s: float, *, slow: bool) -> None:
    """Wait for those that were done in time before, or for the others."""
    loop = asyncio.get_running_loop()
    until = loop.time() + patience_s
    while left := {task for task in _left() if (_name(task) in _slow) == slow}:
        done, waiting = await asyncio.wait(left, timeout=max(0.0, until - loop.time()))
        _report_failures(done)
        for task in done:
            _slow.pop(_name(task), None)
        if loop.time() >= until:
            _give_up(waiting)
            return


def _left() -> set[asyncio.Task[Any]]:
    return asyncio.all_tasks() - {asyncio.current_task()}


def _name(task: asyncio.Task[Any]) -> str:
    return str(getattr(task.get_coro(), "__qualname__", "a task"))


def _report_failures(done: Iterable[asyncio.Task[Any]]) -> None:
    for task in done:
        error = None if task.cancelled() else task.exception()
        if error is not None:
            told = describe_error(error)
            _logger.error("%s, which an agent has started and not waited for, has failed: %s", _name(task), told)


def _give_up(waiting: Iterable[asyncio.Task[Any]]) -> None:
    for name in sorted({_name(task) for task in waiting}):
        if time.monotonic() - _slow.get(name, -TELL_EVERY_S) < TELL_EVERY_S:
            continue
        _slow[name] = time.monotonic()
        _logger.warning(
            "%s, which an agent has started and not waited for, is still at work, and is ended with its batch. Await "
            "it in the agent; what never ends belongs in a function with @app.task",
            name,
        )
