"""Where statements are executed: in this process, or on a server."""

from __future__ import annotations

import shlex
import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from concurrent.futures import Future, InvalidStateError
from dataclasses import dataclass, field
from typing import TypeVar

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


T = TypeVar("T")


def in_background(work: Callable[[], T]) -> Future[T]:
    """The result of a function that runs in a daemon thread."""
    future: Future[T] = Future()

    def run() -> None:
        try:
            future.set_result(work())
        except InvalidStateError:
            raise
        except BaseException as error:  # noqa: BLE001 - it is raised again by whoever asks for the result
            future.set_exception(error)

    threading.Thread(target=run, name="potok-prompt", daemon=True).start()
    return future
