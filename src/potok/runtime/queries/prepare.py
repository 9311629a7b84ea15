"""Prepare a query for its first batch: topics, lock, ledger, and the check that its state fits."""

from __future__ import annotations

import json
import os
import pickle
import shutil
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from types import MappingProxyType
from typing import Any, Protocol

import cloudpickle

from potok.errors import TopologyError
from potok.log.broker import Broker
from potok.log.failpoint import failpoint
from potok.runtime.planning.start_offsets import OnLost, Positions, check_topics, protect, starting_offsets
from potok.runtime.planning.table_loading import gate_mark, gates_of
from potok.runtime.queries.checked_key_store import checked_key_store
from potok.runtime.queries.directory import query_directory
from potok.runtime.queries.ledger import Ledger
from potok.runtime.queries.lock import QueryLock
from potok.runtime.queries.progress import QueryMetrics, Totals
from potok.runtime.queries.registered_schemas import connected_registry
from potok.settings import Settings
from potok.snapshots.rows.layout import layouts_of
from potok.snapshots.state_location import chosen_state, encoded_location
from potok.state.entry import metadata_key_of
from potok.state.offsets import Offsets
from potok.state.open import StateLocation
from potok.state.store import StateMissing
from potok.topology.compare import Change, StateDoesNotFit, compare, functions_of, shape_of
from potok.topology.describe import description_of
from potok.topology.execution_plan import Plan, make_plan
from potok.topology.graph import Topology
from potok.topology.inference.infer import infer
from potok.topology.nodes import Node, Process, Sink, StreamSource, TableSource

MOST_SHARDS = 8
"""The default number of shards; more are for clusters, or on request."""


class Buildable(Protocol):
    """A builder of the DSL, or anything else that builds a topology."""

    def build(self) -> Topology: ...


@dataclass(slots=True)
class Prepared:
    """A query that holds its lock and its epoch, ready to run batches."""

    plan: Plan
    broker: Broker
    ledger: Ledger
    directory: Path
    lock: QueryLock
    metrics: QueryMetrics
    changes: list[Change]
    state: StateLocation

    def release(self) -> None:
        self.lock.release()


def topology_of(program: Buildable | Topology) -> Topology:
    return program if isinstance(program, Topology) else program.build()


def changes_of(topology: Topology, broker: Broker) -> list[Change]:
    """Return the differences from the version that ran last; none for a query that never ran."""
    stored = broker.get_metadata(metadata_key_of(topology.name, "shape"))
    return [] if stored is None else compare(json.loads(stored), shape_of(topology, infer(topology)))


def prepare(
    program: Buildable | Topology,
    broker: Broker,
    settings: Settings,
    *,
    start: Positions = MappingProxyType({}),
    load: Callable[[], None] = lambda: None,
) -> Prepared:
    """Take the lock and the next epoch of a query; a new one starts at `start`, or else at the first records.

    `load` is called once the topics exist: the tables that it loads are read before the streams that join them.
    """
    topology = topology_of(program)
    directory = query_directory(broker, topology.name)
    lock = QueryLock(directory, topology.name)
    try:
        changes = changes_of(topology, broker)
        misfits = [change for change in changes if not change.fits]
        if misfits:
            raise StateDoesNotFit(topology.name, misfits)
        state = chosen_state(broker, topology.name, settings.state, settings.cache_dir)
        make_topics(topology, broker)
        load()
        ledger = Ledger(broker, topology.name)
        plan = make_plan(topology, ledger.entry.shards or settings.shards or min(os.cpu_count() or 2, MOST_SHARDS))
        plan = replace(plan, personal_keys=checked_key_store(topology, broker, settings.personal_keys))
        plan = replace(plan, schema_registry=connected_registry(plan, settings))
        check_topics(broker, topology.name, topology.source_topics, ledger.entry)
        metrics = QueryMetrics(
            topology.name, totals=Totals.of_progress(broker.get_metadata(metadata_key_of(topology.name, "progress")))
        )
        known = ledger.entry.offsets.topics
        on_lost = OnLost(settings.on_lost)
        positions = starting_offsets(broker, topology.source_topics, known, start, on_lost, topology.name)
        _begin(plan, broker, ledger, metrics, positions, state)
        _drop_orphans(plan, state.at(ledger.entry))
        # Output that a killed process staged and never published; no other process removes it.
        shutil.rmtree(directory / "staging", ignore_errors=True)
    except BaseException:
        lock.release()
        raise
    return Prepared(plan, broker, ledger, directory, lock, metrics, changes, state)


