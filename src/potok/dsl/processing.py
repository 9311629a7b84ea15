"""Steps of the user's own on a stream, and putting its records in order."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from potok.dsl.graph_builder import calling_location
from potok.dsl.handle import Handle
from potok.dsl.serdes import schema_of
from potok.duration import Duration, to_ms
from potok.errors import TopologyError
from potok.topology.nodes import Channel, Ordered, Process, StoreTable
from potok.topology.processor import Processor, processor_of
from potok.topology.stores import Store, is_readable
from potok.topology.validate import NAME

if TYPE_CHECKING:
    from potok.dsl.processed_stream import ProcessedStream
    from potok.dsl.stream import Stream

AnyProcessor = Processor | type[Processor] | Callable[..., Any]
"""A processor, its class, a function that makes one, or a function of key, value and context."""


class Processing(Handle):
    """The verbs that call a processor."""

    def process(
        self,
        processor: AnyProcessor,
        *,
        outputs: Mapping[str, object] | None = None,
        stores: Mapping[str, Store] | None = None,
        on_timer: Callable[..., Any] | None = None,
        key: object = None,
        value: object = None,
        name: str = "",
    ) -> ProcessedStream:
        """Call a processor for each record: it keeps state for each key, sets timers, and sends on what it likes.

        >>> found = clicks.process(Detector, outputs={"alerts": "user string, clicks bigint"}, name="detector")
        >>> found["alerts"].to("alerts")

        Records without a key are set aside. If a call raises, the record becomes a dead letter, and nothing that the
        call kept, sent or scheduled remains.

        Args:
            processor: A `Processor`, its class, or a function of key, value and context.
            outputs: The named outputs, each with the type of its values; None is a dynamic one.
            stores: The stores of a function, reached by `ctx.store("name")`.
            on_timer: What a function calls when its timers are due: a function of key, time and context.
            key: The type of the keys that are sent; that of the stream if left out.
            value: The type of the values that go to the main output.
            name: Names the step: its state is found under it.
        """
        return self._process("process", processor, outputs, stores, on_timer, key, value, name, fixed_key=False)

    def process_values(
        self,
        processor: AnyProcessor,
        *,
        outputs: Mapping[str, object] | None = None,
        stores: Mapping[str, Store] | None = None,
        on_timer: Callable[..., Any] | None = None,
        value: object = None,
        name: str = "",
    ) -> ProcessedStream:
        """Like `process`, with a processor that sends everything under the key of the record.

        So what it sends is already where steps by that key need it, and in one order.
        """
        return self._process("process_values", processor, outputs, stores, on_timer, None, value, name, fixed_key=True)

    def ordered(self, grace: Duration, *, name: str = "") -> Stream:
        """Put the records of each key in order of event time, and of those with one time, by position.

        A record waits until the clock says that none can come before it. Steps behind it that depend on the order, such
        as `reduce`, `collect_list` and processors, then give one result, however records come.

        >>> steps = clicks.select_key("user").ordered(grace="10 seconds").group_by_key().collect_list("page")

        Args:
            grace: How far behind the stream time of its partition a record may be; one that is further is late, and
                becomes a dead letter.
            name: Names the step: what waits is found under it.
        """
        from potok.dsl.stream import Stream  # a stream has this verb

        at = calling_location()
        grace_ms = to_ms(grace)
        if grace_ms < 0:
            raise TopologyError("a grace cannot be negative", hint='write ordered("10 seconds")', at=at)
        node = Ordered(self._state_name(name, "ordered"), at, self._node, grace_ms)
        self._graph.add(node)
        return Stream(self._graph, node)

    def _process(
        self,
        verb: str,
        given: AnyProcessor,
        outputs: Mapping[str, object] | None,
        stores: Mapping[str, Store] | None,
        on_timer: Callable[..., Any] | None,
        key: object,
        value: object,
        name: str,
        *,
        fixed_key: bool,
    ) -> ProcessedStream:
        from potok.dsl.processed_stream import ProcessedStream  # it is a stream, and a stream has this verb

        at = calling_location()
        processor = processor_of(given, on_timer, stores, at)
        for output in outputs or {}:
            if not NAME.fullmatch(output):
                raise TopologyError(f'"{output}" cannot be the name of an output', hint='write "alerts"', at=at)
        node = Process(
            self._state_name(name, verb),
            at,
            self._node,
            processor,
            processor.functions(),
            tuple(processor.declared().items()),
            tuple((output, schema_of(declared, at)) for output, declared in (outputs or {}).items()),
            schema_of(key, at),
            schema_of(value, at),
            fixed_key,
        )
        self._graph.add(node)
        channels: dict[str, Channel] = {}
        for index, (output, schema) in enumerate(node.channels):
            channels[output] = Channel(f"{node.name}.{output}", at, node, index, schema)
            self._graph.add(channels[output])
        readable = [store for store, declared in node.stores if is_readable(declared)]
        if readable and node.key_schema is not None:
            raise TopologyError(
                f'the store "{readable[0]}" is a table by the key of the stream, but key= declares another type',
                hint="leave key= out and give records their new key behind the processor: .select_key(...)",
                at=at,
            )
        tables: dict[str, StoreTable] = {}
        for index, store in enumerate(readable, len(channels)):
            tables[store] = StoreTable(f"{node.name}.{store}", at, node, index, store)
            self._graph.add(tables[store])
        return ProcessedStream(self._graph, node, channels, tables)
