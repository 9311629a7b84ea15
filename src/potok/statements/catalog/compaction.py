"""Compact the command log: retain the commands that still matter, with their sequence numbers.

All commands are replayed, and the states before and after each one show what it created, changed and ended. Whatever
exists at the end keeps the command that created it, and a command keeps what it depends on. The rest is removed, if
replaying the remaining commands is verified to produce the same catalog.
"""

from __future__ import annotations

import logging
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from potok.errors import LogError, PotokError
from potok.log.broker import Broker
from potok.sql.syntax import ast
from potok.sql.syntax.walk import walk
from potok.statements.catalog.catalog_state import EMPTY, CatalogState, parsed_of
from potok.statements.catalog.command_log import Command, CommandLog
from potok.statements.errors import CatalogChanged
from potok.topology.graph import Topology

log = logging.getLogger(__name__)

_NONE = Topology("", ())

Name = tuple[str, str]
"""`source`, `type`, `connector` or `query`, and the name."""


def compact(commands: CommandLog, broker: Broker) -> int:
    """Remove obsolete commands; return how many are left. A crash leaves either all commands or only those."""
    count, found = commands.count, commands.all()
    if not any(_ends_something(command) for command in found):
        return len(found)
    retained = living(found, broker)
    over = {command.sequence for command in found} - {command.sequence for command in retained}
    try:
        commands.remove(over, len(retained), count)
    except CatalogChanged:
        return len(found)
    if over:
        log.info("%d obsolete statements were removed from the command log, %d are left", len(over), len(retained))
    return len(retained)


def living(commands: list[Command], broker: Broker) -> list[Command]:
    """Return the commands that still matter, in order; all of them if one cannot be executed in this process."""
    try:
        whole = _Replayed.of(commands, broker)
    except LogError:
        raise
    except PotokError as error:
        log.info("the command log is not compacted: %s", error)
        return commands
    for every_replacement in (False, True):
        numbers = _Keeping(whole, every_replacement=every_replacement).numbers()
        retained = [command for command in commands if command.sequence in numbers]
        if _same(retained, whole, broker):
            return retained
    log.warning("the command log is not compacted: without the obsolete statements it would define another catalog")
    return commands


def _same(retained: list[Command], whole: _Replayed, broker: Broker) -> bool:
    """Return whether a subset of the commands produces the same catalog as all of them."""
    numbers = {command.sequence for command in retained}
    try:
        return _Replayed.of(retained, broker).outcome(numbers) == whole.outcome(numbers)
    except LogError:
        raise
    except PotokError:
        return False


def _ends_something(command: Command) -> bool:
    """Return whether a command may make another one obsolete, so that compaction is worth trying."""
    try:
        statement = parsed_of(command).statement
    except PotokError:
        return False
    return isinstance(statement, ast.Drop | ast.Steer) or getattr(statement, "or_replace", False)


@dataclass(slots=True)
class _Thing:
    """A stream, table, type, connector or query since the command that created it. A replacement is another object."""

    made_by: int
    changed_by: list[int] = field(default_factory=list)
    steered_by: list[tuple[int, bool]] = field(default_factory=list)
    """The commands that paused (True) or resumed a query."""
    ended_by: int | None = None
    next: _Thing | None = None
    """Its replacement."""

    def last(self) -> _Thing:
        """Return the last replacement."""
        thing = self
        while thing.next is not None:
            thing = thing.next
        return thing


