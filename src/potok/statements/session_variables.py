"""The variables of a session."""

from __future__ import annotations

from typing import Any


class SessionVariables(dict[str, str]):
    """Values by name. Names are case-insensitive; the case of the last definition is kept.

    >>> variables = SessionVariables()
    >>> variables["topic"] = "orders"
    >>> variables["TOPIC"] = "users"
    >>> variables
    {'TOPIC': 'users'}
    """

    def __init__(self) -> None:
        super().__init__()
        self._spellings: dict[str, str] = {}

    def __setitem__(self, name: str, value: str) -> None:
        self.discard(name)
        self._spellings[name.upper()] = name
        super().__setitem__(name, value)

    def __delitem__(self, name: str) -> None:
        super().__delitem__(name)
        del self._spellings[name.upper()]

    def discard(self, name: str) -> bool:
        """Remove a variable by its case-insensitive name; return whether it existed."""
        spelled = self._spellings.get(name.upper())
        if spelled is not None:
            del self[spelled]
        return spelled is not None

    def __ior__(self, other: Any) -> SessionVariables:  # type: ignore[override, misc]
        for name, value in dict(other).items():
            self[name] = value
        return self
