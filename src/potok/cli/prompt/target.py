"""Where statements are carried out: in this process, or by a server."""

from __future__ import annotations

import shlex
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field

import pyarrow as pa

from potok.sql.syntax import ast
from potok.statements.results import Result
from potok.statements.session_variables import SessionVariables


@dataclass(frozen=True, slots=True)
class SourceNames:
    """A stream or a table, as far as it can be typed."""

    kind: str
    columns: Mapping[str, pa.DataType]


@dataclass(frozen=True, slots=True)
class Names:
    """What there is to be named in a statement."""

    sources: Mapping[str, SourceNames] = field(default_factory=dict)
    topics: tuple[str, ...] = ()
    queries: tuple[str, ...] = ()
    types: tuple[str, ...] = ()


class Target(ABC):
    """Variables and properties hold until it is closed."""

    def __init__(self) -> None:
        self.variables = SessionVariables()
        self.properties: dict[str, str] = {}

    @abstractmethod
    def run(self, parsed: ast.Parsed) -> Result:
        """Carry out one statement; RUN SCRIPT is not among them."""

    @abstractmethod
    def names(self) -> Names:
        """Asked for after each key that is typed, so it must be quick; the names may be a little old."""

    @abstractmethod
    def status(self) -> str:
        """One line on where this is, and how its queries are doing."""

    @abstractmethod
    def start(self) -> None:
        """Called when somebody sits down at a prompt: queries that are there should run."""

    @abstractmethod
    def settle(self) -> None:
        """Called before a script reads, and at its end: let the queries that it began take in what there is."""

    @abstractmethod
    def dead_letters(self) -> Mapping[str, int]:
        """Count the dead letters of each query that statements of this session could have caused."""

    def dead_letters_command(self, query: str) -> str:
        """Return the command that lists the dead letters of a query."""
        return shlex.join(["potok", "dead-letters", "list", "--query", query])

    @abstractmethod
    def close(self) -> None: ...
