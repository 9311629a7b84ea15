"""The command log without what is over: the commands that are left make the same catalogue, under the same numbers.

All commands are carried out once more, and what each of them made, changed and ended is told by the books before and
after it. What is there at the end keeps the command that made it; a command keeps what it reads. The rest goes, if what
is left is seen to make the same books.
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
from potok.statements.errors import CatalogueMoved
from potok.topology.graph import Topology

log = logging.getLogger(__name__)

_NONE = Topology("", ())

Name = tuple[str, str]
"""`source`, `type` or `query`, and the name."""


def compact(commands: CommandLog, broker: Broker) -> int:
    """Remove the commands that are over; returns how many are left. A crash leaves all of them or those alone."""
    count, found = commands.count, commands.all()
    if not any(_ends_something(command) for command in found):
        return len(found)
    kept = living(found, broker)
    over = {command.sequence for command in found} - {command.sequence for command in kept}
    try:
        commands.remove(over, len(kept), count)
    except CatalogueMoved:
        return len(found)
    if over:
        log.info("%d statements that are over were removed from the command log, %d are left", len(over), len(kept))
    return len(kept)


def living(commands: list[Command], broker: Broker) -> list[Command]:
    """Those that still matter, in their order; all of them where one cannot be carried out here."""
    try:
        whole = _Replayed.of(commands, broker)
    except LogError:
        raise
    except PotokError as error:
        log.info("the command log stays as it is: %s", error)
        return commands
    for every_replacement in (False, True):
        numbers = _Keeping(whole, every_replacement=every_replacement).numbers()
        kept = [command for command in commands if command.sequence in numbers]
        if _same(kept, whole, broker):
            return kept
    log.warning("the command log stays as it is: without what is over it would make another catalogue")
    return commands


def _same(kept: list[Command], whole: _Replayed, broker: Broker) -> bool:
    """Whether some of the commands make what all of them do."""
    numbers = {command.sequence for command in kept}
    try:
        return _Replayed.of(kept, broker).outcome(numbers) == whole.outcome(numbers)
    except LogError:
        raise
    except PotokError:
        return False


def _ends_something(command: Command) -> bool:
    """Whether a command may leave another one without a meaning, so that it is worth a look."""
    try:
        statement = parsed_of(command).statement
    except PotokError:
        return False
    return isinstance(statement, ast.Drop | ast.Steer) or getattr(statement, "or_replace", False)


@dataclass(slots=True)
class _Thing:
    """A stream, table, type or query, from the command that made it on. What takes its place is another one."""

    made_by: int
    changed_by: list[int] = field(default_factory=list)
    steered_by: list[tuple[int, bool]] = field(default_factory=list)
    """The commands that let a query rest (True) or go on."""
    ended_by: int | None = None
    next: _Thing | None = None
    """What took its place."""

    def last(self) -> _Thing:
        """What has taken its place in the end."""
        thing = self
        while thing.next is not None:
            thing = thing.next
        return thing


@dataclass(slots=True)
class _Replayed:
    """What commands come to, and how."""

    books: CatalogState = EMPTY
    reads: dict[int, list[_Thing]] = field(default_factory=lambda: defaultdict(list))
    makes: dict[int, list[_Thing]] = field(default_factory=lambda: defaultdict(list))
    there: dict[Name, _Thing] = field(default_factory=dict)
    saw: dict[int, dict[Name, Any]] = field(default_factory=dict)
    """What a command found under the names that it reads: with its text, that is all its query is made of."""

    @classmethod
    def of(cls, commands: Iterable[Command], broker: Broker) -> _Replayed:
        replayed = cls()
        for command in commands:
            replayed._take(command, broker)
        return replayed

    def _take(self, command: Command, broker: Broker) -> None:
        parsed, before = parsed_of(command), _names_in(self.books)
        number, read = command.sequence, _read_by(parsed.statement)
        self.saw[number] = {name: before[name] for name in read if name in before}
        self.reads[number] = [self.there[name] for name in read if name in self.there]
        self.books = self.books.after(parsed, command, broker)
        after = _names_in(self.books)
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
        """The books as data. Functions are never equal to each other, so a query stands there with what its command
        saw."""
        queries = [replace(wanted, topology=_NONE) for wanted in self.books.queries.values()]
        saw = {number: self.saw[number] for number in numbers}
        catalog = self.books.catalog
        return list(catalog.sources.items()), list(catalog.types.items()), catalog.missing, queries, saw


class _Keeping:
    """The commands that what is there at the end goes back to.

    Args:
        every_replacement: Of what was replaced many times, and is kept because somebody read it, whatever took its
            place is kept too. The last one is enough, unless something between could not have happened otherwise.
    """

    def __init__(self, replayed: _Replayed, *, every_replacement: bool) -> None:
        self._replayed, self._every = replayed, every_replacement
        self._kept, self._things = set[int](), set[int]()
        self._steered: dict[int, list[_Thing]] = defaultdict(list)
        for thing in replayed.there.values():
            for number, _ in thing.steered_by:
                self._steered[number].append(thing)

    def numbers(self) -> set[int]:
        for thing in self._replayed.there.values():
            self._keep_thing(thing)
            if thing.steered_by and thing.steered_by[-1][1]:
                self._keep_steer(thing.steered_by[-1][0])
        return self._kept

    def _keep_thing(self, first: _Thing) -> None:
        """A thing, the commands that made it so, and whatever these build on."""
        left = [first]
        while left:
            thing = left.pop()
            if id(thing) in self._things:
                continue
            self._things.add(id(thing))
            for number in (thing.made_by, *thing.changed_by):
                self._kept.add(number)
                left += [*self._replayed.reads[number], *self._replayed.makes[number]]
            if thing.next is not None:
                left.append(thing.next if self._every else thing.last())
            elif thing.ended_by is not None:
                self._kept.add(thing.ended_by)
                left += self._replayed.makes[thing.ended_by]

    def _keep_steer(self, number: int) -> None:
        """Who rests since PAUSE ALL, and goes on since, needs what lets it go on."""
        left = [number]
        while left:
            number = left.pop()
            if number not in self._kept:
                self._kept.add(number)
                left += [thing.steered_by[-1][0] for thing in self._steered[number]]


def _names_in(books: CatalogState) -> Mapping[Name, Any]:
    catalog = books.catalog
    return {
        **{("source", name): source for name, source in catalog.sources.items()},
        **{("type", name): type_ for name, type_ in catalog.types.items()},
        **{("query", name): wanted for name, wanted in books.queries.items()},
    }


def _read_by(statement: ast.Statement) -> set[Name]:
    """The streams, tables and types that a statement builds on."""
    parts = list(walk(statement))
    found = {("source", part.name) for part in parts if isinstance(part, ast.Relation)}
    found |= {("type", part.name) for part in parts if isinstance(part, ast.TypeName)}
    if isinstance(statement, ast.InsertSelect | ast.AlterSource):
        found.add(("source", statement.name))
    return found
