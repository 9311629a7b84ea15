"""Subjects: under which name the schema of a topic's keys or values is registered."""

from __future__ import annotations

from typing import Literal

from potok.errors import SchemaError
from potok.records.schema_registry.connection import STRATEGIES, Connection

Side = Literal["key", "value"]


def subject_of(topic: str, side: Side, full_name: str, strategy: str) -> str:
    """Return the subject of a topic's keys or values, whose record is called `full_name`."""
    if strategy == "topic":
        return f"{topic}-{side}"
    if strategy not in STRATEGIES:
        raise SchemaError(
            f'there is no subject name strategy "{strategy}"', hint=f"write one of {', '.join(STRATEGIES)}"
        )
    if not full_name:
        raise SchemaError(
            f'the strategy "{strategy}" names subjects by the record, and the {side} of "{topic}" is none',
            hint="name the record, or use the strategy topic",
        )
    return full_name if strategy == "record" else f"{topic}-{full_name}"


def strategy_of(connection: Connection, side: Side) -> str:
    return connection.key_strategy if side == "key" else connection.value_strategy
