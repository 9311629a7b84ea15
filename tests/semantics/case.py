"""A case of `cases/<family>.toml`: a program, its records, and the expected outcome."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import potok
from potok import StreamsBuilder
from potok.patterns import cep
from potok.topology.graph import Topology
from tests.oracle import Input
from tests.oracle.canonical import canonical

CASES = Path(__file__).parent / "cases"
FIELDS = {"name", "program", "records", "tables", "topics", "each", "dead_letters", "changelog", "outside"}


@dataclass(frozen=True)
class Sent:
    topic: str
    partition: int
    key: bytes | None
    value: bytes | None
    at_ms: int
    headers: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Case:
    """`each` is what the topics hold, record by record, when every record is a batch of its own; `outside` says why
    the result depends on the batches, for what is outside the promise."""

    name: str
    program: str
    records: list[Sent]
    tables: Mapping[str, list[dict[str, Any]]] = field(default_factory=dict)
    topics: Mapping[str, list[dict[str, Any]]] = field(default_factory=dict)
    each: Mapping[str, list[dict[str, Any]]] = field(default_factory=dict)
    dead_letters: list[dict[str, Any]] = field(default_factory=list)
    changelog: list[str] = field(default_factory=list)
    outside: str = ""

    def topology(self) -> Topology:
        builder = StreamsBuilder("case")
        scope = {name: getattr(potok, name) for name in potok.__all__} | {"builder": builder, "json": json, "cep": cep}
        code = compile(self.program, f"<{self.name}>", "exec")
        exec(code, scope)
        return builder.build()

    @property
    def partitions(self) -> dict[str, int]:
        found: dict[str, int] = {}
        for sent in self.records:
            found[sent.topic] = max(found.get(sent.topic, 1), sent.partition + 1)
        return found

    @property
    def inputs(self) -> dict[str, dict[int, list[Input]]]:
        found: dict[str, dict[int, list[Input]]] = {}
        for sent in self.records:
            partition = found.setdefault(sent.topic, {}).setdefault(sent.partition, [])
            headers = tuple((name, text.encode()) for name, text in sent.headers.items())
            partition.append(Input(sent.key, sent.value, sent.at_ms, headers))
        return found


def load_family(path: Path) -> list[Case]:
    return [_case(given) for given in tomllib.loads(path.read_text())["case"]]


def _case(given: dict[str, Any]) -> Case:
    unknown = set(given) - FIELDS
    if unknown:
        raise ValueError(f"case {given['name']!r} has fields that nobody reads: {sorted(unknown)}")
    return Case(**{**given, "records": [_sent(record) for record in given["records"]]})


def _sent(record: dict[str, Any]) -> Sent:
    key, value = record.get("key"), None
    if "raw" in record:
        value = record["raw"].encode()
    elif not record.get("tombstone"):
        value = json.dumps(record["value"]).encode()
    data = None if key is None else (key if isinstance(key, str) else json.dumps(key)).encode()
    return Sent(record["topic"], record.get("partition", 0), data, value, record["at"], record.get("headers", {}))


def row_key(row: Mapping[str, Any]) -> str:
    """The key of an expected row, as one text."""
    if "start" in row:
        return canonical({"key": row.get("key"), "start": row["start"], "end": row["end"]})
    return canonical(row.get("key"))