@dataclass(slots=True)
class _Replayed:
    """The result of commands, and the commands that it depends on."""

    catalog_state: CatalogState = EMPTY
    reads: dict[int, list[_Thing]] = field(default_factory=lambda: defaultdict(list))
    makes: dict[int, list[_Thing]] = field(default_factory=lambda: defaultdict(list))
    there: dict[Name, _Thing] = field(default_factory=dict)
    saw: dict[int, dict[Name, Any]] = field(default_factory=dict)
    """The objects that a command found under the names that it reads; together with its text, they determine its
    query."""

    @classmethod
    def of(cls, commands: Iterable[Command], broker: Broker) -> _Replayed:
        replayed = cls()
        for command in commands:
            replayed._take(command, broker)
        return replayed

    def _take(self, command: Command, broker: Broker) -> None:
        parsed, before = parsed_of(command), _names_in(self.catalog_state)
        number, read = command.sequence, _read_by(parsed.statement)
        self.saw[number] = {name: before[name] for name in read if name in before}
        self.reads[number] = [self.there[name] for name in read if name in self.there]
        self.catalog_state = self.catalog_state.after(parsed, command, broker)
        after = _names_in(self.catalog_state)
        for name in [name for name in before if before[name] is not after.get(name)]:
            self._changed(name, parsed.statement, number, stays=name in after)
        for name in after.keys() - before.keys():
            self._made(name, number)

    def _made(self, name: Name, number: int) -> _Thing:
        thing = self.there[name] = _Thing(number)
        self.makes[number].append(thing)
        return thing

    def _changed(self, name: Name, statement: ast.Statement, number: int, *, stays: bool) -> None:
        thing = self.there[name]
        if not stays:
            thing.ended_by = number
            del self.there[name]
        elif isinstance(statement, ast.Steer):
            thing.steered_by.append((number, statement.action == "PAUSE"))
        elif isinstance(statement, ast.AlterSource):
            thing.changed_by.append(number)
        else:
            thing.next = self._made(name, number)

    def outcome(self, numbers: set[int]) -> tuple[Any, ...]:
        """Return the catalog as comparable data. Functions never compare equal, so a query is represented by what its
        command found."""
        queries = [replace(wanted, topology=_NONE) for wanted in self.catalog_state.queries.values()]
        saw = {number: self.saw[number] for number in numbers}
        catalog = self.catalog_state.catalog
        named = [list(each.items()) for each in (catalog.sources, catalog.types, catalog.connectors)]
        return named, catalog.missing, queries, saw


class _Keeping:
    """Return the commands that the final catalog depends on.

    Args:
        every_replacement: Keep all replacements of an object that was read before it was replaced. Usually the last one
        is enough, unless one in between was required.
    """

    def __init__(self, replayed: _Replayed, *, every_replacement: bool) -> None:
        self._replayed, self._every = replayed, every_replacement
        self._retained, self._things = set[int](), set[int]()
        self._steered: dict[int, list[_Thing]] = defaultdict(list)
        for thing in replayed.there.values():
            for number, _ in thing.steered_by:
                self._steered[number].append(thing)

    def numbers(self) -> set[int]:
        for thing in self._replayed.there.values():
            self._keep_thing(thing)
            if thing.steered_by and thing.steered_by[-1][1]:
                self._keep_steer(thing.steered_by[-1][0])
        return self._retained

    def _keep_thing(self, first: _Thing) -> None:
        """Add an object, the commands that defined it, and everything that they depend on."""
        left = [first]
        while left:
            thing = left.pop()
            if id(thing) in self._things:
                continue
            self._things.add(id(thing))
            for number in (thing.made_by, *thing.changed_by):
                self._retained.add(number)
                left += [*self._replayed.reads[number], *self._replayed.makes[number]]
            if thing.next is not None:
                left.append(thing.next if self._every else thing.last())
            elif thing.ended_by is not None:
                self._retained.add(thing.ended_by)
                left += self._replayed.makes[thing.ended_by]

    def _keep_steer(self, number: int) -> None:
        """Keep the command that resumed a query after PAUSE ALL."""
        left = [number]
        while left:
            number = left.pop()
            if number not in self._retained:
                self._retained.add(number)
                left += [thing.steered_by[-1][0] for thing in self._steered[number]]


def _names_in(catalog_state: CatalogState) -> Mapping[Name, Any]:
    catalog = catalog_state.catalog
    return {
        **{("source", name): source for name, source in catalog.sources.items()},
        **{("type", name): type_ for name, type_ in catalog.types.items()},
        **{("connector", name): connector for name, connector in catalog.connectors.items()},
        **{("query", name): wanted for name, wanted in catalog_state.queries.items()},
    }


def _read_by(statement: ast.Statement) -> set[Name]:
    """Return the streams, tables and types that a statement depends on."""
    parts = list(walk(statement))
    found = {("source", part.name) for part in parts if isinstance(part, ast.Relation)}
    found |= {("type", part.name) for part in parts if isinstance(part, ast.TypeName)}
    if isinstance(statement, ast.InsertSelect | ast.AlterSource):
        found.add(("source", statement.name))
    return found
