"""Tasks that agents have started and not awaited: the batch waits for them before it ends."""

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
"""How long to wait for them if agents have no timeout."""

SHORT_PATIENCE_S = 1.0
"""How long to wait for those that have not ended in time before."""

REPORT_EVERY_S = 60.0

_slow: dict[str, float] = {}
"""Tasks that did not end in time, in this process, and when that was reported."""


class LeftBehind(QueryError):
    """A table or a topic that was used by a task after its record was processed."""

    def __init__(self) -> None:
        super().__init__(
            "a task started by an agent used a table or a topic after all records were processed",
            hint="await it in the agent and use its result there; or send to another agent",
        )


class _NoRecord:
    """The stand-in for the running agent group when there is no current record."""

    def __getattr__(self, name: str) -> NoReturn:
        raise LeftBehind


async def finish_tasks(running: Running, patience_s: float | None) -> None:
    """Wait for all tasks of this event loop, up to the timeout of agents, then cancel those that are not done."""
    if not _left():
        return
    running.stand_in = _NoRecord()
    await _wait(PATIENCE_S if patience_s is None else patience_s, slow=False)
    await _wait(SHORT_PATIENCE_S, slow=True)
    running.stand_in = None


async def _wait(patience_s: float, *, slow: bool) -> None:
    """Wait for tasks that ended in time before, or for the others."""
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
            message = describe_error(error)
            _logger.error("%s, started by an agent and not awaited, failed: %s", _name(task), message)


def _give_up(waiting: Iterable[asyncio.Task[Any]]) -> None:
    for name in sorted({_name(task) for task in waiting}):
        if time.monotonic() - _slow.get(name, -REPORT_EVERY_S) < REPORT_EVERY_S:
            continue
        _slow[name] = time.monotonic()
        _logger.warning(
            "%s, started by an agent and not awaited, is still running, and is cancelled with its batch. Await "
            "it in the agent; move work that never ends to a function with @app.task",
            name,
        )
