"""Topics of an app: what agents read, and where they send."""

from __future__ import annotations

from collections.abc import Awaitable, Iterable, Mapping
from datetime import datetime
from typing import TYPE_CHECKING, Any

from potok.clock import epoch_ms
from potok.dsl.inputs.serdes import serde_of
from potok.errors import Location, SchemaError, TopologyError
from potok.faust.messaging.sending import Destination, Sent, send_outside, with_callback
from potok.faust.records.codecs import Codec, ReviveBy, encoder_of, own_codec
from potok.faust.records.record import Record
from potok.faust.records.values import JSON, Encode, Revive, key_bytes, schema_of
from potok.faust.unsupported import REFUSED, Refused, without
from potok.operators.agents import context
from potok.records.formats.default import default_format
from potok.topology.nodes import Serde

if TYPE_CHECKING:
    from potok.faust.app import App
    from potok.records.schemas.schema import Schema

SEND_OPTIONS = frozenset(("callback", "force", "key_serializer", "schema", "value_serializer"))
HeadersInput = Mapping[str, str | bytes] | Iterable[tuple[str, str | bytes]]


class PartitionChosen(TopologyError):
    """A send that names a partition."""

    def __init__(self, topic: str) -> None:
        super().__init__(
            f'a send to topic "{topic}" names a partition', hint="leave partition= out: it follows from the key"
        )


