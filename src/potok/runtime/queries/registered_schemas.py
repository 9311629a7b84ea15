"""Connect a query to its schema registry, and register what it writes before its first batch."""

from __future__ import annotations

from potok.records.formats.registered.declare import announce
from potok.records.schema_registry.connection import Connection, connection_of, current_connection, using_connection
from potok.records.schema_registry.errors import RegistryUnreachable
from potok.records.schemas.declared_schema import declared_schema
from potok.settings import Settings
from potok.topology.execution_plan import Plan
from potok.topology.graph import Topology
from potok.topology.nodes import Sink, StreamSource, TableSource

_MARK = "_sr"


def connected_registry(plan: Plan, settings: Settings) -> Connection | None:
    """Return the registry for the tasks of a query; None if none of its formats needs one.

    Raises `RegistryRefused` for a schema that the registry refuses, such as an incompatible one.
    """
    if not _needs_registry(plan.topology):
        return None
    connection = connection_of(settings.schema_registry) or current_connection()
    try:
        with using_connection(connection):
            _announce(plan)
    except RegistryUnreachable:
        # The first batch that writes asks again, and waits.
        pass
    return connection


def _announce(plan: Plan) -> None:
    for sink in plan.topology.of_type(Sink):
        step = plan.inferred[sink.upstream]
        for format_name, arrow in ((sink.key_format, step.key), (sink.value_format, step.value)):
            announce(format_name, declared_schema(arrow))


def _needs_registry(topology: Topology) -> bool:
    """Whether a format may use the registry, also inside that of a windowed key."""
    names = {name for sink in topology.of_type(Sink) for name in (sink.key_format, sink.value_format)}
    for source in topology.of_type(StreamSource):
        names |= {source.key.format, source.value.format}
    for table in topology.of_type(TableSource):
        names |= {table.key.format, table.value.format}
    return any(_MARK in name for name in names)
