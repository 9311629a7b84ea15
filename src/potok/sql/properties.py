"""Properties of a session, as SET has them: which there are, what they may be, and what holds if nothing is set.

A property of ksqlDB is here if it changes something. One that only says what holds here anyway takes that value and no
other; one that only paces Kafka Streams is accepted with a warning, because scripts have it. All others are refused.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from potok.sql.errors import Place, Refused, closest

PREFIX = "ksql.streams."
"""ksqlDB lets properties of Kafka Streams have it or not."""

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
PULL_LIMITS = "ksql.query.pull.limit.clause.enabled"

_FLAGS = ("true", "false")
_FORMATS = ("JSON", "DELIMITED", "KAFKA", "NONE", "AVRO", "PROTOBUF", "PROTOBUF_NOSR")


@dataclass(frozen=True, slots=True)
class Property:
    """What a property may be: one of `values`, a count, or any text. `default` holds if it is not set."""

    about: str
    default: str
    values: tuple[str, ...] = ()
    is_count: bool = False


KNOWN = {
    OFFSET_RESET: Property("where a query begins that has not run before", "", ("earliest", "latest")),
    KEY_FORMAT: Property("the key format of a source whose WITH clause names none", "KAFKA", _FORMATS),
    VALUE_FORMAT: Property("the value format of a source whose WITH clause names none", "JSON", _FORMATS),
    WRAP_SINGLE_VALUES: Property("whether the only column of a value has a name in the record", "true", _FLAGS),
    TOPIC_PREFIX: Property("what the topics of queries begin with whose WITH clause names none", ""),
    COLLECT_LIST_LIMIT: Property("how many values COLLECT_LIST takes", str(2**31 - 1), is_count=True),
    COLLECT_SET_LIMIT: Property("how many values COLLECT_SET takes", str(2**31 - 1), is_count=True),
    INVALID_TIMESTAMPS: Property("whether a record whose TIMESTAMP cannot be read ends the query", "false", _FLAGS),
    INSERTS: Property("whether INSERT INTO ... VALUES is allowed", "true", _FLAGS),
    SUPPRESS: Property("whether EMIT FINAL is allowed", "true", _FLAGS),
    PULLS: Property("whether pull queries are allowed", "true", _FLAGS),
    TABLE_SCANS: Property("whether pull queries may read all rows of a table", "true", _FLAGS),
    RANGE_SCANS: Property("whether pull queries may read a range of keys where they may not read all", "true", _FLAGS),
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
"""What holds here anyway, and cannot be set to something else."""

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
"""How fast Kafka Streams and its clients go. What queries give does not depend on it."""


def canonical(name: str) -> str:
    """The name of a property without the prefixes that ksqlDB lets it have."""
    plain = name.removeprefix(PREFIX)
    for client in ("consumer.", "producer."):
        plain = plain.removeprefix(client)
    return plain


def check_property(name: str, value: str, place: Place | None = None) -> str:
    """Raise where a property cannot be set so; return what there is to say of it, or ""."""
    plain = canonical(name)
    if plain in PACING:
        return f"'{name}' has no effect: it paces Kafka Streams, and Spark runs the queries here"
    if plain in ALWAYS:
        if value.lower() not in ALWAYS[plain]:
            hint = f"leave it out: here '{plain}' is always '{ALWAYS[plain][0]}'"
            raise Refused(f"'{name}' cannot be '{value}'", hint=hint, place=place)
        return ""
    known = KNOWN.get(plain)
    if known is None:
        hint = closest(plain, KNOWN) or "the properties are listed in docs/sql.md"
        raise Refused(f"there is no property '{name}'", hint=hint, place=place)
    accepted = [allowed.lower() for allowed in known.values]
    if accepted and value.lower() not in accepted:
        hint = f"it is {known.about}: write {', '.join(repr(allowed) for allowed in known.values)}"
        raise Refused(f"'{name}' cannot be '{value}'", hint=hint, place=place)
    if known.is_count and not value.strip().isdigit():
        raise Refused(f"'{name}' cannot be '{value}'", hint=f"it is {known.about}: write a number", place=place)
    return ""


@dataclass(frozen=True, slots=True)
class Properties:
    """What was set. What cannot be read counts as not set: statements written down long ago may have it."""

    given: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def of(cls, given: Mapping[str, str]) -> Properties:
        found: dict[str, str] = {}
        for name, value in given.items():
            try:
                check_property(name, value)
            except Refused:
                continue
            found[canonical(name)] = value
        return cls(found)

    def text(self, name: str) -> str:
        return self.given.get(name, KNOWN[name].default)

    def flag(self, name: str) -> bool:
        return self.text(name).lower() == "true"

    def count(self, name: str) -> int:
        return int(self.text(name))


NO_PROPERTIES = Properties()
