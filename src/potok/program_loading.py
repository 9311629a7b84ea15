"""Whether a command is loading a program, whose top-level code must not run queries meanwhile."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

_loading: ContextVar[bool] = ContextVar("loading", default=False)


def is_loading() -> bool:
    """Whether this thread executes the top-level code of a program for a command."""
    return _loading.get()


@contextmanager
def loading_program() -> Iterator[None]:
    """Execute the top-level code of a program inside."""
    token = _loading.set(True)
    try:
        yield
    finally:
        _loading.reset(token)
