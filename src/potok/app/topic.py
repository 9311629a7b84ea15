"""Topics of an app: what agents take, and where they send."""

from __future__ import annotations

from collections.abc import Awaitable, Generator, Iterable, Mapping
from datetime import datetime
from typing import TYPE_CHECKING, Any

from potok.app.record import Record
from potok.app.values import JSON, Encode, key_bytes, schema_of, value_encoder
from potok.dsl.serdes import serde_of
from potok.errors import Location, TopologyError
from potok.kernels import agents_running
from potok.records.formats.default import default_format
from potok.topology.nodes import Serde

if TYPE_CHECKING:
    from potok.app.app import App

HeadersInput = Mapping[str, str | bytes] | Iterable[tuple[str, str | bytes]]


class PartitionChosen(TopologyError):
    """A send that names a partition."""

    def __init__(self, topic: str) -> None:
        super().__init__(
            f'a send to topic "{topic}" names a partition', hint="leave partition= out: it follows from the key"
        )


class Topic:
    """One topic, or several that one agent takes together. Sends go to the first.

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
        value_serializer: str = "",
        partitions: int | None = None,
        retention_ms: int | None = None,
        compacting: bool = False,
        at: Location | None = None,
    ) -> None:
        self.app, self.names, self.at = app, names, at
        self.key_type, self.value_type = key_type, value_type
        self.key_serializer, self.value_serializer = key_serializer, value_serializer
        self.partitions, self.retention_ms, self.compacting = partitions, retention_ms, compacting
        self._encode: Encode | None = None

    @property
    def name(self) -> str:
        return self.names[0]

    def get_topic_name(self) -> str:
        return self.name

    def __repr__(self) -> str:
        return f"<Topic {', '.join(self.names)}>"

    def __getstate__(self) -> dict[str, Any]:
        return {**vars(self), "_encode": None}

    @property
    def serializer(self) -> str:
        """The format of values: that of the topic, of the record class, or the one that belongs to the type."""
        if self.value_serializer:
            return self.value_serializer
        if isinstance(self.value_type, type) and issubclass(self.value_type, Record):
            return self.value_type.__serializer__ or JSON
        schema = schema_of(self.value_type)
        return JSON if schema is None else default_format(schema.arrow)

    def serdes(self) -> tuple[Serde, Serde]:
        """How the keys and values of this topic are read. Keys without a type are bytes."""
        key = serde_of(bytes if self.key_type is None else self.key_type, self.key_serializer, self.at)
        return key, Serde(self.serializer, schema_of(self.value_type))

    def send(
        self,
        *,
        key: Any = None,
        value: Any = None,
        partition: int | None = None,
        timestamp: float | datetime | None = None,
        headers: HeadersInput | None = None,
    ) -> Awaitable[None]:
        """Send a record: inside an agent with the batch, all or nothing; elsewhere at once, and durably.

        Args:
            key: Its key; none if left out.
            value: A record, plain data, or None to delete.
            partition: Not taken; it follows from the key.
            timestamp: Its time in seconds since 1970; that of the record at hand if left out.
            headers: Pairs of name and bytes.
        """
        if partition is not None:
            raise PartitionChosen(self.name)
        data = (self._encode or self._encoder())(value)
        at = None if timestamp is None else _milliseconds(timestamp)
        told = None if headers is None else _headers(headers)
        running = agents_running.current
        if running is None:
            self.app.produce(self.name, key_bytes(key), data, at, told)
        else:
            running.send(self.name, key_bytes(key), data, at, told)
        return DONE

    def send_soon(self, **options: Any) -> None:
        """The same, for code that is not async."""
        self.send(**options)

    def _encoder(self) -> Encode:
        self._encode = value_encoder(self.serializer, self.value_type)
        return self._encode


class _Done:
    """Something to await that is done already."""

    def __await__(self) -> Generator[None, None, None]:
        return
        yield


DONE = _Done()


def _milliseconds(timestamp: float | datetime) -> int:
    return round((timestamp.timestamp() if isinstance(timestamp, datetime) else timestamp) * 1000)


def _headers(given: HeadersInput) -> tuple[tuple[str, bytes], ...]:
    items = given.items() if isinstance(given, Mapping) else given
    return tuple((name, data.encode() if isinstance(data, str) else data) for name, data in items)
