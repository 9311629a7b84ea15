"""Build a topology from its sources."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Literal, TypedDict, Unpack, overload

from potok.dsl.aggregates import AggregateHandle, Foreign, add_aggregate, add_fold
from potok.dsl.camel_case import Spelling
from potok.dsl.graph_builder import GraphBuilder, HandleClasses, calling_location
from potok.dsl.grouping.grouped_stream import GroupedStream
from potok.dsl.grouping.grouped_table import GroupedTable
from potok.dsl.grouping.matched_stream import MatchedStream
from potok.dsl.handle import Declared, K, V
from potok.dsl.inputs.captures import CaptureHandle, CaptureOptions, capture_database
from potok.dsl.inputs.dataframes import add_dataframe
from potok.dsl.inputs.events import declared_events
from potok.dsl.inputs.serdes import serde_of, timestamps_of
from potok.dsl.processed_stream import ProcessedStream
from potok.dsl.sagas import SagaHandle, add_saga
from potok.dsl.stream import Stream
from potok.dsl.table import GlobalTable, Table
from potok.dsl.time_to_live import TtlClock, lifetime_of
from potok.dsl.unused_builder import expect_use, used
from potok.duration import Duration
from potok.events.write import EnvelopeName
from potok.topology.describe import DescribeForm, describe
from potok.topology.graph import Topology
from potok.topology.inference.infer import infer
from potok.topology.nodes import Node, Serde, StreamSource, TableSource
from potok.topology.validate import validate

HANDLES = HandleClasses(Stream, GroupedStream, GroupedTable, MatchedStream, ProcessedStream)


class StreamOptions(TypedDict, total=False):
    """The options of `StreamsBuilder.stream` besides the types of key and value."""

    key_format: str | None
    value_format: str | None
    timestamp: str | Callable[..., Any] | None
    timestamp_format: str | None
    max_jump: Duration | None
    name: str | None


class TableOptions(StreamOptions, total=False):
    """The options of `StreamsBuilder.table` besides the types of key and value."""

    ttl: Duration | None
    ttl_clock: TtlClock
    history: Duration | None


class StreamsBuilder(Spelling):
    """Build a topology step by step.

    >>> builder = StreamsBuilder("stream-processor")
    >>> orders = builder.stream("orders", value="user_id string, amount double")
    >>> orders.filter(lambda k, v: v["amount"] > 100).to("high-value-orders")
    >>> print(builder.build().name)
    stream-processor
    """

    def __init__(self, name: str) -> None:
        """Args:
        name: Names the query, its state and its dead letters.
        """
        self.name = name
        self._graph = GraphBuilder(name, HANDLES)
        expect_use(self, name, calling_location())

    @overload
    def stream(self, topic: str, *, value: type[V], **options: Unpack[StreamOptions]) -> Stream[str, V]: ...
    @overload
    def stream(self, topic: str, *, key: type[K], value: type[V], **options: Unpack[StreamOptions]) -> Stream[K, V]: ...
    @overload
    def stream(
        self, topic: str, *, value: Declared | None = None, **options: Unpack[StreamOptions]
    ) -> Stream[str, Any]: ...
    @overload
    def stream(
        self, topic: str, *, key: type[K], value: Declared | None = None, **options: Unpack[StreamOptions]
    ) -> Stream[K, Any]: ...
    @overload
    def stream(
        self, topic: str, *, key: Declared | None, value: object = None, **options: Unpack[StreamOptions]
    ) -> Stream[Any, Any]: ...
    def stream(
        self,
        topic: str,
        *,
        key: object = str,
        value: object = None,
        key_format: str | None = None,
        value_format: str | None = None,
        timestamp: str | Callable[..., Any] | None = None,
        timestamp_format: str | None = None,
        max_jump: Duration | None = None,
        name: str | None = None,
    ) -> Stream[Any, Any]:
        """Read a topic as a stream of records.

        Args:
            topic: The topic; created when the query starts if it does not exist.
            key: The type of the key; text by default.
            value: The type of the value: a dataclass, a TypedDict, a `potok.Record`,
                `"amount double, user_id string"`, or a plain type such as `int`. Without a type, values are JSON of any
                shape, and steps on them run as Python. `avro("orders-value")`, `protobuf(...)` and `json_schema(...)`
                are types in a schema registry.
            key_format: The format of the keys; by default it follows from the type.
            value_format: The format of the values: `json`, `delimited`, `text`, `raw`, or Kafka's numbers: `int32`,
                `int64`, `float32`, `float64`.
            timestamp: The field, or the function of key and value, that contains the event time; by default the
                timestamp of the record. `"ingestion"` and `"processing"` select those notions of time.
            timestamp_format: How to parse the text of that field, as in `strptime`: `"%d.%m.%Y %H:%M"`. ISO text and
                milliseconds need none; `"seconds"` and `"microseconds"` are for numbers.
            max_jump: How far one record may advance the stream time: limits how many records become late because of
                one record from the far future.
            name: Names the step; by default the name of the topic.
        """
        at = calling_location()
        node = StreamSource(
            self._graph.step_name(name, topic),
            at,
            topic,
            serde_of(key, key_format, at, topic, "key"),
            serde_of(value, value_format, at, topic),
            timestamps_of(timestamp, timestamp_format, max_jump, at),
        )
        self._graph.add(node)
        return Stream(self._graph, node)

    def events(
        self,
        topic: str,
        *,
        types: Sequence[type[V]],
        envelope: Literal["any", "cloudevents", "dictionary"] = "any",
        key: object = str,
        max_jump: Duration | None = None,
        name: str | None = None,
    ) -> Stream[Any, V]:
        """Read a topic of events as a stream of their data, in the current version of their classes.

        Args:
            topic: The topic; created when the query starts if it does not exist.
            types: Classes declared with `@potok.event`. With several, values have the fields of all of them, null where
                a class has no such field, and the field `event_type`.
            envelope: Accept `cloudevents` or the plain `dictionary` only.
            key: The type of the key; text by default.
            max_jump: As in `stream`.
            name: Names the step; by default the name of the topic.
        """
        at = calling_location()
        declared = declared_events(types, envelope, at)
        node = StreamSource(
            self._graph.step_name(name, topic),
            at,
            topic,
            serde_of(key, None, at),
            Serde("json", declared.schema),
            timestamps_of(None, None, max_jump, at),
            events=declared,
        )
        self._graph.add(node)
        return Stream(self._graph, node)

    def saga(
        self,
        saga: Any,
        *,
        events: str | Sequence[str],
        commands: str | None = None,
        emits: str | None = None,
        earlier: Sequence[Any] = (),
        envelope: EnvelopeName = "cloudevents",
        grace: Duration = 0,
    ) -> SagaHandle:
        """Run a saga: send its commands, process the events that answer them, and send compensations where steps have
        to be undone.

        >>> checkout = builder.saga(Checkout, events=["order-events", "payment-events"], commands="checkout-commands")

        Commands and events have the header `idempotency-key`: saga, instance, step and attempt. Operators control
        instances through the topic `NAME-control`.

        Args:
            saga: A class declared with `@potok.saga`.
            events: The topics of the events. Events of types that the saga does not know are ignored.
            commands: The topic of the commands.
            emits: The topic of the events of `potok.emit`; by default the first topic of `events`.
            earlier: Earlier versions of the saga, for instances that began with them.
            envelope: The envelope of commands and events that are written.
            grace: With `clock="event"`, how far an event may be behind the stream time of its partition.
        """
        topics = [events] if isinstance(events, str) else list(events)
        return add_saga(self._graph, saga, topics, commands, emits, earlier, envelope, grace, calling_location())

    def aggregate(
        self,
        aggregate: type,
        *,
        envelope: EnvelopeName = "cloudevents",
        foreign: Foreign = "fold",
        keep_results: Duration = "1 hour",
        partitions: int | None = None,
    ) -> AggregateHandle:
        """Run an event-sourced aggregate: decide its commands, write its events, and keep its state as a table.

        >>> orders = builder.aggregate(Order)

        Commands are records of the topic `NAME-commands` under the id of their aggregate, results those of
        `NAME-results`.

        Args:
            aggregate: A class declared with `@potok.aggregate`.
            envelope: The envelope of the events that are written.
            foreign: What to do with events that other programs have written to the topic of the events.
            keep_results: How long a repeated command id is answered with its first result. Results are part of the
                state of their aggregate.
            partitions: The number of partitions of the topics, if they are created.
        """
        return add_aggregate(self._graph, aggregate, envelope, foreign, keep_results, partitions, calling_location())

    def fold(self, cls: type, topic: str, *, by: str | None = None, name: str | None = None) -> Table[Any, Any]:
        """Fold the events of a topic, for each key, with a class that has `apply(event)` and `get_state()`.

        >>> orders = builder.fold(OrderAggregate, "order-events", by="order_id")

        Args:
            cls: The class; an instance is created without arguments. Its attributes are stored, and must be data.
            topic: The topic. Events are JSON objects, or CloudEvents, or dictionaries with `event_type` and `data`;
                `apply` gets one flat dict, with the fields of the envelope as `type`, `timestamp` and `event_id`.
            by: The field that is the key; by default that of the record.
            name: Names the table; by default the name of the class.
        """
        node = add_fold(self._graph, cls, topic, by, name, calling_location())
        return Table(self._graph, node)

    @overload
    def table(self, topic: str, *, value: type[V], **options: Unpack[TableOptions]) -> Table[str, V]: ...
    @overload
    def table(self, topic: str, *, key: type[K], value: type[V], **options: Unpack[TableOptions]) -> Table[K, V]: ...
    @overload
    def table(
        self, topic: str, *, value: Declared | None = None, **options: Unpack[TableOptions]
    ) -> Table[str, Any]: ...
    @overload
    def table(
        self, topic: str, *, key: type[K], value: Declared | None = None, **options: Unpack[TableOptions]
    ) -> Table[K, Any]: ...
    @overload
    def table(
        self, topic: str, *, key: Declared | None, value: object = None, **options: Unpack[TableOptions]
    ) -> Table[Any, Any]: ...
    def table(
        self,
        topic: str,
        *,
        key: object = str,
        value: object = None,
        key_format: str | None = None,
        value_format: str | None = None,
        timestamp: str | Callable[..., Any] | None = None,
        timestamp_format: str | None = None,
        max_jump: Duration | None = None,
        ttl: Duration | None = None,
        ttl_clock: TtlClock = "event",
        history: Duration | None = None,
        name: str | None = None,
    ) -> Table[Any, Any]:
        """Read a topic as a table: each record replaces the row of its key, and a null value deletes it.

        >>> users = builder.table("users", value="name string, email string")
        >>> carts = builder.table("carts", ttl="1 day")
        >>> prices = builder.table("prices", value="price double", history="7 days")

        Args, besides those of `stream`:
            ttl: Delete a row this long after its last change.
            ttl_clock: Measure the ttl in `"event"` time, or in `"processing"` time since the change was read.
            history: Keep the versions of each row for this long, in event time: the row is the newest version, and
                `table.get(key, as_of=...)` finds the version of an instant.
        """
        at = calling_location()
        node = TableSource(
            name or topic,
            at,
            topic,
            serde_of(key, key_format, at, topic, "key"),
            serde_of(value, value_format, at, topic),
            timestamps_of(timestamp, timestamp_format, max_jump, at),
            lifetime_of(ttl, ttl_clock, history, at),
        )
        self._graph.add(node)
        return Table(self._graph, node)

    @overload
    def global_table(self, topic: str, *, value: type[V], **options: Unpack[TableOptions]) -> GlobalTable[str, V]: ...
    @overload
    def global_table(
        self, topic: str, *, key: type[K], value: type[V], **options: Unpack[TableOptions]
    ) -> GlobalTable[K, V]: ...
    @overload
    def global_table(
        self, topic: str, *, value: Declared | None = None, **options: Unpack[TableOptions]
    ) -> GlobalTable[str, Any]: ...
    @overload
    def global_table(
        self, topic: str, *, key: type[K], value: Declared | None = None, **options: Unpack[TableOptions]
    ) -> GlobalTable[K, Any]: ...
    @overload
    def global_table(
        self, topic: str, *, key: Declared | None, value: object = None, **options: Unpack[TableOptions]
    ) -> GlobalTable[Any, Any]: ...
    def global_table(self, topic: str, **options: Any) -> GlobalTable[Any, Any]:
        """Read a topic as a table that streams may join by any key; takes the options of `table`.

        Its rows are distributed over the shards like those of any other table: the engine sends the records to the
        rows and restores their own key afterwards.

        >>> products = builder.global_table("products", value="name string, price double")
        >>> priced = orders.join(products, "product_id", lambda order, product: order["n"] * product["price"])
        """
        table: Table[Any, Any] = self.table(topic, **options)
        return GlobalTable(self._graph, table.node)

    def cdc(self, url: str, *, tables: Sequence[str], **options: Unpack[CaptureOptions]) -> CaptureHandle:
        """Capture the changes of database tables, and return them as tables and streams.

        >>> shop = builder.cdc("postgresql://reader@db/shop", tables=["users", "orders"])
        >>> users = shop.table("users", key=int, value="name string, email string")

        `potok run` runs the capture next to the query, `potok cdc` by itself. See docs/cdc.md for the options.
        """
        return capture_database(self._graph, url, tables, options)

    def dataframe(
        self,
        name: str,
        *,
        load: Callable[[Any], Any],
        key: str,
        value: Declared | None = None,
        key_type: object = str,
        refresh: Duration | None = None,
        topic: str | None = None,
    ) -> Table[Any, Any]:
        """Read a DataFrame as a table to join with, and refresh it.

        >>> customers = builder.dataframe(
        ...     "customers", load=lambda spark: spark.read.parquet("lake/customers"), key="id", refresh="10 min"
        ... )

        The driver loads the DataFrame when the query starts, and then at the interval. It appends the rows that are
        new, changed or deleted to a topic, and the table is read from there, so a replay sees the same rows.

        Args:
            name: Names the table.
            load: Called with the Spark session. It may also return an Arrow table, or a DataFrame of pandas or Polars.
            key: The column that identifies a row.
            value: The type of the rows, as in `table`; without one, rows are dicts of the columns.
            key_type: The type of the key.
            refresh: How often to load it again; by default only when the query starts.
            topic: The topic of the changes; by default `QUERY-NAME-dataframe`.
        """
        types = key_type, value
        node = add_dataframe(self._graph, self.name, name, load, key, types, refresh, topic, calling_location())
        return Table(self._graph, node)

    def kept(self, node: Node) -> Table[Any, Any]:
        """Add a table that is maintained outside this topology, and return its handle."""
        self._graph.add(node)
        return Table(self._graph, node)

    def describe(self, form: DescribeForm = "text") -> str:
        """Describe the topology as `text`, as a `mermaid` flow chart, or as `json`."""
        return describe(self.build(), form)

    def nodes(self) -> tuple[Node, ...]:
        """Return the nodes so far, for a caller that makes a topology of them."""
        used(self)
        return self._graph.topology().nodes

    def build(self) -> Topology:
        """Check everything that can be checked without running, and return the topology."""
        used(self)
        topology = self._graph.topology()
        validate(topology)
        infer(topology)
        return topology

    if TYPE_CHECKING:
        globalTable = global_table
