"""Properties of a session, as SET changes them: names, allowed values and defaults.

`KNOWN` lists those that have an effect, `ALWAYS` those that accept only the value that applies anyway, and `PACING`
those that only tune Kafka Streams, which are accepted with a warning because scripts contain them. So are those of
functions that read none, and those in `UNUSED`. All others are refused.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from potok.sql.errors import Refused, SourceLocation, closest

PREFIX = "ksql.streams."
"""An optional prefix of properties of Kafka Streams."""

OFFSET_RESET = "auto.offset.reset"
KEY_FORMAT = "ksql.persistence.default.format.key"
VALUE_FORMAT = "ksql.persistence.default.format.value"
WRAP_SINGLE_VALUES = "ksql.persistence.wrap.single.values"
TOPIC_PREFIX = "ksql.output.topic.name.prefix"
COLLECT_LIST_LIMIT = "ksql.functions.collect_list.limit"
COLLECT_SET_LIMIT = "ksql.functions.collect_set.limit"
INVALID_TIMESTAMPS = "ksql.timestamp.throw.on.invalid"
INSERTS = "ksql.insert.into.values.enabled"
SUPPRESS = "ksql.suppress.enabled"
PULLS = "ksql.pull.queries.enable"
TABLE_SCANS = "ksql.query.pull.table.scan.enabled"
RANGE_SCANS = "ksql.query.pull.range.scan.enabled"
STREAM_PULLS = "ksql.query.pull.stream.enabled"
REGISTRY = "ksql.schema.registry.url"
"""Set by the server alone: the registry that was configured when a statement was executed."""
PULL_LIMITS = "ksql.query.pull.limit.clause.enabled"

_FLAGS = ("true", "false")
_FORMATS = ("JSON", "JSON_SR", "DELIMITED", "KAFKA", "NONE", "AVRO", "PROTOBUF", "PROTOBUF_NOSR")


@dataclass(frozen=True, slots=True)
class Property:
    """A property whose value is one of `values`, a count, or any text."""

    about: str
    default: str
    values: tuple[str, ...] = ()
    is_count: bool = False


KNOWN = {
    OFFSET_RESET: Property("where a new query starts reading", "", ("earliest", "latest")),
    KEY_FORMAT: Property("the key format of a source whose WITH clause names none", "KAFKA", _FORMATS),
    VALUE_FORMAT: Property("the value format of a source whose WITH clause names none", "JSON", _FORMATS),
    WRAP_SINGLE_VALUES: Property("whether a value with a single column is written as an object", "true", _FLAGS),
    TOPIC_PREFIX: Property("the prefix of a query's topic where its WITH clause names none", ""),
    COLLECT_LIST_LIMIT: Property("how many values COLLECT_LIST collects", str(2**31 - 1), is_count=True),
    COLLECT_SET_LIMIT: Property("how many values COLLECT_SET collects", str(2**31 - 1), is_count=True),
    INVALID_TIMESTAMPS: Property("whether a record whose TIMESTAMP cannot be read stops the query", "false", _FLAGS),
    INSERTS: Property("whether INSERT INTO ... VALUES is allowed", "true", _FLAGS),
    SUPPRESS: Property("whether EMIT FINAL is allowed", "true", _FLAGS),
    PULLS: Property("whether pull queries are allowed", "true", _FLAGS),
    TABLE_SCANS: Property("whether pull queries may read all rows of a table", "true", _FLAGS),
    RANGE_SCANS: Property(
        "whether pull queries may read a range of keys where a full scan is not allowed", "true", _FLAGS
    ),
    STREAM_PULLS: Property("whether pull queries may read streams", "true", _FLAGS),
    PULL_LIMITS: Property("whether pull queries may have a LIMIT", "true", _FLAGS),
}

ALWAYS = {
    "default.timestamp.extractor": ("org.apache.kafka.streams.processor.logandskiponinvalidtimestamp",),
    "processing.guarantee": ("exactly_once_v2", "exactly_once", "exactly_once_beta"),
    "ksql.any.key.name.enabled": ("true",),
    "ksql.cast.strings.preserve.nulls": ("true",),
    "ksql.create.or.replace.enabled": ("true",),
    "ksql.fail.on.deserialization.error": ("false",),
    "ksql.functions.substring.legacy.args": ("false",),
    "ksql.headers.columns.enabled": ("true",),
    "ksql.joins.foreign.key.enable": ("true",),
    "ksql.key.format.enabled": ("true",),
    "ksql.lambdas.enabled": ("true",),
    "ksql.metastore.backup.location": ("",),
    "ksql.multicol.key.format.enabled": ("true",),
    "ksql.nested.error.set.null": ("true",),
    "ksql.query.push.v2.enabled": ("false",),
    "ksql.rowpartition.rowoffset.enabled": ("true",),
    "ksql.source.table.materialization.enabled": ("true",),
    "ksql.variable.substitution.enable": ("true",),
    "ksql.windowed.session.key.legacy": ("false",),
}
"""The only accepted values, which describe how Potok behaves anyway."""

PACING = (
    "buffered.records.per.partition",
    "cache.max.bytes.buffering",
    "commit.interval.ms",
    "fetch.max.bytes",
    "fetch.min.bytes",
    "linger.ms",
    "max.poll.records",
    "max.task.idle.ms",
    "metadata.max.age.ms",
    "num.standby.replicas",
    "num.stream.threads",
    "poll.ms",
    "request.timeout.ms",
    "session.timeout.ms",
    "statestore.cache.max.bytes",
)
"""Tuning of Kafka Streams and its clients, without effect on results."""

OF_FUNCTIONS = "ksql.functions."
"""Prefix of the settings of functions. ksqlDB accepts any property with it."""

UNUSED = ("ksql.json_sr.converter.deserializer.enabled", "ksql.new.query.planner.enabled")
"""Settings of parts of ksqlDB that Potok does not have."""


def canonical(name: str) -> str:
    """Strip the prefixes that ksqlDB allows."""
    plain = name.removeprefix(PREFIX)
    for client in ("consumer.", "producer."):
        plain = plain.removeprefix(client)
    return plain


def check_property(name: str, value: str, location: SourceLocation | None = None) -> str:
    """Raise if a property cannot have this value; return a warning, or ""."""
    plain = canonical(name)
    if plain in PACING:
        return f"'{name}' has no effect: it tunes Kafka Streams, and Spark runs the queries here"
    if plain in ALWAYS:
        if value.lower() not in ALWAYS[plain]:
            hint = f"leave it out: '{plain}' is always '{ALWAYS[plain][0]}' in Potok"
            raise Refused(f"'{name}' cannot be '{value}'", hint=hint, location=location)
        return ""
    if plain in UNUSED:
        return f"'{name}' has no effect: it configures a part of ksqlDB that Potok does not have"
    known = KNOWN.get(plain)
    if known is None and plain.startswith(OF_FUNCTIONS):
        read = ", ".join(f"'{each}'" for each in KNOWN if each.startswith(OF_FUNCTIONS))
        return f"'{name}' has no effect: functions read only {read}"
    if known is None:
        hint = closest(plain, KNOWN) or "the properties are listed in docs/sql.md"
        raise Refused(f"there is no property '{name}'", hint=hint, location=location)
    accepted = [allowed.lower() for allowed in known.values]
    if accepted and value.lower() not in accepted:
        hint = f"it is {known.about}: write {', '.join(repr(allowed) for allowed in known.values)}"
        raise Refused(f"'{name}' cannot be '{value}'", hint=hint, location=location)
    if known.is_count and not value.strip().isdigit():
        raise Refused(f"'{name}' cannot be '{value}'", hint=f"it is {known.about}: write a number", location=location)
    return ""


@dataclass(frozen=True, slots=True)
class Properties:
    """The properties that were set. Invalid ones, which older statements may contain, are ignored."""

    given: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def of(cls, given: Mapping[str, str]) -> Properties:
        found: dict[str, str] = {}
        for name, value in given.items():
            if name == REGISTRY:
                found[name] = value
                continue
            try:
                check_property(name, value)
            except Refused:
                continue
            found[canonical(name)] = value
        return cls(found)

    @property
    def has_registry(self) -> bool:
        """Whether AVRO and PROTOBUF are formats of a schema registry."""
        return bool(self.given.get(REGISTRY))

    def with_registry(self) -> Properties:
        """Return the same for a statement whose source has a registry."""
        return self if self.has_registry else replace(self, given={**self.given, REGISTRY: "the source's"})

    def text(self, name: str) -> str:
        return self.given.get(name, KNOWN[name].default)

    def flag(self, name: str) -> bool:
        return self.text(name).lower() == "true"

    def count(self, name: str) -> int:
        return int(self.text(name))


NO_PROPERTIES = Properties()
