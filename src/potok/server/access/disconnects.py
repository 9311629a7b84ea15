"""Stop the work for a request when its client disconnects."""

from __future__ import annotations

from collections.abc import MutableMapping
from contextvars import ContextVar
from typing import Any

from potok.sql.budget import Stop

STOP = "potok.stop"
"""Scope key under which the protocols store the `Stop` of a request, which they call on disconnect."""

_stop: ContextVar[Stop | None] = ContextVar("stop", default=None)


def remember_stop(scope: MutableMapping[str, Any]) -> None:
    """Stop the work for a request when its client disconnects; call it in the task of that request."""
    _stop.set(scope.get(STOP))


def current_stop() -> Stop | None:
    """Return the stop of the current request; None if its server does not report disconnects."""
    return _stop.get()
