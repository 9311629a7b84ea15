"""Validate a WITH clause: its properties, and the types of their values. `potok.sql.formats` interprets formats."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal

from potok.duration import NotADuration, to_ms
from potok.log.embedded.catalog import check_topic_name
from potok.log.errors import InvalidName
from potok.log.maintenance import CLEANUP_POLICIES
from potok.sql.catalog import WindowShape
from potok.sql.errors import Refused, SourceLocation, closest
from potok.sql.syntax import ast

MOST_PARTITIONS = 10_000
"""Limit for a topic that a statement creates."""

KEYS = (
    "KAFKA_TOPIC",
    "PARTITIONS",
    "REPLICAS",
    "RETENTION_MS",
    "CLEANUP_POLICY",
    "FORMAT",
    "KEY_FORMAT",
    "VALUE_FORMAT",
    "KEY_DELIMITER",
    "VALUE_DELIMITER",
    "KEY_PROTOBUF_NULLABLE_REPRESENTATION",
    "VALUE_PROTOBUF_NULLABLE_REPRESENTATION",
    "KEY_SCHEMA_ID",
    "VALUE_SCHEMA_ID",
    "KEY_SCHEMA_FULL_NAME",
    "VALUE_SCHEMA_FULL_NAME",
    "VALUE_AVRO_SCHEMA_FULL_NAME",
    "WRAP_SINGLE_VALUE",
    "TIMESTAMP",
    "TIMESTAMP_FORMAT",
    "WINDOW_TYPE",
    "WINDOW_SIZE",
    "HISTORY",
    "CONNECTOR",
    "URL",
    "SOURCE_TABLE",
    "CAPTURE",
)

_OTHERS = {
    "KEY": "declare the column with KEY or PRIMARY KEY",
    "SOURCED_BY_CONNECTOR": "leave it out: there are no connectors",
}
"""Properties of ksqlDB that Potok does not support, and what to write instead."""

Value = bool | int | Decimal | float | str | None


@dataclass(frozen=True, slots=True)
class Options:
    """A validated WITH clause. `location` is the position of its statement."""

    given: Mapping[str, ast.Property]
    location: SourceLocation

    @classmethod
    def of(cls, properties: ast.Properties, location: SourceLocation, allowed: Sequence[str] = KEYS) -> Options:
        given: dict[str, ast.Property] = {}
        for found in properties:
            name = found.name
            if name not in allowed:
                raise _unknown(found, allowed)
            if name in given:
                raise Refused(f"{name} is given twice", hint="leave one of them out", location=found.at)
            given[name] = found
        return cls(given, location)

    def has(self, name: str) -> bool:
        return name in self.given

    def at(self, *names: str) -> SourceLocation:
        """Return the position of the first of these that is given, or that of the statement."""
        return next((self.given[name].value_at for name in names if name in self.given), self.location)

    def _value(self, name: str) -> Value:
        return self.given[name].value if name in self.given else None

    def text(self, name: str) -> str:
        value = self._value(name)
        if value is None:
            return ""
        if not isinstance(value, str):
            raise Refused(f"{name} must be a string", hint=f"write {name} = '{value}'", location=self.at(name))
        return value

    def count(self, name: str, least: int = 1, most: int | None = None) -> int | None:
        value = self._value(name)
        if value is None:
            return None
        try:
            number = int(str(value))
        except ValueError:
            number = least - 1
        if isinstance(value, bool) or number < least or (most is not None and number > most):
            span = f"from {least} on" if most is None else f"from {least} to {most}"
            raise Refused(
                f"{name} must be a number {span}, not {value!r}", hint=f"write {name} = 4", location=self.at(name)
            )
        return number

    def partitions(self) -> int | None:
        return self.count("PARTITIONS", most=MOST_PARTITIONS)

    def flag(self, name: str) -> bool | None:
        value = self._value(name)
        if isinstance(value, str) and value.upper() in ("TRUE", "FALSE"):
            return value.upper() == "TRUE"
        if value is not None and not isinstance(value, bool):
            raise Refused(f"{name} must be true or false", hint=f"write {name} = false", location=self.at(name))
        return value

    def topic(self, otherwise: str) -> str:
        """Return the topic that is named, or `otherwise`."""
        name = self.text("KAFKA_TOPIC") or otherwise
        try:
            check_topic_name(name)
        except InvalidName as error:
            hint = error.hint if self.text("KAFKA_TOPIC") else f"add WITH (KAFKA_TOPIC = '...'): {error.hint}"
            raise Refused(error.message, hint=hint, location=self.at("KAFKA_TOPIC")) from error
        return name

    def cleanup_policy(self) -> str:
        given = self.text("CLEANUP_POLICY").lower()
        if given and given not in CLEANUP_POLICIES:
            hint = f"write {', '.join(repr(policy) for policy in CLEANUP_POLICIES)}"
            raise Refused(f"there is no CLEANUP_POLICY '{given}'", hint=hint, location=self.at("CLEANUP_POLICY"))
        return given

    def retention_ms(self, *, compacted: bool) -> int | None:
        """Return how long records are kept, or None; a `compacted` topic keeps the last one of each key."""
        found = self.count("RETENTION_MS", least=-1)
        if found is not None and compacted and "delete" not in self.cleanup_policy():
            hint = "leave it out: the topic of a table without windows keeps the last row of each key"
            location = self.given["RETENTION_MS"].at
            raise Refused("RETENTION_MS is not supported for tables without windows", hint=hint, location=location)
        return found

    def window(self) -> WindowShape | None:
        kind = self.text("WINDOW_TYPE").upper()
        size = self.text("WINDOW_SIZE")
        if not kind:
            if size:
                location = self.given["WINDOW_SIZE"].at
                raise Refused("WINDOW_SIZE needs WINDOW_TYPE", hint="write WINDOW_TYPE = 'TUMBLING'", location=location)
            return None
        if kind not in ("TUMBLING", "HOPPING", "SESSION"):
            hint = "write WINDOW_TYPE = 'TUMBLING', 'HOPPING' or 'SESSION'"
            raise Refused(f"{kind} is not a window type", hint=hint, location=self.at("WINDOW_TYPE"))
        if (kind == "SESSION") == bool(size):
            hint = "sessions have no size" if size else "write WINDOW_SIZE = '1 HOUR'"
            location = self.given["WINDOW_SIZE"].at if size else self.at("WINDOW_TYPE")
            raise Refused(
                f"WINDOW_SIZE {'is not for' if size else 'is missing for'} {kind}", hint=hint, location=location
            )
        return WindowShape(kind, self._duration("WINDOW_SIZE", size) if size else None)

    def history(self, statement: ast.CreateSource) -> int | None:
        """Return how long versions of rows are kept."""
        text = self.text("HISTORY")
        if not text:
            return None
        if not statement.is_table or not statement.read_only:
            hint = "write CREATE SOURCE TABLE ... WITH (HISTORY = '7 DAYS')"
            raise Refused("HISTORY is only for source tables", hint=hint, location=self.given["HISTORY"].at)
        return self._duration("HISTORY", text)

    def _duration(self, name: str, text: str) -> int:
        try:
            found = to_ms(text.lower())
        except NotADuration as error:
            raise Refused(
                f"{name} must be a duration, not {text!r}", hint="write '1 HOUR'", location=self.at(name)
            ) from error
        if found <= 0:
            raise Refused(f"{name} must be positive, not {text!r}", hint="write '1 HOUR'", location=self.at(name))
        return found


def _unknown(found: ast.Property, allowed: Sequence[str]) -> Refused:
    name = found.name
    hint = _OTHERS.get(name) or closest(name, allowed) or f"the properties are {', '.join(allowed)}"
    return Refused(f"WITH has no property {name}", hint=hint, location=found.at)
