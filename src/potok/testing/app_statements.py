"""The SQL statements of an app under test: each is its own query, driven together with the agents."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from potok.log.broker import Broker
from potok.settings import Settings
from potok.snapshots.table_view import TableView
from potok.snapshots.tables import Tables
from potok.statements.session import SqlSession
from potok.topology.graph import Topology

if TYPE_CHECKING:
    from potok.faust.app import App
    from potok.testing.query_driver import QueryDriver


@dataclass(frozen=True, slots=True)
class Query:
    """The query of one statement, and its start offsets."""

    topology: Topology
    start_at: Literal["earliest", "latest"]

    def build(self) -> Topology:
        return self.topology


class AppStatements:
    """The statements of `app.sql`, over the log of a test."""

    def __init__(self, app: App, broker: Broker, settings: Settings, drive: Callable[[Query], QueryDriver]) -> None:
        from potok.faust.sql import AppDatabase

        self._broker = broker
        self._database = AppDatabase(app, broker, settings)
        wanted = self._database.catalog_state().queries.values()
        self.drivers: list[QueryDriver] = []
        try:
            for query in wanted:
                self.drivers.append(drive(Query(query.topology, app.start_at)))
        except BaseException:
            self.leave()
            raise

    def rows(self, sql: str) -> list[dict[str, Any]]:
        """Return the rows of a pull query over the topics and tables of the app."""
        return SqlSession(self._database).rows(sql)

    def table(self, name: str) -> TableView | None:
        """Return a table that a statement stores, by its exact name or as a statement would fold its case."""
        known = self._database.catalog.sources
        source = known.get(name) or known.get(name.upper())
        return None if source is None or not source.table_of else Tables(self._broker, source.table_of)[source.name]

    def leave(self) -> None:
        for driver in self.drivers:
            driver.leave()
        self._database.close()


def app_of(program: object) -> App | None:
    """Return the program, if it is an app with statements."""
    from potok.faust.app import App

    return program if isinstance(program, App) and program.statements.defined else None
