"""How a source reads its topic, as plain data, and a description of the differences between two versions.

State stays compatible whatever changes here, but records may not: one that was read may become a dead letter,
or the other way round.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from potok.duration import show_ms
from potok.records.formats.registry import canonical_name
from potok.records.schemas.ddl_text import print_type
from potok.records.schemas.schema import Field, Schema
from potok.topology.nodes.sources import Serde, StreamSource, TableSource, TimeNotion, Timestamps

CONSEQUENCE = "records that do not decode so are dead letters from here on"
DYNAMIC = "dynamic"


def source_shape(source: StreamSource | TableSource) -> dict[str, Any]:
    return {"key": _serde(source.key), "value": _serde(source.value), "time": _time(source.timestamps)}


def _serde(serde: Serde) -> dict[str, Any]:
    schema, format_ = serde.schema, canonical_name(serde.format)
    if schema is None or schema.kind != "struct":
        return {"format": format_, "type": DYNAMIC if schema is None else print_type(schema)}
    return {"format": format_, "type": "struct", "fields": _fields(schema)}


def _fields(schema: Schema) -> list[list[str]]:
    """In order, because formats such as DELIMITED read fields by position."""
    return [[field.name, _field(field)] for field in schema.fields]


def _field(field: Field) -> str:
    words = [print_type(field.schema)]
    if not field.nullable:
        words.append("not null")
    if field.has_default:
        words.append(f"default {field.default!r}")
    return " ".join(words)


def _time(timestamps: Timestamps) -> str:
    words = [timestamps.text if timestamps.notion is TimeNotion.EVENT else f"{timestamps.notion.value} time"]
    if timestamps.format:
        words.append(f"read as {timestamps.format}")
    if timestamps.max_jump_ms is not None:
        words.append(f"with jumps of at most {show_ms(timestamps.max_jump_ms)}")
    return " ".join(words)


def source_differences(old: Mapping[str, Any], new: Mapping[str, Any]) -> Iterator[str]:
    for part in ("key", "value"):
        found = list(_serde_differences(part, old[part], new[part]))
        yield from found[:-1]
        if found:
            yield f"{found[-1]}; {CONSEQUENCE}"
    if old["time"] != new["time"]:
        yield f"its event time was the {old['time']} and is the {new['time']}"


def _serde_differences(part: str, old: Mapping[str, Any], new: Mapping[str, Any]) -> Iterator[str]:
    if old["format"] != new["format"]:
        yield f"its {part} was read as {old['format']} and is read as {new['format']}"
    if "fields" not in old or "fields" not in new:
        if old["type"] != new["type"]:
            yield f"its {part} was {_type(old)} and is {_type(new)}"
        return
    before, after = dict(old["fields"]), dict(new["fields"])
    for name in before | after:
        was, now = before.get(name), after.get(name)
        if was is None:
            yield f'its {part} has a new field "{name}" {now}'
        elif now is None:
            yield f'its {part} has no field "{name}" any more'
        elif was != now:
            yield f'field "{name}" of its {part} was {was} and is {now}'
    if list(before) != list(after) and before == after:
        yield f"the fields of its {part} were {', '.join(before)} and are {', '.join(after)}"


def _type(serde: Mapping[str, Any]) -> str:
    fields = serde.get("fields")
    return str(serde["type"]) if fields is None else ", ".join(f"{name} {text}" for name, text in fields)
