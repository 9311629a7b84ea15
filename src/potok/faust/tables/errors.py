"""Errors of tables, and the marker of an argument that was not given."""

from __future__ import annotations

from typing import Any

from potok.errors import StateError

NOT_GIVEN: Any = object()


class NotHere(StateError):
    """A table that is not available in the task that uses it."""

    def __init__(self, table: str, why: str) -> None:
        super().__init__(
            f'table "{table}" is not available here: {why}',
            hint=f"name it where the agent is defined: @app.agent(..., tables=[{table}])",
        )


class OnlyAgentsWrite(StateError):
    """A table that was changed outside of agents."""

    def __init__(self, table: str) -> None:
        super().__init__(
            f'table "{table}" can be changed only by agents',
            hint="send a record to a topic whose agent makes the change",
        )
