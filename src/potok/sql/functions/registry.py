"""The registry of functions by name. The reference page and LIST FUNCTIONS are generated from it."""

from __future__ import annotations

from importlib import import_module
from typing import Final

from potok.sql.functions.function import SqlFunction

FAMILIES: Final = (
    "numbers.math",
    "text.text",
    "text.regex",
    "text.url",
    "text.bytes",
    "dates.date_time",
    "json.json",
    "numbers.geo",
    "null",
    "collections.array",
    "collections.map",
    "collections.lambdas",
    "aggregates.aggregates",
    "tables",
)
"""Modules of this package; each has a tuple `FUNCTIONS`."""

_found: dict[str, SqlFunction] = {}
_users: dict[str, SqlFunction] = {}


def function_named(name: str) -> SqlFunction | None:
    """Return a function by its name in upper case; user-defined functions have priority."""
    return _users.get(name) or all_functions().get(name)


def all_functions() -> dict[str, SqlFunction]:
    """Return the built-in functions by name."""
    if not _found:
        for family in FAMILIES:
            for function in import_module(f"potok.sql.functions.{family}").FUNCTIONS:
                if function.name in _found:
                    raise ValueError(f"two functions are called {function.name}")
                _found[function.name] = function
    return _found


def users_functions() -> dict[str, SqlFunction]:
    return dict(_users)


def add_function(function: SqlFunction) -> None:
    """Register a user-defined function; it replaces one of the same name."""
    _users[function.name] = function
