"""Run the captures that the tables of a catalog ask for, as they are created and dropped."""

from __future__ import annotations

import os
from types import TracebackType
from typing import TYPE_CHECKING, Self

from potok.cli.output import note

if TYPE_CHECKING:
    from potok.sources.cdc.runner import CaptureRunner
    from potok.statements.database import Database
    from potok.topology.capture import Capture


class CatalogCaptures:
    """The captures of `CREATE TABLE ... WITH (CONNECTOR = 'postgres', ...)`."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._generation = -1
        self._runners: dict[Capture, CaptureRunner] = {}

    @property
    def runners(self) -> list[CaptureRunner]:
        return list(self._runners.values())

    def follow(self) -> None:
        """Start and stop captures after the catalog has changed, and raise if one has stopped by itself."""
        for runner in self._runners.values():
            if runner.error is not None:
                raise runner.error
        if self._generation == self._database.generation:
            return
        self._generation = self._database.generation
        from potok.sql.captured import captures_of

        wanted = captures_of(self._database.catalog.sources.values(), dict(os.environ))
        for capture in [capture for capture in self._runners if capture not in wanted]:
            self._runners.pop(capture).stop()
        for capture in wanted:
            if capture not in self._runners:
                self._start(capture)

    def _start(self, capture: Capture) -> None:
        from potok.sources.cdc.runner import CaptureRunner

        runner = self._runners[capture] = CaptureRunner(capture, self._database.broker)
        runner.start()
        note(f"capturing {', '.join(capture.tables)} into topics {capture.name}.*")

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for runner in self._runners.values():
            runner.stop()
