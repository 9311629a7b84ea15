"""The commands of an aggregate as plain data, which a query stores next to its ledger: servers in other processes
need neither its program nor its classes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import orjson

from potok.patterns.aggregates.data import json_schemas
from potok.patterns.aggregates.definition import Definition

COMPONENTS = "#/components/schemas/"


@dataclass(frozen=True, slots=True)
class CommandDescription:
    """A command: its documentation, and the JSON Schema of its data."""

    name: str
    doc: str
    schema: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class AggregateDescription:
    """An aggregate and its commands. `components` are the classes that the schemas refer to."""

    name: str
    events_topic: str
    commands: Mapping[str, CommandDescription]
    components: Mapping[str, Any] = field(default_factory=dict)

    @classmethod
    def of_json(cls, found: Mapping[str, Any]) -> AggregateDescription:
        commands = {
            one["name"]: CommandDescription(one["name"], one["doc"], one["schema"]) for one in found["commands"]
        }
        return cls(found["name"], found["events"], commands, found["components"])


def described(definition: Definition) -> str:
    """Return the description of an aggregate as JSON."""
    commands = list(definition.commands.values())
    classes = [command.cls for command in commands]
    schemas, components = json_schemas(classes, f"{COMPONENTS}{definition.name}.{{name}}")
    found = {
        "name": definition.name,
        "events": definition.events_topic,
        "commands": [
            {"name": command.name, "doc": command.doc, "schema": schema}
            for command, schema in zip(commands, schemas, strict=True)
        ],
        "components": {f"{definition.name}.{name}": schema for name, schema in components.items()},
    }
    return orjson.dumps(found).decode()
