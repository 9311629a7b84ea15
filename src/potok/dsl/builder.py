"""Where a topology begins."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from potok.dsl.camel_case import Spelling
from potok.dsl.graph_builder import GraphBuilder, calling_location
from potok.dsl.serdes import serde_of, timestamps_of
from potok.dsl.stream import Stream
from potok.dsl.table import GlobalTable, Table
from potok.dsl.time_to_live import lifetime_of
from potok.dsl.unused_builder import expect_use, used
from potok.duration import Duration
from potok.topology.describe import describe
from potok.topology.graph import Topology
from potok.topology.inference.infer import infer
from potok.topology.nodes import Node, StreamSource, TableSource
from potok.topology.validate import validate


class StreamsBuilder(Spelling):
    """Builds a topology step by step.

    >>> builder = StreamsBuilder("stream-processor")
    >>> orders = builder.stream("orders", value="user_id string, amount double")
    >>> orders.filter(lambda k, v: v["amount"] > 100).to("high-value-orders")
    >>> print(builder.build().name)
    stream-processor
    """

    def __init__(self, name: str) -> None:
        """Args:
        name: Names the query: its state, its ledger and its dead letters are found under it.
        """
        self.name = name
        self._graph = GraphBuilder(name)
        expect_use(self, name, calling_location())

    def stream(
        self,
        topic: str,
        *,
        key: object = str,
        value: object = None,
        key_format: str = "",
        value_format: str = "",
        timestamp: str | Callable[..., Any] | None = None,
        timestamp_format: str = "",
        max_jump: Duration | None = None,
        name: str = "",
    ) -> Stream:
        """Read a topic as a stream of records.

        Args:
            topic: The topic; it is created when the query starts if it does not exist.
            key: The type of the key: text unless you say otherwise.
            value: A dataclass, a TypedDict, a `potok.Record`, `"amount double, user_id string"`, a plain type such as
                `int`, or nothing: then values are JSON of any shape, and steps on them run as Python.
            key_format: How the bytes of a key are written; follows from the type if left out.
            value_format: How the bytes of a value are written: `json`, `delimited`, `text`, `raw`, or Kafka's
                numbers: `int32`, `int64`, `float32`, `float64`.
            timestamp: The field, or the function of key and value, that tells the event time; else the record's own
                timestamp. `"ingestion"` and `"processing"` choose those clocks.
            timestamp_format: How the text of that field is read, as `strptime` does: `"%d.%m.%Y %H:%M"`; ISO text and
                milliseconds need none. `"seconds"` and `"microseconds"` are for numbers.
            max_jump: How far one record may move the clock: a record from the far future then makes little late.
            name: Names the step; the topic's name if left out.
        """
        at = calling_location()
        node = StreamSource(
            self._graph.step_name(name, topic),
            at,
            topic,
            serde_of(key, key_format, at),
            serde_of(value, value_format, at),
            timestamps_of(timestamp, timestamp_format, max_jump, at),
        )
        self._graph.add(node)
        return Stream(self._graph, node)

    def table(
        self,
        topic: str,
        *,
        key: object = str,
        value: object = None,
        key_format: str = "",
        value_format: str = "",
        timestamp: str | Callable[..., Any] | None = None,
        timestamp_format: str = "",
        max_jump: Duration | None = None,
        ttl: Duration | None = None,
        ttl_clock: str = "event",
        history: Duration | None = None,
        name: str = "",
    ) -> Table:
        """Read a topic as a table: each record replaces the row of its key, and a null value deletes it.

        >>> users = builder.table("users", value="name string, email string")
        >>> carts = builder.table("carts", ttl="1 day")
        >>> prices = builder.table("prices", value="price double", history="7 days")

        Args, besides those of `stream`:
            ttl: Delete a row so long after its last change.
            ttl_clock: `"event"`: when the clock has passed the time of that change; `"processing"`: when so much time
                has gone by since it was read.
            history: Keep the versions of each row for so long behind the clock, by event time: the row is the
                newest, and `table.get(key, as_of=...)` finds the one of an instant.
        """
        at = calling_location()
        node = TableSource(
            name or topic,
            at,
            topic,
            serde_of(key, key_format, at),
            serde_of(value, value_format, at),
            timestamps_of(timestamp, timestamp_format, max_jump, at),
            lifetime_of(ttl, ttl_clock, history, at),
        )
        self._graph.add(node)
        return Table(self._graph, node)

    def global_table(self, topic: str, **options: Any) -> GlobalTable:
        """Read a topic as a table that streams may be joined with by any key; takes what `table` takes.

        It lies on the shards of its keys like any other table: the engine brings the records to it, and gives them
        their own key back.

        >>> products = builder.global_table("products", value="name string, price double")
        >>> priced = orders.join(products, "product_id", lambda order, product: order["n"] * product["price"])
        """
        return GlobalTable(self._graph, self.table(topic, **options).node)

    def kept(self, node: Node) -> Table:
        """A table that somebody else keeps, as a handle."""
        self._graph.add(node)
        return Table(self._graph, node)

    def describe(self, form: str = "text") -> str:
        """The topology for people: as `text`, as a `mermaid` flow chart, or as `json`."""
        return describe(self.build(), form)

    def nodes(self) -> tuple[Node, ...]:
        """The steps so far, of which somebody else makes a topology."""
        used(self)
        return self._graph.topology().nodes

    def build(self) -> Topology:
        """Check everything that can be checked without running, and return the topology."""
        used(self)
        topology = self._graph.topology()
        validate(topology)
        infer(topology)
        return topology
