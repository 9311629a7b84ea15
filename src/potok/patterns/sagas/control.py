"""The records by which operators retry, skip and abort instances."""

from __future__ import annotations

import uuid
from typing import Any

from potok.errors import QueryError
from potok.patterns.sagas.processor import ACTION, ACTIONS, CONTROL


class UnknownAction(QueryError):
    """An action that operators do not have."""

    def __init__(self, action: str) -> None:
        super().__init__(f'"{action}" is not an action', hint=f"there are: {', '.join(ACTIONS)}")


def control_topic(saga: str) -> str:
    return f"{saga}-control"


def action_of(by: str, key: Any, action: str, id_: str | None = None) -> tuple[str, dict[str, Any]]:
    """Return the key and the value of the record of an action; `by` is the field of its key."""
    if action not in ACTIONS:
        raise UnknownAction(action)
    envelope = {
        "event_id": id_ or str(uuid.uuid4()),
        "event_type": CONTROL,
        "data": {by: key, ACTION: action},
    }
    return str(key), envelope
