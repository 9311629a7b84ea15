"""Programs in Faust's style: `import potok.app as faust`."""

from potok.app.agent import Agent
from potok.app.app import App
from potok.app.event import Event, current_event
from potok.app.record import Record, ValidationError
from potok.app.stream import Stream
from potok.app.tables import SetTable, Table
from potok.app.topic import Topic

__all__ = [
    "Agent",
    "App",
    "Event",
    "Record",
    "SetTable",
    "Stream",
    "Table",
    "Topic",
    "ValidationError",
    "current_event",
]
