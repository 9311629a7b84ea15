"""The methods of a stream that look at one record at a time."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, Generic, overload

from potok.dsl.graph_builder import calling_location
from potok.dsl.handle import K2, V2, Declared, Handle, K, R, Selector, V, selector
from potok.dsl.inputs.serdes import schema_of
from potok.errors import TopologyError
from potok.expressions.function import Function
from potok.topology.nodes import (
    Filter,
    FlatMap,
    FlatMapValues,
    Foreach,
    FrameFormat,
    Map,
    MapBatches,
    MapValues,
    Node,
    Peek,
    SelectKey,
)

if TYPE_CHECKING:
    from potok.dsl.stream import Stream


class Stateless(Handle, Generic[K, V]):
    """Filters and mappings. Each function takes the value, or key and value."""

    def _add(self, node: Node) -> Stream[Any, Any]:
        raise NotImplementedError

    @overload
    def filter(self, predicate: Callable[[V], object], *, name: str | None = None) -> Stream[K, V]: ...
    @overload
    def filter(self, predicate: Callable[[K, V], object], *, name: str | None = None) -> Stream[K, V]: ...
    def filter(self, predicate: Callable[..., object], *, name: str | None = None) -> Stream[K, V]:
        """Keep the records whose value satisfies `predicate`.

        >>> large = orders.filter(lambda k, v: v["amount"] > 100)

        Args:
            predicate: Called with key and value, or with the value alone. Must be free of side effects: Spark may call
                it again after a failure.
            name: Names the step in metrics and `describe()`.
        """
        function = Function.of(predicate, (1, 2))
        return self._add(Filter(self._name(name, "filter"), calling_location(), self._node, function))

    @overload
    def filter_not(self, predicate: Callable[[V], object], *, name: str | None = None) -> Stream[K, V]: ...
    @overload
    def filter_not(self, predicate: Callable[[K, V], object], *, name: str | None = None) -> Stream[K, V]: ...
    def filter_not(self, predicate: Callable[..., object], *, name: str | None = None) -> Stream[K, V]:
        """Drop the records whose value satisfies `predicate`."""
        function = Function.of(predicate, (1, 2))
        return self._add(Filter(self._name(name, "filter_not"), calling_location(), self._node, function, negate=True))

    @overload
    def map(
        self, function: Callable[[V], tuple[K2, V2]], *, key: None = None, value: None = None, name: str | None = None
    ) -> Stream[K2, V2]: ...
    @overload
    def map(
        self,
        function: Callable[[K, V], tuple[K2, V2]],
        *,
        key: None = None,
        value: None = None,
        name: str | None = None,
    ) -> Stream[K2, V2]: ...
    @overload
    def map(
        self,
        function: Callable[[V], tuple[K2, object]],
        *,
        key: None = None,
        value: type[V2],
        name: str | None = None,
    ) -> Stream[K2, V2]: ...
    @overload
    def map(
        self,
        function: Callable[[K, V], tuple[K2, object]],
        *,
        key: None = None,
        value: type[V2],
        name: str | None = None,
    ) -> Stream[K2, V2]: ...
    @overload
    def map(
        self, function: Callable[..., Any], *, key: None = None, value: Declared, name: str | None = None
    ) -> Stream[Any, Any]: ...
    @overload
    def map(
        self, function: Callable[..., Any], *, key: object, value: object = None, name: str | None = None
    ) -> Stream[Any, Any]: ...
    def map(
        self, function: Callable[..., Any], *, key: object = None, value: object = None, name: str | None = None
    ) -> Stream[Any, Any]:
        """Replace key and value: the function returns a pair.

        >>> with_tax = orders.map(lambda k, v: (k, v["amount"] * 1.1))

        Args:
            function: Called with key and value, or with the value alone; returns `(key, value)`.
            key: The type of the returned keys, if tracing cannot infer it.
            value: The type of the returned values, if tracing cannot infer it.
            name: Names the step.
        """
        at = calling_location()
        schemas = schema_of(key, at), schema_of(value, at)
        return self._add(Map(self._name(name, "map"), at, self._node, Function.of(function, (1, 2)), *schemas))

    @overload
    def map_values(
        self, function: Callable[[V], R], *, value: None = None, name: str | None = None
    ) -> Stream[K, R]: ...
    @overload
    def map_values(
        self, function: Callable[[K, V], R], *, value: None = None, name: str | None = None
    ) -> Stream[K, R]: ...
    @overload
    def map_values(
        self, function: Callable[[V], object], *, value: type[R], name: str | None = None
    ) -> Stream[K, R]: ...
    @overload
    def map_values(
        self, function: Callable[[K, V], object], *, value: type[R], name: str | None = None
    ) -> Stream[K, R]: ...
    @overload
    def map_values(
        self, function: Callable[..., object], *, value: Declared, name: str | None = None
    ) -> Stream[K, Any]: ...
    def map_values(
        self, function: Callable[..., Any], *, value: object = None, name: str | None = None
    ) -> Stream[K, Any]:
        """Replace the value and keep the key.

        >>> marked = large.map_values(lambda v: {**v, "status": "HIGH_VALUE"})

        Args:
            function: Called with the value, or with key and value; returns the new value.
            value: The type of the returned values, if tracing cannot infer it.
            name: Names the step.
        """
        at = calling_location()
        step = self._name(name, "map_values")
        return self._add(MapValues(step, at, self._node, Function.of(function, (1, 2)), schema_of(value, at)))

    @overload
    def map_batches(
        self,
        function: Callable[..., Any],
        *,
        value: type[R],
        format: FrameFormat = "arrow",
        setup: Callable[[], Any] | None = None,
        with_key: bool = False,
        row_column: str | None = None,
        name: str | None = None,
    ) -> Stream[K, R]: ...
    @overload
    def map_batches(
        self,
        function: Callable[..., Any],
        *,
        value: Declared | None = None,
        format: FrameFormat = "arrow",
        setup: Callable[[], Any] | None = None,
        with_key: bool = False,
        row_column: str | None = None,
        name: str | None = None,
    ) -> Stream[K, Any]: ...
    def map_batches(
        self,
        function: Callable[..., Any],
        *,
        value: object = None,
        format: FrameFormat = "arrow",
        setup: Callable[[], Any] | None = None,
        with_key: bool = False,
        row_column: str | None = None,
        name: str | None = None,
    ) -> Stream[K, Any]:
        """Replace the values of many records at once, by a function of columns; keep the keys.

        >>> scored = orders.map_batches(lambda df, model: model.predict(df), format="pandas", setup=load, value=float)

        The result for a record must not depend on the other records of the call: how many there are differs from batch
        to batch. The test driver checks this. If the function raises, it is called again with fewer records, so that
        only those that fail alone become dead letters. Records without a value are not passed to it.

        Args:
            function: Called with a frame that has a column for each field of the value, or the column `value`; and
                with the result of `setup`, if given. Returns one row for each row: a frame or a dict of columns, or a
                single column (Arrow, pandas, Polars, NumPy or a list) if the values have no fields.
            value: The type of the results; without one they are dynamic values.
            format: `arrow` passes a `pyarrow.Table`, `pandas` and `polars` their DataFrame. In pandas, integers and
                booleans have the nullable types, so that a column has the same type in each call.
            setup: Called once in each process that runs the step, for example to load a model.
            with_key: Pass the key in the column `key`.
            row_column: The name of a column with the number of each row. The result has it too, and may have any
                number of rows for each number.
            name: Names the step.
        """
        at = calling_location()
        if format not in ("arrow", "pandas", "polars"):
            raise TopologyError(f'there is no format "{format}"', hint="choose arrow, pandas or polars", at=at)
        made = None if setup is None else Function.of(setup, (0,))
        hint = "write lambda frame: ..." if setup is None else "write lambda frame, model: ..., with setup="
        node = MapBatches(
            self._name(name, "map_batches"),
            at,
            self._node,
            Function.of(function, (1,) if setup is None else (2,), hint),
            format,
            schema_of(value, at),
            made,
            with_key,
            row_column or "",
        )
        return self._add(node)

    @overload
    def flat_map(
        self,
        function: Callable[[V], Iterable[tuple[K2, V2]]],
        *,
        key: None = None,
        value: None = None,
        name: str | None = None,
    ) -> Stream[K2, V2]: ...
    @overload
    def flat_map(
        self,
        function: Callable[[K, V], Iterable[tuple[K2, V2]]],
        *,
        key: None = None,
        value: None = None,
        name: str | None = None,
    ) -> Stream[K2, V2]: ...
    @overload
    def flat_map(
        self, function: Callable[..., Iterable[Any]], *, key: None = None, value: type[V2], name: str | None = None
    ) -> Stream[Any, V2]: ...
    @overload
    def flat_map(
        self, function: Callable[..., Iterable[Any]], *, key: None = None, value: Declared, name: str | None = None
    ) -> Stream[Any, Any]: ...
    @overload
    def flat_map(
        self, function: Callable[..., Iterable[Any]], *, key: object, value: object = None, name: str | None = None
    ) -> Stream[Any, Any]: ...
    def flat_map(
        self, function: Callable[..., Any], *, key: object = None, value: object = None, name: str | None = None
    ) -> Stream[Any, Any]:
        """Replace a record with any number of `(key, value)` pairs.

        >>> items = orders.flat_map(lambda k, v: [(k, item) for item in v["items"]])
        """
        at = calling_location()
        schemas = schema_of(key, at), schema_of(value, at)
        return self._add(FlatMap(self._name(name, "flat_map"), at, self._node, Function.of(function, (1, 2)), *schemas))

    @overload
    def flat_map_values(
        self, function: Callable[[V], Iterable[R]], *, value: None = None, name: str | None = None
    ) -> Stream[K, R]: ...
    @overload
    def flat_map_values(
        self, function: Callable[[K, V], Iterable[R]], *, value: None = None, name: str | None = None
    ) -> Stream[K, R]: ...
    @overload
    def flat_map_values(
        self, function: Callable[..., Iterable[Any]], *, value: type[R], name: str | None = None
    ) -> Stream[K, R]: ...
    @overload
    def flat_map_values(
        self, function: Callable[..., Iterable[Any]], *, value: Declared, name: str | None = None
    ) -> Stream[K, Any]: ...
    def flat_map_values(
        self, function: Callable[..., Any], *, value: object = None, name: str | None = None
    ) -> Stream[K, Any]:
        """Replace a value with any number of values under the same key."""
        at = calling_location()
        step = self._name(name, "flat_map_values")
        return self._add(FlatMapValues(step, at, self._node, Function.of(function, (1, 2)), schema_of(value, at)))

    @overload
    def select_key(self, function: str, *, key: type[K2], name: str | None = None) -> Stream[K2, V]: ...
    @overload
    def select_key(self, function: str, *, key: Declared | None = None, name: str | None = None) -> Stream[Any, V]: ...
    @overload
    def select_key(
        self, function: Callable[[V], K2], *, key: type[K2] | None = None, name: str | None = None
    ) -> Stream[K2, V]: ...
    @overload
    def select_key(
        self, function: Callable[[K, V], K2], *, key: type[K2] | None = None, name: str | None = None
    ) -> Stream[K2, V]: ...
    @overload
    def select_key(self, function: Callable[..., Any], *, key: Declared, name: str | None = None) -> Stream[Any, V]: ...
    def select_key(self, function: Selector, *, key: object = None, name: str | None = None) -> Stream[Any, V]:
        """Replace the key with a field of the value, or with the result of a function of key and value."""
        at = calling_location()
        step = self._name(name, "select_key")
        return self._add(SelectKey(step, at, self._node, selector(function), schema_of(key, at)))

    @overload
    def peek(self, action: Callable[[V], object], *, name: str | None = None) -> Stream[K, V]: ...
    @overload
    def peek(self, action: Callable[[K, V], object], *, name: str | None = None) -> Stream[K, V]: ...
    def peek(self, action: Callable[..., object], *, name: str | None = None) -> Stream[K, V]:
        """Call `action` for each record and pass the record on. It may be called again after a crash."""
        return self._add(Peek(self._name(name, "peek"), calling_location(), self._node, Function.of(action, (1, 2))))

    @overload
    def foreach(self, action: Callable[[V], object], *, name: str | None = None) -> None: ...
    @overload
    def foreach(self, action: Callable[[K, V], object], *, name: str | None = None) -> None: ...
    def foreach(self, action: Callable[..., object], *, name: str | None = None) -> None:
        """Call `action` for each record. It may be called again after a crash."""
        step = self._name(name, "foreach")
        self._graph.add(Foreach(step, calling_location(), self._node, Function.of(action, (1, 2))))

    if TYPE_CHECKING:
        filterNot = filter_not
        flatMap = flat_map
        flatMapValues = flat_map_values
        forEach = foreach
        mapValues = map_values
        selectKey = select_key
