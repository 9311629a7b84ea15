"""The commands of aggregates in `/openapi.json`, with the schemas of their data."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from fastapi import FastAPI

from potok.patterns.aggregates.describe import AggregateDescription, CommandDescription
from potok.server.commands.declared import DeclaredAggregates
from potok.server.problems import OTHERS, problem_described

_JSON = "application/json"

_RESULT = {
    "type": "object",
    "properties": {
        "id": {"type": "string", "description": "Of `GET /commands/{id}`."},
        "command_id": {"type": "string", "description": "The idempotency key."},
        "aggregate": {"type": "string"},
        "aggregate_id": {"type": "string"},
        "command": {"type": "string"},
        "status": {"enum": ["accepted", "rejected", "wrong_version", "invalid", "failed"]},
        "version": {"type": "integer", "description": "Of the aggregate after the command: the number of its events."},
        "events": {"type": "array", "items": {"type": "object"}},
        "reason": {"type": ["string", "null"]},
        "error": {"type": ["string", "null"]},
        "at": {"type": "integer", "description": "Milliseconds since 1970."},
        "repeated": {
            "type": "boolean",
            "description": "The idempotency key was used before: this is its first result.",
        },
    },
}
_SENT = {
    "type": "object",
    "properties": {
        "id": {"type": "string"},
        "command_id": {"type": "string"},
        "aggregate": {"type": "string"},
        "aggregate_id": {"type": "string"},
        "status": {"const": "sent"},
    },
}
_RESULT_REF, _SENT_REF = {"$ref": "#/components/schemas/CommandResult"}, {"$ref": "#/components/schemas/SentCommand"}


def _header(name: str, description: str) -> dict[str, Any]:
    return {"name": name, "in": "header", "description": description, "schema": {"type": "string"}}


_WAIT = {
    "name": "wait",
    "in": "query",
    "description": "How many seconds to wait for the result; 0: answer 202 at once.",
    "schema": {"type": "number", "default": 10},
}
_PARAMETERS: list[dict[str, Any]] = [
    {"name": "id", "in": "path", "required": True, "description": "The aggregate.", "schema": {"type": "string"}},
    _WAIT,
    _header("Idempotency-Key", "The same key runs the command once, however often it is sent."),
    _header("If-Match", '`"3"`: only if the aggregate has this version; `*`: only if it exists.'),
    _header("If-None-Match", "`*`: only if the aggregate does not exist."),
]


def describe_commands(app: FastAPI, aggregates: DeclaredAggregates) -> None:
    """Add the commands to the OpenAPI description of an application; they may change while it runs."""
    plain = app.openapi

    def openapi() -> dict[str, Any]:
        base = plain()
        known = aggregates.all()
        components = dict(base.get("components", {}).get("schemas", {}))
        components |= {"CommandResult": _RESULT, "SentCommand": _SENT}
        for one in known.values():
            components |= one.components
        paths = {**base["paths"], **_own_paths(), **dict(_paths(known))}
        return {**base, "paths": paths, "components": {**base.get("components", {}), "schemas": components}}

    app.openapi = openapi  # type: ignore[method-assign]


def _own_paths() -> dict[str, Any]:
    listed = {"summary": "List the aggregates with their commands", "tags": ["commands"]}
    status = {
        "summary": "The result of a sent command",
        "tags": ["commands"],
        "parameters": [
            {"name": "id", "in": "path", "required": True, "schema": {"type": "string"}},
            {**_WAIT, "schema": {"type": "number", "default": 0}},
        ],
        "responses": {
            "200": {"description": "The result, whatever it is.", "content": {_JSON: {"schema": _RESULT_REF}}},
            "202": {"description": "There is no result yet.", "content": {_JSON: {"schema": _SENT_REF}}},
            "404": problem_described("There is no such command."),
            **OTHERS,
        },
    }
    described = {"200": {"description": "The aggregates.", "content": {_JSON: {"schema": {"type": "object"}}}}}
    return {"/commands": {"get": {**listed, "responses": {**described, **OTHERS}}}, "/commands/{id}": {"get": status}}


def _paths(known: Mapping[str, AggregateDescription]) -> Iterator[tuple[str, Any]]:
    for one in known.values():
        for command in one.commands.values():
            yield f"/commands/{one.name}/{{id}}/{command.name}", {"post": _operation(one, command)}


def _operation(aggregate: AggregateDescription, command: CommandDescription) -> dict[str, Any]:
    position = {"description": "Of the command and its events.", "schema": {"type": "string"}}
    version = {"description": "The version of the aggregate.", "schema": {"type": "string"}}
    headers = {"ETag": version, "Potok-Position": position}
    return {
        "summary": command.doc.partition("\n")[0] or command.name,
        "description": command.doc,
        "tags": [f"commands of {aggregate.name}"],
        "operationId": f"{aggregate.name}_{command.name}",
        "parameters": _PARAMETERS,
        "requestBody": {"content": {_JSON: {"schema": command.schema}}},
        "responses": {
            "200": {"description": "Accepted.", "headers": headers, "content": {_JSON: {"schema": _RESULT_REF}}},
            "202": {"description": "Sent: there is no result yet.", "content": {_JSON: {"schema": _SENT_REF}}},
            "400": problem_described("An invalid body or header; nothing was sent."),
            "404": problem_described("There is no such aggregate or command; nothing was sent."),
            "409": problem_described("Rejected by the aggregate.", command=_RESULT_REF),
            "412": problem_described("The aggregate has another version.", command=_RESULT_REF),
            "422": problem_described("The data does not fit the command.", command=_RESULT_REF),
            "500": problem_described("The program raised an error.", command=_RESULT_REF),
            **OTHERS,
        },
    }
