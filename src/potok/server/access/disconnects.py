"""Whether the client of a request is still there: its connection knows, and the work for it stops when it is not."""

from __future__ import annotations

from collections.abc import MutableMapping
from contextvars import ContextVar
from typing import Any

from potok.sql.budget import Stop

STOP = "potok.stop"
"""Where the protocols leave a `Stop` in the scope of a request. They ask for it when the client is gone."""

_stop: ContextVar[Stop | None] = ContextVar("stop", default=None)


def remember_stop(scope: MutableMapping[str, Any]) -> None:
    """Let the work for a request stop when its client leaves; called in the task of that request."""
    _stop.set(scope.get(STOP))


def current_stop() -> Stop | None:
    """The stop of the request whose task this is; None if its server does not say when clients leave."""
    return _stop.get()
