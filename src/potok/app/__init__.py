"""Programs in Faust's style: `import potok.app as faust`."""

from importlib import import_module
from typing import Any

from potok.app import interrupted as interrupted  # first: it is for who does not wait for all the others
from potok.app import models, serializers, types, web
from potok.app.agent import Agent
from potok.app.app import App
from potok.app.channel import Channel
from potok.app.codecs import Codec
from potok.app.credentials import GSSAPICredentials, SASLCredentials, SSLCredentials
from potok.app.event import Event, current_event
from potok.app.faust_paths import FaustPath as FaustPath  # with all the modules that are of this kind
from potok.app.fields import FieldDescriptor
from potok.app.record import Record, ValidationError
from potok.app.refused import REFUSED, CannotImport
from potok.app.replies import uuid
from potok.app.schema import Schema
from potok.app.service import Service
from potok.app.stream import Stream
from potok.app.tables import GlobalTable, SetGlobalTable, SetTable, Table
from potok.app.topic import Topic
from potok.app.types import ChannelT, EventT, ServiceT, StreamT, TopicT
from potok.app.web import Blueprint, Request, Response, View, Web
from potok.app.windows import HoppingWindow, TumblingWindow, Window

__all__ = [
    "Agent",
    "App",
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
    "models",
    "serializers",
    "types",
    "uuid",
    "web",
]


def __dir__() -> list[str]:
    return sorted(__all__)


def __getattr__(name: str) -> Any:
    """A name of `faust` that means nothing here says what to do instead."""
    if name == "cli":
        # Loads click, which few programs need.
        return import_module("potok.app.cli")
    if name in REFUSED["faust"]:
        raise CannotImport(name, REFUSED["faust"][name])
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
