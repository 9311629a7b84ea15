"""Streams that wait for a table to load: their topics are not read until those of the table have been read to the end
that they had when the query first started.
"""

from __future__ import annotations

import json
from collections.abc import Mapping

from potok.log.broker import Broker
from potok.state.entry import metadata_key_of
from potok.state.offsets import Ends, Offsets
from potok.topology.graph import Topology
from potok.topology.validate import waiting_topics

Gates = Mapping[str, Ends]
"""For each topic that waits, the offsets that others must have been read to."""


def gate_mark(query: str) -> str:
    return metadata_key_of(query, "gates")


def gates_of(topology: Topology, broker: Broker) -> bytes | None:
    """Return the gates of a query, stored next to its ledger: those of its first start remain in effect."""
    waits = waiting_topics(topology)
    if not waits:
        return None
    known = load_gates(broker, topology.name)
    gates = {
        topic: {other: known.get(topic, {}).get(other) or broker.end_offsets(other) for other in sorted(others)}
        for topic, others in waits.items()
    }
    return json.dumps(gates).encode()


def load_gates(broker: Broker, query: str) -> Gates:
    data = broker.get_metadata(gate_mark(query))
    found = {} if data is None else json.loads(data)
    return {
        topic: {other: {int(part): end for part, end in parts.items()} for other, parts in ends.items()}
        for topic, ends in found.items()
    }


def held_at_gates(gates: Gates, offsets: Offsets, ends: Ends) -> Ends:
    """Limit the ends of topics: those behind a closed gate are not read."""
    closed = {topic for topic, others in gates.items() if offsets.pending(others)}
    return {topic: offsets.topics.get(topic, {}) if topic in closed else parts for topic, parts in ends.items()}
