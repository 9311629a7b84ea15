"""Call processors on a stream, and sort its records by event time."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any, Generic, overload

from potok.dsl.graph_builder import calling_location
from potok.dsl.handle import Declared, Handle, K, R, V
from potok.dsl.inputs.serdes import schema_of
from potok.duration import Duration, to_ms
from potok.errors import TopologyError
from potok.topology.nodes import Channel, Ordered, Process, StoreTable
from potok.topology.processor import Processor, ProcessorContext, processor_of
from potok.topology.stores import Store, is_readable
from potok.topology.validate import NAME

if TYPE_CHECKING:
    from potok.dsl.processed_stream import ProcessedStream
    from potok.dsl.stream import Stream

AnyProcessor = (
    Processor | type[Processor] | Callable[[], Processor] | Callable[[K, V, ProcessorContext], Iterable[Any] | None]
)
"""A processor, its class, a function that makes one, or a function of key, value and context."""

OnTimer = Callable[[K, int, ProcessorContext], Iterable[Any] | None]
"""A function of key, time and context."""


class Processing(Handle, Generic[K, V]):
    """The methods that call a processor."""

    @overload
    def process(
        self,
        processor: AnyProcessor[K, V],
        *,
        outputs: Mapping[str, object] | None = None,
        stores: Mapping[str, Store] | None = None,
        on_timer: OnTimer[K] | None = None,
        key: None = None,
        value: type[R],
        name: str | None = None,
    ) -> ProcessedStream[K, R]: ...
    @overload
    def process(
        self,
        processor: AnyProcessor[K, V],
        *,
        outputs: Mapping[str, object] | None = None,
        stores: Mapping[str, Store] | None = None,
        on_timer: OnTimer[K] | None = None,
        key: None = None,
        value: Declared | None = None,
        name: str | None = None,
    ) -> ProcessedStream[K, Any]: ...
    @overload
    def process(
        self,
        processor: AnyProcessor[K, V],
        *,
        outputs: Mapping[str, object] | None = None,
        stores: Mapping[str, Store] | None = None,
        on_timer: OnTimer[K] | None = None,
        key: object,
        value: object = None,
        name: str | None = None,
    ) -> ProcessedStream[Any, Any]: ...
    def process(
        self,
        processor: AnyProcessor[K, V],
        *,
        outputs: Mapping[str, object] | None = None,
        stores: Mapping[str, Store] | None = None,
        on_timer: OnTimer[K] | None = None,
        key: object = None,
        value: object = None,
        name: str | None = None,
    ) -> ProcessedStream[Any, Any]:
        """Call a processor for each record. A processor has state per key, timers, and any number of outputs.

        >>> found = clicks.process(Detector, outputs={"alerts": "user string, clicks bigint"}, name="detector")
        >>> found["alerts"].to("alerts")

        Records without a key become dead letters. If a call raises, the record becomes a dead letter, and everything
        that the call stored, sent or scheduled is rolled back.

        Args:
            processor: A `Processor`, its class, or a function of key, value and context.
            outputs: The named outputs, each with the type of its values; None means values of any shape.
            stores: The stores of a function, available as `ctx.store("name")`.
            on_timer: Called when a timer of a function is due, with key, time and context.
            key: The type of the keys that are sent; by default the key type of the stream.
            value: The type of the values of the main output.
            name: Names the step and its state.
        """
        return self._process("process", processor, outputs, stores, on_timer, key, value, name, fixed_key=False)

    @overload
    def process_values(
        self,
        processor: AnyProcessor[K, V],
        *,
        outputs: Mapping[str, object] | None = None,
        stores: Mapping[str, Store] | None = None,
        on_timer: OnTimer[K] | None = None,
        value: type[R],
        name: str | None = None,
    ) -> ProcessedStream[K, R]: ...
    @overload
    def process_values(
        self,
        processor: AnyProcessor[K, V],
        *,
        outputs: Mapping[str, object] | None = None,
        stores: Mapping[str, Store] | None = None,
        on_timer: OnTimer[K] | None = None,
        value: Declared | None = None,
        name: str | None = None,
    ) -> ProcessedStream[K, Any]: ...
    def process_values(
        self,
        processor: AnyProcessor[K, V],
        *,
        outputs: Mapping[str, object] | None = None,
        stores: Mapping[str, Store] | None = None,
        on_timer: OnTimer[K] | None = None,
        value: object = None,
        name: str | None = None,
    ) -> ProcessedStream[Any, Any]:
        """Call a processor like `process`, and send all its output under the key of the record.

        Steps by that key need no repartitioning after it, and the order per key is preserved.
        """
        return self._process("process_values", processor, outputs, stores, on_timer, None, value, name, fixed_key=True)

    def ordered(self, grace: Duration, *, name: str | None = None) -> Stream[K, V]:
        """Sort the records of each key by event time, and records with the same event time by position.

        A record waits until the watermark has passed it. The results of later steps that depend on the order, such as
        `reduce`, `collect_list` and processors, then do not depend on the order of arrival.

        >>> steps = clicks.select_key("user").ordered(grace="10 seconds").group_by_key().collect_list("page")

        Args:
            grace: How far a record may be behind the stream time of its partition; a record further behind is late
                and becomes a dead letter.
            name: Names the step and its state.
        """
        at = calling_location()
        grace_ms = to_ms(grace)
        if grace_ms < 0:
            raise TopologyError("a grace cannot be negative", hint='write ordered("10 seconds")', at=at)
        node = Ordered(self._state_name(name, "ordered"), at, self._node, grace_ms)
        self._graph.add(node)
        return self._graph.classes.stream(self._graph, node)

    def _process(
        self,
        verb: str,
        given: AnyProcessor[K, V],
        outputs: Mapping[str, object] | None,
        stores: Mapping[str, Store] | None,
        on_timer: OnTimer[K] | None,
        key: object,
        value: object,
        name: str | None,
        *,
        fixed_key: bool,
    ) -> ProcessedStream[Any, Any]:
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
        return self._graph.classes.processed_stream(self._graph, node, channels, tables)

    if TYPE_CHECKING:
        processValues = process_values
