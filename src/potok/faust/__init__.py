"""Faust-style programs: `import potok.faust as faust`."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from potok.faust import models, serializers, types, web
from potok.faust.agent import Agent
from potok.faust.app import App
from potok.faust.faust_paths import FaustPath as FaustPath  # with all modules of this kind
from potok.faust.messaging.channel import Channel
from potok.faust.messaging.event import Event, current_event
from potok.faust.messaging.replies import AskFailed, uuid
from potok.faust.messaging.topic import Topic
from potok.faust.pages.hosted import hosted
from potok.faust.records.codecs import Codec, Schema
from potok.faust.records.fields import FieldDescriptor, ValidationError
from potok.faust.records.record import Record
from potok.faust.services import interrupted as interrupted  # first, because a program may import it before all others
from potok.faust.services.service import Service
from potok.faust.settings.credentials import GSSAPICredentials, SASLCredentials, SSLCredentials
from potok.faust.stream import Stream
from potok.faust.tables.tables import GlobalTable, SetGlobalTable, SetTable, Table
from potok.faust.tables.windowed import HoppingWindow, TumblingWindow, Window
from potok.faust.types import ChannelT, EventT, ServiceT, StreamT, TopicT
from potok.faust.unsupported import REFUSED, CannotImport
from potok.faust.web import Blueprint, Request, Response, View, Web

if TYPE_CHECKING:
    from potok.faust import cli as cli

__all__ = [
    "Agent",
    "App",
    "AskFailed",
    "Blueprint",
    "Channel",
    "ChannelT",
    "Codec",
    "Event",
    "EventT",
    "FieldDescriptor",
    "GSSAPICredentials",
    "GlobalTable",
    "HoppingWindow",
    "Record",
    "Request",
    "Response",
    "SASLCredentials",
    "SSLCredentials",
    "Schema",
    "Service",
    "ServiceT",
    "SetGlobalTable",
    "SetTable",
    "Stream",
    "StreamT",
    "Table",
    "Topic",
    "TopicT",
    "TumblingWindow",
    "ValidationError",
    "View",
    "Web",
    "Window",
    "current_event",
    "hosted",
    "models",
    "serializers",
    "types",
    "uuid",
    "web",
]


def __dir__() -> list[str]:
    return sorted(__all__)


if not TYPE_CHECKING:

    def __getattr__(name: str) -> Any:
        """Explain what to use instead of a name of `faust` that Potok does not have."""
        if name == "cli":
            # Loads click, which few programs need.
            return import_module("potok.faust.cli")
        if name in REFUSED["faust"]:
            raise CannotImport(name, REFUSED["faust"][name])
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
