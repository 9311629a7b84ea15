"""Where statements are executed: in this process, or on a server."""

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
    """The names of a stream or table that completion needs."""

    kind: str
    columns: Mapping[str, pa.DataType]


@dataclass(frozen=True, slots=True)
class Names:
    """The names that a statement can use."""

    sources: Mapping[str, SourceNames] = field(default_factory=dict)
    topics: tuple[str, ...] = ()
    queries: tuple[str, ...] = ()
    types: tuple[str, ...] = ()


class Target(ABC):
    """Executes statements. Variables and properties last until it is closed."""

    def __init__(self) -> None:
        self.variables = SessionVariables()
        self.properties: dict[str, str] = {}

    @abstractmethod
    def run(self, parsed: ast.Parsed) -> Result:
        """Execute one statement other than RUN SCRIPT."""

    @abstractmethod
    def names(self) -> Names:
        """Return the known names. Called after each key press, so it must be fast; the names may be slightly stale."""

    @abstractmethod
    def status(self) -> str:
        """Return one line with the location of the target and the state of its queries."""

    @abstractmethod
    def start(self) -> None:
        """Start the existing queries. Called when an interactive prompt opens."""

    @abstractmethod
    def settle(self) -> None:
        """Wait until the queries have processed the existing records. Called before a script reads, and at its end."""

    @abstractmethod
    def dead_letters(self) -> Mapping[str, int]:
        """Count the dead letters of each query that statements of this session could have caused."""

    def dead_letters_command(self, query: str) -> str:
        """Return the command that lists the dead letters of a query."""
        return shlex.join(["potok", "dead-letters", "list", "--query", query])

    @abstractmethod
    def close(self) -> None: ...