@without(REFUSED["Topic"])
class Topic(Destination):
    """One topic, or several that one agent reads together. Sends go to the first.

    >>> orders = app.topic("orders", value_type=Order)
    >>> await orders.send(key="user_001", value=Order(...))
    """

    def __init__(
        self,
        app: App,
        names: tuple[str, ...],
        *,
        key_type: Any = None,
        value_type: Any = None,
        key_serializer: str = "",
        value_serializer: str | Codec = "",
        partitions: int | None = None,
        retention_ms: int | None = None,
        compacting: bool = False,
        at: Location | None = None,
    ) -> None:
        self.app, self.names, self.at = app, names, at
        self.key_type, self.value_type = key_type, value_type
        self.key_serializer, self.value_serializer = key_serializer, value_serializer
        self.partitions, self.retention_ms, self.compacting = partitions, retention_ms, compacting
        self.other_topics: list[Topic] = []
        """Other topics that an agent reads together with it."""
        self._sent = Sent(names[0])
        self._encode: Encode | None = None
        self._codec: Codec | None = None

    @property
    def name(self) -> str:
        return self.names[0]

    def get_topic_name(self) -> str:
        return self.name

    def __repr__(self) -> str:
        return f"<Topic {', '.join(self.names)}>"

    def __getstate__(self) -> dict[str, Any]:
        return {**vars(self), "_encode": None, "_codec": self.codec}

    @property
    def codec(self) -> Codec | None:
        """Return the codec of values, if it is not one of the formats. It is pickled with the topic, because only
        the program itself knows the names of its own codecs.
        """
        if self._codec is None:
            given = self.value_serializer
            if not given and isinstance(self.value_type, type) and issubclass(self.value_type, Record):
                given = self.value_type.__serializer__
            self._codec = own_codec(given)
        return self._codec

    @property
    def serializer(self) -> str:
        """Return the format of values: that of the topic, of the record class, or the default of the type."""
        if self.codec is not None:
            return "raw"
        if self.value_serializer:
            return str(self.value_serializer)
        if isinstance(self.value_type, type) and issubclass(self.value_type, Record):
            return self.value_type.__serializer__ or JSON
        schema = self._schema(self.value_type)
        return JSON if schema is None else default_format(schema.arrow)

    def _schema(self, value_type: Any, *, instants: bool = False) -> Schema | None:
        try:
            return schema_of(value_type, instants=instants)
        except SchemaError as error:
            error.at = error.at or self.at
            raise

    def serdes(self, *, columns: bool = False) -> tuple[Serde, Serde]:
        """Return how the keys and values of this topic are read. Keys without a type are bytes. With `columns`,
        instants are columns, and a number in their place is milliseconds, as everywhere in the DSL.
        """
        key = serde_of(bytes if self.key_type is None else self.key_type, self.key_serializer, self.at)
        value_type = bytes if self.codec is not None else self.value_type
        return key, Serde(self.serializer, self._schema(value_type, instants=columns))

    def revive(self) -> Revive | ReviveBy:
        """Return the converter of its values to what agents see."""
        codec = self.codec
        return Revive(self.value_type) if codec is None else ReviveBy(codec, self.value_type)

    def send(
        self,
        *,
        key: Any = None,
        value: Any = None,
        partition: int | None = None,
        timestamp: float | datetime | None = None,
        headers: HeadersInput | None = None,
        **options: Any,
    ) -> Awaitable[Sent]:
        """Send a record: inside an agent atomically with the batch; elsewhere at once, and durably once awaited.
        The awaited result is the position of the record.

        Args:
            key: Its key; by default none.
            value: A record, plain data, or None to delete.
            partition: Refused; it follows from the key.
            timestamp: Its time in seconds since 1970; by default that of the current record.
            headers: Pairs of name and bytes.
            options: `callback` is called with the position of the record. `value_serializer`, `key_serializer`
            and `schema`
                apply to this record only.
        """
        if options:
            record = {"partition": partition, "timestamp": timestamp, "headers": headers}
            return self._send_otherwise(key, value, record, options)
        if partition is not None:
            raise PartitionChosen(self.name)
        data = (self._encode or self._encoder())(value)
        at = None if timestamp is None else _milliseconds(timestamp)
        header_list = None if headers is None else _headers(headers)
        running = context.current()
        if running is None:
            return send_outside(self.app, self.name, key_bytes(key), data, at, header_list)
        running.send(self.names[0], key_bytes(key), data, at, header_list)
        return self._sent

    def _send_otherwise(self, key: Any, value: Any, record: dict[str, Any], options: dict[str, Any]) -> Awaitable[Sent]:
        for name in sorted(options.keys() - SEND_OPTIONS):
            raise TypeError(f"Topic.send() got an unexpected keyword argument {name!r}")
        schema, callback = options.get("schema"), options.get("callback")
        serializers = {} if schema is None else schema.options()
        serializers |= {name: options[name] for name in ("key_serializer", "value_serializer") if options.get(name)}
        data = key
        if key is not None and "key_serializer" in serializers:
            chosen = serializers.pop("key_serializer")
            data = encoder_of(own_codec(chosen) or chosen, None)(key)
        kept = {"value_type": self.value_type, "value_serializer": self.value_serializer}
        topic = Topic(self.app, self.names, **{**kept, **serializers}) if serializers else self
        sending = topic.send(key=data, value=value, **record)
        return sending if callback is None else with_callback(sending, callback)

    def send_soon(self, **options: Any) -> Awaitable[Sent]:
        """Like `send`, for code that is not async."""
        return self.send(**options)

    def derive(self, **changes: Any) -> Topic:
        """Return a topic like this, with another name, type or serializer."""
        options = {
            "key_type": self.key_type,
            "value_type": self.value_type,
            "key_serializer": self.key_serializer,
            "value_serializer": self.value_serializer,
            "partitions": self.partitions,
            "compacting": self.compacting,
        }
        names = changes.pop("topics", self.names)
        return self.app.topic(*names, **{**options, **changes})

    clone = derive_topic = derive

    async def declare(self) -> None:
        """Create the topic, if it does not exist."""
        for name in self.names:
            self.app.log().create_topic(name, self.partitions or 1, exist_ok=True)

    maybe_declare = declare

    def stream(self, **_: Any) -> Topic:
        """Return the topic itself, for `stream & payments.stream()`."""
        return self

    def __and__(self, other: Topic) -> Topic:
        """Return both topics for one agent, each with its own types."""
        made = Topic(self.app, self.names, key_type=self.key_type, value_type=self.value_type, at=self.at)
        vars(made).update(vars(self), other_topics=[*self.other_topics, other, *other.other_topics])
        return made

    def __aiter__(self) -> Any:
        raise Refused("Topic.__aiter__", "agents read records: @app.agent(topic); other code reads with potok.Consumer")

    def _encoder(self) -> Encode:
        self._encode = encoder_of(self.codec or self.serializer, self.value_type)
        return self._encode


def _milliseconds(timestamp: float | datetime) -> int:
    return epoch_ms(timestamp) if isinstance(timestamp, datetime) else round(timestamp * 1000)


def _headers(given: HeadersInput) -> tuple[tuple[str, bytes], ...]:
    items = given.items() if isinstance(given, Mapping) else given
    return tuple((name, data.encode() if isinstance(data, str) else data) for name, data in items)


def by_name(name: str) -> Topic:
    """Return a topic of which only the name is known, for an agent to send to."""
    nobodys: Any = None
    return Topic(nobodys, (name,))
