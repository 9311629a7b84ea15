"""Statements that were parsed and checked before, so that the next time costs neither."""

from __future__ import annotations

import threading
import weakref
from collections import OrderedDict
from collections.abc import Mapping
from typing import Any, Generic, TypeVar

from potok.sql.functions.registry import users_functions
from potok.sql.properties import Properties
from potok.sql.syntax import ast
from potok.sql.syntax.parse import parse_script
from potok.state.entry import mark_of
from potok.statements.database import Database
from potok.statements.pull_plan import PullPlan, plan_pull
from potok.statements.pull_tables import Readers

V = TypeVar("V")

MOST_STATEMENTS = 1_000


class _Recent(Generic[V]):
    """The last values that were asked for. May be called from any thread."""

    def __init__(self, most: int) -> None:
        self._most, self._values, self._lock = most, OrderedDict[Any, V](), threading.Lock()

    def get(self, key: Any) -> V | None:
        with self._lock:
            found = self._values.get(key)
            if found is not None:
                self._values.move_to_end(key)
            return found

    def keep(self, key: Any, value: V) -> V:
        with self._lock:
            self._values[key] = value
            if len(self._values) > self._most:
                self._values.popitem(last=False)
        return value


_scripts: _Recent[tuple[ast.Parsed, ...]] = _Recent(MOST_STATEMENTS)
_databases: weakref.WeakKeyDictionary[Database, Prepared] = weakref.WeakKeyDictionary()
_opening = threading.Lock()


def parsed_script(text: str, variables: Mapping[str, str] | None = None) -> tuple[ast.Parsed, ...]:
    """The statements of a script. The same text gives the very same statements, which is how their plans are found."""
    key = (text, tuple(sorted((variables or {}).items())) if "${" in text else ())
    return _scripts.get(key) or _scripts.keep(key, tuple(parse_script(text, variables)))


class Prepared:
    """What is known of the pull queries of a database: plans, as long as the catalogue stays as it is."""

    def __init__(self, database: Database) -> None:
        self._database = weakref.ref(database)
        self._broker = database.broker
        self.readers = Readers(database.broker)
        self._plans: _Recent[tuple[ast.Select, int, Mapping[str, Any], Properties, PullPlan]] = _Recent(MOST_STATEMENTS)

    def plan(self, query: ast.Select, properties: Properties) -> PullPlan:
        """By identity: literals of different types may be equal to each other, and the statements would be too."""
        database = self._database()
        assert database is not None
        generation, functions = database.generation, users_functions()
        known = self._plans.get(id(query))
        if known is not None and known[0] is query and known[1:4] == (generation, functions, properties):
            return known[4]
        plan = plan_pull(database.catalog, query, properties)
        self._plans.keep(id(query), (query, generation, functions, properties, plan))
        return plan

    def has_begun(self, query: str) -> bool:
        """Whether a query has a ledger; one that was dropped has none any more."""
        return self._broker.mark(mark_of(query, "ledger")) is not None


def prepared_for(database: Database) -> Prepared:
    with _opening:
        found = _databases.get(database)
        if found is None:
            found = _databases[database] = Prepared(database)
        return found
