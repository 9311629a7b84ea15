"""Programs in Faust's style: `import potok.app as faust`."""

from potok.app.agent import Agent
from potok.app.app import App
from potok.app.event import Event, current_event
from potok.app.record import Record, ValidationError
from potok.app.stream import Stream
from potok.app.tables import SetTable, Table
from potok.app.topic import Topic
from potok.app.web import Response, View, Web

__all__ = [
    "Agent",
    "App",
    "Event",
    "Record",
    "Response",
    "SetTable",
    "Stream",
    "Table",
    "Topic",
    "ValidationError",
    "View",
    "Web",
    "current_event",
]
