"""Run the query of an app, or only its timers, tasks and pages if it reads no topic."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any

from potok.errors import TopologyError
from potok.faust.build.lint import lost_changes

if TYPE_CHECKING:
    from potok.faust.app import App

OTHER_NAME = (
    "one worker runs an app, on all cores: stop that process first, or give this app another name "
    'or version: App("other-name"), App(..., version=2)'
)


class TakesNoTopic(TopologyError):
    """An app that reads no topic, where a topology is needed."""

    def __init__(self, app: App) -> None:
        agents = list(app.agents.values())
        if agents:
            names = ", ".join(f'"{agent.name}"' for agent in agents)
            super().__init__(
                f"agents read only channels ({names}), and no agent that reads a topic can put values into them",
                hint="timers, tasks and pages have to send to a topic: "
                f'app.topic("{agents[0].name}", value_type=...) instead of app.channel(value_type=...)',
                at=agents[0].at,
            )
        else:
            super().__init__(
                f'app "{app.id}" has no agent that reads a topic',
                hint="@app.agent(topic) makes one; an app that has only timers, tasks and pages is run by "
                "its own command: python shop.py worker",
            )


class Idle:
    """Takes the place of the query of an app without one: it ends when it is stopped."""

    stop_timeout_ms = 0

    def __init__(self, *, until_end: bool) -> None:
        self._ended = threading.Event()
        if until_end:
            self._ended.set()

    def stop(self) -> None:
        self._ended.set()

    def wait(self, timeout: float | None = None) -> bool:
        return self._ended.wait(timeout)


def started(app: App, *, until_end: bool) -> Any:
    """Return the started query of an app, or an `Idle` if it reads no topic."""
    if not app.agents and not app.steps():
        return Idle(until_end=until_end)
    # Load Spark only if it is needed.
    from potok.runtime.queries.lock import QueryAlreadyRuns
    from potok.spark.run import start

    warn_of_lost_changes(app)
    given: dict[str, Any] = {"broker": app.broker, "state": app.state, "kafka": app.kafka}
    try:
        return start(app, until_end=until_end, start=app.start_at, **given)
    except QueryAlreadyRuns as error:
        raise QueryAlreadyRuns(error.query, error.holder, OTHER_NAME) from error


def warn_of_lost_changes(app: App) -> None:
    """Log warnings about variables that agents change without effect."""
    for agent in app.agents.values():
        for text in lost_changes(agent):
            app.logger.warning("%s", text)
