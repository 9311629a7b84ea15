"""Connectors of a catalog: the interface that runs them, and their rows in SHOW and DESCRIBE."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from potok.sql.catalog import Connector
from potok.sql.errors import Refused
from potok.sql.syntax import ast
from potok.statements.inspect.listing import listed, texts
from potok.statements.results import Rows

if TYPE_CHECKING:
    from potok.statements.database import Database

WORKER = "potok:0"


@dataclass(frozen=True, slots=True)
class ConnectorInfo:
    """A connector, without secrets. `state` is RUNNING, FAILED, or UNASSIGNED if no process here runs it."""

    name: str
    class_name: str
    config: dict[str, str]
    topics: tuple[str, ...] = ()
    state: str = "UNASSIGNED"
    error: str = ""
    counts: dict[str, Any] = field(default_factory=dict)


class Connectors(ABC):
    """Runs connectors. Implemented by the gateway, which this package does not import."""

    @abstractmethod
    def check(self, connector: Connector) -> None:
        """Raise `PotokError` for options that cannot work."""

    @abstractmethod
    def describe(self, connector: Connector) -> ConnectorInfo: ...

    @abstractmethod
    def settle(self, wanted: Mapping[str, Connector]) -> None:
        """Run these connectors and no others. One that cannot start is shown with the reason, and is retried."""

    @abstractmethod
    def close(self) -> None:
        """Stop all connectors."""


class NoConnectors(Connectors):
    """The connectors of a process that cannot run them."""

    def check(self, connector: Connector) -> None:
        raise Refused("this process cannot run connectors", hint="potok serve and potok sql can")

    def describe(self, connector: Connector) -> ConnectorInfo:
        return ConnectorInfo(connector.name, str(connector.options.get("type", "")), {})

    def settle(self, wanted: Mapping[str, Connector]) -> None:
        return

    def close(self) -> None:
        return


def show_connectors(database: Database, statement: ast.Show) -> Rows:
    """SHOW CONNECTORS. All are sources."""
    rows = [
        (info.name, "SOURCE", info.class_name, f"{info.state} ({int(info.state == 'RUNNING')}/1 tasks RUNNING)")
        for info in (database.connector(name) for name in sorted(database.catalog.connectors))
        if not statement.what.startswith("SINK")
    ]
    return listed("connectors", texts("Connector Name", "Type", "Class", "Status"), rows)


def describe_connector(database: Database, statement: ast.Describe) -> Rows:
    """DESCRIBE CONNECTOR: its task, and its options and counts as details."""
    database.catalog.connector(statement.name, statement.at)
    info = database.connector(statement.name)
    details = [
        ("Name", info.name),
        ("Class", info.class_name),
        ("Type", "source"),
        ("State", info.state),
        ("WorkerId", WORKER),
        ("Topics", ", ".join(info.topics)),
        *((f"Option {name}", value) for name, value in info.config.items()),
        *((name.replace("_", " ").capitalize(), value) for name, value in info.counts.items()),
    ]
    columns = texts("Task ID", "State", "Error Trace", numbers=["Task ID"])
    return listed("connector", columns, [(0, info.state, info.error)], details)
