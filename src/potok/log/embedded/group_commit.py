"""Group commit: appends that arrive during a write are written together, with one fsync for all."""

from __future__ import annotations

import os
import threading
import weakref
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from potok.errors import LogError
from potok.log.broker import AppendResult
from potok.log.embedded.segments.staged import Unstaged

Write = Callable[[Sequence[Unstaged]], list[AppendResult]]


@dataclass(slots=True, eq=False)
class _Request:
    outputs: Sequence[Unstaged]
    results: list[AppendResult] = field(default_factory=list)
    error: BaseException | None = None
    done: bool = False


class GroupCommit:
    """The first caller leads: it writes its own append and all waiting ones; the others wait for it."""

    def __init__(self, write: Write) -> None:
        self._write = write
        self._reset()
        _groups.add(self)

    def _reset(self) -> None:
        self._changed = threading.Condition()
        self._waiting: list[_Request] = []
        self._led = False

    @property
    def waiting(self) -> int:
        return len(self._waiting)

    def append(self, outputs: Sequence[Unstaged]) -> list[AppendResult]:
        request = _Request(outputs)
        with self._changed:
            self._waiting.append(request)
            while self._led and not request.done:
                self._changed.wait()
            group: list[_Request] = []
            if not request.done:
                self._led = True
                group, self._waiting = self._waiting, []
        if group:
            self._lead(group)
        if request.error is not None:
            raise request.error
        return request.results

    def _lead(self, group: list[_Request]) -> None:
        try:
            self._write_group(group)
        finally:
            with self._changed:
                for request in group:
                    if not request.done:
                        request.error = LogError("the append was interrupted", hint="it may or may not be visible")
                        request.done = True
                self._led = False
                self._changed.notify_all()

    def _write_group(self, group: list[_Request]) -> None:
        try:
            results = self._write([output for request in group for output in request.outputs])
        except (LogError, OSError) as error:
            if len(group) == 1:
                group[0].error = error
                group[0].done = True
                return
            # One bad append must neither fail the others nor be hidden by them.
            for request in group:
                self._write_group([request])
            return
        at = 0
        for request in group:
            request.results = results[at : at + len(request.outputs)]
            at += len(request.outputs)
            request.done = True


_groups: weakref.WeakSet[GroupCommit] = weakref.WeakSet()


def _after_fork_in_child() -> None:
    for group in list(_groups):
        group._reset()


os.register_at_fork(after_in_child=_after_fork_in_child)