def make_topics(topology: Topology, broker: Broker) -> None:
    """Create the topics that are read or written and do not exist; a sink topic gets the partition count of its
    source."""
    streams = topology.of_type(StreamSource)
    loaded = {source.topic for source in topology.of_type(TableSource) if source.refresh}
    asked = {source.topic: source.partitions for source in reversed(streams) if source.partitions}
    for topic in topology.source_topics:
        policy = "compact" if topic in loaded else "delete"
        broker.create_topic(topic, asked.get(topic, 1), cleanup_policy=policy, exist_ok=True)
    for source in streams:
        if source.permanent and broker.describe_topic(source.topic).config.compacted:
            raise CompactedEvents(source)
    for sink in topology.of_type(Sink):
        if not broker.has_topic(sink.topic):
            feeding = max(broker.partitions(topic) for topic in topology.upstream_topics(sink))
            kept: dict[str, Any] = {"retention_ms": sink.retention_ms, "cleanup_policy": sink.cleanup_policy}
            broker.create_topic(sink.topic, sink.partitions or feeding, exist_ok=True, **kept)
    broker.create_topic(topology.dead_letter_topic, 1, exist_ok=True)


def _drop_orphans(plan: Plan, state: StateLocation) -> None:
    """Delete the cells of tables that no longer exist: if the step were added again, they would be out of date."""
    kept = {node.name for node in plan.topology.keepers}
    stores = {node.name: dict(node.stores) for node in plan.topology.of_type(Process)}
    for shard in range(plan.shards):
        try:
            state.store(shard, create=False).close()
        except StateMissing:
            continue
        store = state.store(shard)
        store.drop_tables_except(kept, stores)
        store.close()


class CompactedEvents(TopologyError):
    """A topic of events that is compacted: the state is the sum of all events of a key, not the last one."""

    def __init__(self, source: StreamSource) -> None:
        super().__init__(
            f'topic "{source.topic}" is compacted, so the state would lose all but the last event of a key',
            hint="copy it to a topic that is not compacted, and fold that one: @potok.aggregate(..., events=...)",
            at=source.at,
        )


class NotPicklable(TopologyError):
    """A function that cannot be sent to Spark's workers."""

    def __init__(self, node: Node, cause: str) -> None:
        super().__init__(
            f'step "{node.name}" cannot be sent to Spark: {cause}',
            hint="a function may not close over open files, locks or connections; create them inside it",
            at=node.at,
        )


def check_picklable(topology: Topology) -> None:
    """Check that every function can be sent to Spark's workers; name the step of one that cannot."""
    for node in topology:
        for function in functions_of(node):
            try:
                cloudpickle.dumps(function)
            except (TypeError, AttributeError, pickle.PicklingError) as error:
                raise NotPicklable(node, str(error)) from error


def _begin(
    plan: Plan,
    broker: Broker,
    ledger: Ledger,
    metrics: QueryMetrics,
    positions: dict[str, dict[int, int]],
    state: StateLocation,
) -> None:
    topology = plan.topology
    check_picklable(topology)
    topic_ids = broker.topic_ids(topology.source_topics)
    offsets = ledger.entry.offsets
    metadata_keys: dict[str, bytes | None] = {
        metadata_key_of(topology.name, "shape"): json.dumps(shape_of(topology, plan.inferred)).encode(),
        metadata_key_of(topology.name, "description"): json.dumps(description_of(topology, plan.inferred)).encode(),
        metadata_key_of(topology.name, "tables"): layouts_of(topology, plan.inferred),
        metadata_key_of(topology.name, "progress"): metrics.to_bytes(),
        metadata_key_of(topology.name, "state"): encoded_location(broker, state.where),
        gate_mark(topology.name): gates_of(topology, broker),
    }
    changes: dict[str, Any] = {
        "shards": plan.shards,
        "topic_ids": topic_ids,
        "offsets": Offsets(positions, offsets.empty_batches, offsets.idle),
    }
    failpoint("epoch.before")
    # Before the first batch: if it is interrupted, it is read again, and must find the same records.
    protect(broker, topology.name, positions)
    ledger.begin_epoch(metadata_keys, **changes)
    failpoint("epoch.started")
