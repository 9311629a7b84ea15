"""Caches for parsed statements and planned pull queries."""

from __future__ import annotations

import threading
import weakref
from collections import OrderedDict
from collections.abc import Iterable, Mapping
from typing import Any, Generic, TypeVar

from potok.sql.functions.registry import users_functions
from potok.sql.properties import Properties
from potok.sql.syntax import ast
from potok.sql.syntax.parse import parse_script
from potok.sql.syntax.walk import parts_of
from potok.state.entry import metadata_key_of
from potok.statements.database import Database
from potok.statements.pull.plan import PullPlan, plan_pull
from potok.statements.pull.tables import Readers

V = TypeVar("V")

MOST_STATEMENTS = 1_000
MOST_CHARACTERS = 500_000
"""Limit for the text of all cached statements: a parsed statement is some hundred times larger."""


class Recent(Generic[V]):
    """A thread-safe LRU cache with limits for the number of values and their total weight."""

    def __init__(self, most: int, weight: int = MOST_CHARACTERS) -> None:
        self._most, self._weight, self._used = most, weight, 0
        self._values, self._lock = OrderedDict[Any, tuple[V, int]](), threading.Lock()

    def get(self, key: Any) -> V | None:
        with self._lock:
            found = self._values.get(key)
            if found is None:
                return None
            self._values.move_to_end(key)
            return found[0]

    def keep(self, key: Any, value: V, weight: int = 1) -> V:
        """Cache a value, unless its weight alone is too large."""
        with self._lock:
            if weight > self._weight // 10:
                return value
            self._used += weight - self._values.pop(key, (None, 0))[1]
            self._values[key] = value, weight
            while len(self._values) > self._most or self._used > self._weight:
                self._used -= self._values.popitem(last=False)[1][1]
        return value


def weight_of(text: str, variables: Iterable[tuple[str, str]]) -> int:
    """Return the weight of a text and its variables."""
    return len(text) + sum(len(name) + len(value) for name, value in variables)


_scripts: Recent[tuple[ast.Parsed, ...]] = Recent(MOST_STATEMENTS)
_databases: weakref.WeakKeyDictionary[Database, Prepared] = weakref.WeakKeyDictionary()
_opening = threading.Lock()


def parsed_script(text: str, variables: Mapping[str, str] | None = None) -> tuple[ast.Parsed, ...]:
    """Parse a script. The same text returns the identical statements, by which their plans are found."""
    key = (text, tuple(sorted((variables or {}).items())) if "${" in text else ())
    return _scripts.get(key) or _scripts.keep(key, tuple(parse_script(text, variables)), weight_of(*key))


class Prepared:
    """Cached plans of the pull queries of a database, valid until the catalog changes."""

    def __init__(self, database: Database) -> None:
        self._database = weakref.ref(database)
        self._broker = database.broker
        self.readers = Readers(database.broker)
        self._plans: Recent[tuple[ast.Select, int, Mapping[str, Any], Properties, PullPlan]] = Recent(MOST_STATEMENTS)

    def plan(self, query: ast.Select, properties: Properties) -> PullPlan:
        """Return the plan, cached by the identity of a query: equal queries may have literals of different types."""
        database = self._database()
        assert database is not None
        generation, functions = database.generation, users_functions()
        known = self._plans.get(id(query))
        if known is not None and known[0] is query and known[1:4] == (generation, functions, properties):
            return known[4]
        plan = plan_pull(database.catalog, query, properties)
        self._plans.keep(id(query), (query, generation, functions, properties, plan), _weight(query))
        return plan

    def has_started(self, query: str) -> bool:
        """Return whether a query has a ledger; a dropped query has none."""
        return self._broker.get_metadata(metadata_key_of(query, "ledger")) is not None


def _weight(query: ast.Select) -> int:
    """Estimate the number of characters of a query."""
    found, left = 0, list[ast.Node]([query])
    while left:
        node = left.pop()
        found += 8 + (len(node.value) if isinstance(node, ast.Literal) and isinstance(node.value, str) else 0)
        left.extend(parts_of(node))
    return found


def prepared_for(database: Database) -> Prepared:
    with _opening:
        found = _databases.get(database)
        if found is None:
            found = _databases[database] = Prepared(database)
        return found
