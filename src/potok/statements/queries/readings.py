"""The readings of the queries of a database, wherever they run."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import partial

from potok.monitoring.monitor import Monitor
from potok.runtime.monitoring.consumer_group_collector import ConsumerGroupCollector
from potok.runtime.monitoring.query_monitor import GroupMonitor
from potok.runtime.monitoring.readings import Reading, group_readings, stored_readings
from potok.statements.catalog.remote_queries import remote_state
from potok.statements.database import Database
from potok.statements.queries.query_tables import QueryTables


def database_monitor(database: Database) -> Monitor:
    """Monitor the queries of a database."""
    monitor = Monitor()
    readings = partial(database_readings, database)
    monitor.registry.add(ConsumerGroupCollector(database.broker))
    GroupMonitor(monitor, database.broker, database.settings, lambda: database.shared, readings)
    return monitor


def database_readings(database: Database) -> Iterator[Reading]:
    if isinstance(database, QueryTables):
        yield from stored_readings(database.broker, database.query_names)
        return
    queries, shared = database.catalog_state().queries, database.shared
    if shared is None:
        for stored in stored_readings(database.broker, queries):
            state, error = remote_state(database.broker, queries[stored.query])
            yield replace(stored, state={"ERROR": "failed"}.get(state, state.lower()), error=error)
        return
    known = set[str]()
    for reading in group_readings(shared):
        known.add(reading.query)
        yield reading
    if queries.keys() <= known:
        return
    for info in database.queries():
        if info.query_id not in known:
            # It could not start, or is about to.
            yield Reading(info.query_id, {"ERROR": "failed"}.get(info.state, "starting"), info.error)
