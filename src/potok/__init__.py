"""Potok: Kafka Streams, ksqlDB and Faust in one Python package, executed by Spark."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from potok.version import __version__

if TYPE_CHECKING:
    from potok.dead_letters import DeadLetters, Selection
    from potok.dsl.builder import StreamsBuilder
    from potok.dsl.stream import Stream
    from potok.dsl.table import Table, until_window_closes
    from potok.duration import days, hours, milliseconds, minutes, seconds
    from potok.errors import (
        LogError,
        PotokError,
        QueryError,
        SchemaError,
        SetupError,
        SinkError,
        StateError,
        TopologyError,
    )
    from potok.events.event_type import event, upcast
    from potok.events.personal.forgotten import SubjectForgotten
    from potok.expressions import functions
    from potok.log.clients.async_consumer import AsyncConsumer
    from potok.log.clients.async_producer import AsyncProducer
    from potok.log.clients.consumer import Consumer
    from potok.log.clients.producer import Producer
    from potok.log.errors import FellBehindError, PartitionsMovedError
    from potok.log.open import open_broker
    from potok.log.queues.queue import Queue
    from potok.patterns.aggregates.declare import RejectedError, aggregate, applies, command
    from potok.patterns.sagas.declare import choreography, emit, retry, saga, step, together
    from potok.patterns.sagas.saga import Saga, on, on_timer
    from potok.records.formats.registered.declare import avro, json_schema, protobuf
    from potok.records.position import Position
    from potok.records.record import Record
    from potok.runtime.operations.backup import backup, restore
    from potok.runtime.operations.reshard import reshard
    from potok.server.serve import serve
    from potok.settings import SettingError
    from potok.sinks.guarantee import Guarantee
    from potok.snapshots.patterns.aggregates import open_aggregate
    from potok.snapshots.position_wait import PositionNotReachedError
    from potok.snapshots.tables import open_tables
    from potok.spark.run import run, start
    from potok.sql.errors import SqlError
    from potok.sql.functions.user.users import function
    from potok.statements.session import SqlSession
    from potok.topology.nodes.windows import hopping, session, sliding, tumbling
    from potok.topology.processor import Processor, ProcessorContext
    from potok.topology.stores import list_store, map_store, value_store, window_store

# Names are found on first use, so that `import potok` costs nothing and loads neither pyspark nor pyarrow.
_HOMES = {
    "DeadLetters": "potok.dead_letters",
    "Selection": "potok.dead_letters",
    "FellBehindError": "potok.log.errors",
    "PartitionsMovedError": "potok.log.errors",
    "LogError": "potok.errors",
    "QueryError": "potok.errors",
    "SchemaError": "potok.errors",
    "SetupError": "potok.errors",
    "SinkError": "potok.errors",
    "StateError": "potok.errors",
    "TopologyError": "potok.errors",
    "SettingError": "potok.settings",
    "serve": "potok.server.serve",
    "SqlError": "potok.sql.errors",
    "open_broker": "potok.log.open",
    "StreamsBuilder": "potok.dsl.builder",
    "Stream": "potok.dsl.stream",
    "Table": "potok.dsl.table",
    "until_window_closes": "potok.dsl.table",
    "days": "potok.duration",
    "hours": "potok.duration",
    "milliseconds": "potok.duration",
    "minutes": "potok.duration",
    "seconds": "potok.duration",
    "run": "potok.spark.run",
    "start": "potok.spark.run",
    "PotokError": "potok.errors",
    "AsyncConsumer": "potok.log.clients.async_consumer",
    "AsyncProducer": "potok.log.clients.async_producer",
    "Consumer": "potok.log.clients.consumer",
    "Producer": "potok.log.clients.producer",
    "Queue": "potok.log.queues.queue",
    "SubjectForgotten": "potok.events.personal.forgotten",
    "event": "potok.events.event_type",
    "personal": "potok.records.schemas.personal",
    "upcast": "potok.events.event_type",
    "RejectedError": "potok.patterns.aggregates.declare",
    "aggregate": "potok.patterns.aggregates.declare",
    "applies": "potok.patterns.aggregates.declare",
    "command": "potok.patterns.aggregates.declare",
    "choreography": "potok.patterns.sagas.declare",
    "emit": "potok.patterns.sagas.declare",
    "retry": "potok.patterns.sagas.declare",
    "saga": "potok.patterns.sagas.declare",
    "step": "potok.patterns.sagas.declare",
    "together": "potok.patterns.sagas.declare",
    "avro": "potok.records.formats.registered.declare",
    "json_schema": "potok.records.formats.registered.declare",
    "protobuf": "potok.records.formats.registered.declare",
    "Position": "potok.records.position",
    "PositionNotReachedError": "potok.snapshots.position_wait",
    "Saga": "potok.patterns.sagas.saga",
    "on": "potok.patterns.sagas.saga",
    "on_timer": "potok.patterns.sagas.saga",
    "Record": "potok.records.record",
    "Guarantee": "potok.sinks.guarantee",
    "function": "potok.sql.functions.user.users",
    "SqlSession": "potok.statements.session",
    "hopping": "potok.topology.nodes.windows",
    "session": "potok.topology.nodes.windows",
    "sliding": "potok.topology.nodes.windows",
    "tumbling": "potok.topology.nodes.windows",
    "Processor": "potok.topology.processor",
    "ProcessorContext": "potok.topology.processor",
    "list_store": "potok.topology.stores",
    "map_store": "potok.topology.stores",
    "value_store": "potok.topology.stores",
    "window_store": "potok.topology.stores",
    "open_aggregate": "potok.snapshots.patterns.aggregates",
    "open_tables": "potok.snapshots.tables",
    "backup": "potok.runtime.operations.backup",
    "restore": "potok.runtime.operations.backup",
    "reshard": "potok.runtime.operations.reshard",
}

__all__ = [
    "AsyncConsumer",
    "AsyncProducer",
    "Consumer",
    "DeadLetters",
    "FellBehindError",
    "Guarantee",
    "LogError",
    "PartitionsMovedError",
    "Position",
    "PositionNotReachedError",
    "PotokError",
    "Processor",
    "ProcessorContext",
    "Producer",
    "QueryError",
    "Queue",
    "Record",
    "RejectedError",
    "Saga",
    "SchemaError",
    "Selection",
    "SettingError",
    "SetupError",
    "SinkError",
    "SqlError",
    "SqlSession",
    "StateError",
    "Stream",
    "StreamsBuilder",
    "SubjectForgotten",
    "Table",
    "TopologyError",
    "__version__",
    "aggregate",
    "applies",
    "avro",
    "backup",
    "choreography",
    "command",
    "days",
    "emit",
    "event",
    "function",
    "functions",
    "hopping",
    "hours",
    "json_schema",
    "list_store",
    "map_store",
    "milliseconds",
    "minutes",
    "on",
    "on_timer",
    "open_aggregate",
    "open_broker",
    "open_tables",
    "personal",
    "protobuf",
    "reshard",
    "restore",
    "retry",
    "run",
    "saga",
    "seconds",
    "serve",
    "session",
    "sliding",
    "start",
    "step",
    "together",
    "tumbling",
    "until_window_closes",
    "upcast",
    "value_store",
    "window_store",
]


def __dir__() -> list[str]:
    return sorted(__all__)


if not TYPE_CHECKING:

    def __getattr__(name: str) -> Any:
        if name == "functions":
            return importlib.import_module("potok.expressions.functions")
        if name not in _HOMES:
            raise AttributeError(f"module 'potok' has no attribute {name!r}")
        return getattr(importlib.import_module(_HOMES[name]), name)
