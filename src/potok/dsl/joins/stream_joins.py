"""Join a stream with another stream or with a table."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Generic, TypedDict, Unpack, overload

from potok.dsl.graph_builder import calling_location
from potok.dsl.handle import Declared, Handle, K, R, Selector, V, W
from potok.dsl.joins.join_steps import Joiner, JoinRequest, Within, join_name, join_node
from potok.dsl.table import GlobalTable, Table
from potok.duration import Duration
from potok.errors import TopologyError
from potok.topology.nodes import JoinKind, Node

if TYPE_CHECKING:
    from potok.dsl.stream import Stream


class StreamJoinOptions(TypedDict, total=False):
    """The options of a join with a stream."""

    within: Within | None
    grace: Duration | None
    name: str | None


class JoinOptions(StreamJoinOptions, total=False):
    """The options of a join with a stream or a table."""

    on: Selector | None
    key: object
    wait_for_table: bool


class Joining(Handle, Generic[K, V]):
    """The joins of a stream."""

    def _add(self, node: Node) -> Stream[Any, Any]:
        raise NotImplementedError

    @overload
    def join(
        self,
        other: Stream[Any, W] | Table[Any, W],
        joiner: Callable[[V, W], R],
        *,
        value: None = None,
        **options: Unpack[JoinOptions],
    ) -> Stream[K, R]: ...
    @overload
    def join(
        self,
        other: Stream[Any, W] | Table[Any, W],
        joiner: Callable[[K, V, W], R],
        *,
        value: None = None,
        **options: Unpack[JoinOptions],
    ) -> Stream[K, R]: ...
    @overload
    def join(
        self,
        other: Stream[Any, W] | Table[Any, W],
        joiner: Callable[[V, W], object],
        *,
        value: type[R],
        **options: Unpack[JoinOptions],
    ) -> Stream[K, R]: ...
    @overload
    def join(
        self,
        other: Stream[Any, W] | Table[Any, W],
        joiner: Callable[[K, V, W], object],
        *,
        value: type[R],
        **options: Unpack[JoinOptions],
    ) -> Stream[K, R]: ...
    @overload
    def join(
        self,
        other: Stream[Any, Any] | Table[Any, Any],
        joiner: Callable[..., object] | None = None,
        *,
        value: Declared,
        **options: Unpack[JoinOptions],
    ) -> Stream[K, Any]: ...
    @overload
    def join(
        self,
        other: Stream[Any, Any] | Table[Any, Any],
        joiner: None = None,
        *,
        value: None = None,
        **options: Unpack[JoinOptions],
    ) -> Stream[K, Any]: ...
    @overload
    def join(
        self,
        other: GlobalTable[Any, W],
        on_key: Selector,
        /,
        joiner: Callable[[V, W], R],
        *,
        value: None = None,
        **options: Unpack[JoinOptions],
    ) -> Stream[K, R]: ...
    @overload
    def join(
        self,
        other: GlobalTable[Any, W],
        on_key: Selector,
        /,
        joiner: Callable[[K, V, W], R],
        *,
        value: None = None,
        **options: Unpack[JoinOptions],
    ) -> Stream[K, R]: ...
    @overload
    def join(
        self,
        other: GlobalTable[Any, Any],
        on_key: Selector,
        /,
        joiner: Callable[..., object] | None = None,
        *,
        value: object,
        **options: Unpack[JoinOptions],
    ) -> Stream[K, Any]: ...
    @overload
    def join(
        self,
        other: GlobalTable[Any, Any],
        on_key: Selector,
        /,
        joiner: None = None,
        *,
        value: None = None,
        **options: Unpack[JoinOptions],
    ) -> Stream[K, Any]: ...
    def join(
        self,
        other: Stream[Any, Any] | Table[Any, Any],
        *functions: Any,
        joiner: Joiner | None = None,
        within: Within | None = None,
        grace: Duration | None = None,
        on: Selector | None = None,
        key: object = None,
        value: object = None,
        wait_for_table: bool = False,
        name: str | None = None,
    ) -> Stream[K, Any]:
        """Join the records of this stream with those of another stream, or with the rows of a table.

        With a stream, emit each pair of records once that has the same key and whose times are at most `within` apart,
        whichever record arrived first. The time of the pair is the later of the two. A record that arrives after
        everything it could match has expired becomes a dead letter.

        >>> paid = orders.join(payments, lambda order, payment: {**order, **payment}, within="10 minutes")

        With a table, emit each record with the row of its key, under its own key; drop a record without a row. The row
        is the current one, after the changes of the same batch, or, for a table with a `history`, the version as of the
        record's time, as far as it is known: the result depends on the order of arrival. With `grace=`, a record waits
        until the table's stream time, too, is that far past the record's time, and is joined with the version as of its
        time: the result then does not depend on the order of arrival. A record or a row that is later than the grace is
        treated as if it had the earliest time that is not too late.

        >>> known = clicks.join(users, lambda click, user: {**click, "country": user["country"]})
        >>> priced = orders.join(products, "product_id", lambda order, product: order["n"] * product["price"])

        A record without a key becomes a dead letter.

        Args:
            other: A stream, a table, or a global table.
            functions: The joiner: called with left and right value, or with the key and both. Without a joiner, the
                value is `{"left": ..., "right": ...}`. For a global table, the key to look up comes first: a field of
                the value, or a function of the value, or of key and value.
            joiner: The joiner as a keyword argument.
            within: For streams: the largest difference in time. With a pair `(before, after)`, the other record may be
                up to `before` earlier and up to `after` later than the record of this stream.
            grace: For streams: how much later records are still accepted. For tables: how long records wait.
            on: For tables: the key to look up, if it is not the key of the record. A record whose `on` is null matches
                no row.
            key: The type of the key that `on` returns, if tracing cannot infer it.
            value: The type of the results, if tracing cannot infer it and they should be typed.
            wait_for_table: Read this stream only after the table's topics have been read up to the offsets that they
                had when the query started.
            name: Names the step and its state.
        """
        options = joiner, within, grace, on, key, value, wait_for_table, name, calling_location()
        return self._joined(other, JoinRequest(JoinKind.INNER, functions, *options))

    @overload
    def left_join(
        self,
        other: Stream[Any, W] | Table[Any, W],
        joiner: Callable[[V, W | None], R],
        *,
        value: None = None,
        **options: Unpack[JoinOptions],
    ) -> Stream[K, R]: ...
    @overload
    def left_join(
        self,
        other: Stream[Any, W] | Table[Any, W],
        joiner: Callable[[K, V, W | None], R],
        *,
        value: None = None,
        **options: Unpack[JoinOptions],
    ) -> Stream[K, R]: ...
    @overload
    def left_join(
        self,
        other: Stream[Any, W] | Table[Any, W],
        joiner: Callable[[V, W | None], object],
        *,
        value: type[R],
        **options: Unpack[JoinOptions],
    ) -> Stream[K, R]: ...
    @overload
    def left_join(
        self,
        other: Stream[Any, W] | Table[Any, W],
        joiner: Callable[[K, V, W | None], object],
        *,
        value: type[R],
        **options: Unpack[JoinOptions],
    ) -> Stream[K, R]: ...
    @overload
    def left_join(
        self,
        other: Stream[Any, Any] | Table[Any, Any],
        joiner: Callable[..., object] | None = None,
        *,
        value: Declared,
        **options: Unpack[JoinOptions],
    ) -> Stream[K, Any]: ...
    @overload
    def left_join(
        self,
        other: Stream[Any, Any] | Table[Any, Any],
        joiner: None = None,
        *,
        value: None = None,
        **options: Unpack[JoinOptions],
    ) -> Stream[K, Any]: ...
    @overload
    def left_join(
        self,
        other: GlobalTable[Any, W],
        on_key: Selector,
        /,
        joiner: Callable[[V, W | None], R],
        *,
        value: None = None,
        **options: Unpack[JoinOptions],
    ) -> Stream[K, R]: ...
    @overload
    def left_join(
        self,
        other: GlobalTable[Any, W],
        on_key: Selector,
        /,
        joiner: Callable[[K, V, W | None], R],
        *,
        value: None = None,
        **options: Unpack[JoinOptions],
    ) -> Stream[K, R]: ...
    @overload
    def left_join(
        self,
        other: GlobalTable[Any, Any],
        on_key: Selector,
        /,
        joiner: Callable[..., object] | None = None,
        *,
        value: object,
        **options: Unpack[JoinOptions],
    ) -> Stream[K, Any]: ...
    @overload
    def left_join(
        self,
        other: GlobalTable[Any, Any],
        on_key: Selector,
        /,
        joiner: None = None,
        *,
        value: None = None,
        **options: Unpack[JoinOptions],
    ) -> Stream[K, Any]: ...
    def left_join(
        self,
        other: Stream[Any, Any] | Table[Any, Any],
        *functions: Any,
        joiner: Joiner | None = None,
        within: Within | None = None,
        grace: Duration | None = None,
        on: Selector | None = None,
        key: object = None,
        value: object = None,
        wait_for_table: bool = False,
        name: str | None = None,
    ) -> Stream[K, Any]:
        """Join like `join`, and emit the records of this stream without a match, with None on the right.

        With a stream, these are emitted once, when no matching record can arrive any more.
        """
        options = joiner, within, grace, on, key, value, wait_for_table, name, calling_location()
        return self._joined(other, JoinRequest(JoinKind.LEFT, functions, *options))

    @overload
    def outer_join(
        self,
        other: Stream[Any, W],
        joiner: Callable[[V | None, W | None], R],
        *,
        value: None = None,
        **options: Unpack[StreamJoinOptions],
    ) -> Stream[K, R]: ...
    @overload
    def outer_join(
        self,
        other: Stream[Any, W],
        joiner: Callable[[K, V | None, W | None], R],
        *,
        value: None = None,
        **options: Unpack[StreamJoinOptions],
    ) -> Stream[K, R]: ...
    @overload
    def outer_join(
        self,
        other: Stream[Any, W],
        joiner: Callable[[V | None, W | None], object],
        *,
        value: type[R],
        **options: Unpack[StreamJoinOptions],
    ) -> Stream[K, R]: ...
    @overload
    def outer_join(
        self,
        other: Stream[Any, W],
        joiner: Callable[[K, V | None, W | None], object],
        *,
        value: type[R],
        **options: Unpack[StreamJoinOptions],
    ) -> Stream[K, R]: ...
    @overload
    def outer_join(
        self,
        other: Stream[Any, Any],
        joiner: Callable[..., object] | None = None,
        *,
        value: Declared,
        **options: Unpack[StreamJoinOptions],
    ) -> Stream[K, Any]: ...
    @overload
    def outer_join(
        self,
        other: Stream[Any, Any],
        joiner: None = None,
        *,
        value: None = None,
        **options: Unpack[StreamJoinOptions],
    ) -> Stream[K, Any]: ...
    def outer_join(
        self,
        other: Stream[Any, Any],
        *functions: Any,
        joiner: Joiner | None = None,
        within: Within | None = None,
        grace: Duration | None = None,
        value: object = None,
        name: str | None = None,
    ) -> Stream[K, Any]:
        """Join like `left_join`, and emit the records of the other stream without a match, with None on the left."""
        at = calling_location()
        if isinstance(other, Table):
            hint = "use left_join, or make a table of this stream: stream.to_table().outer_join(table)"
            raise TopologyError("a stream cannot be outer-joined with a table", hint=hint, at=at)
        options = joiner, within, grace, None, None, value, False, name, at
        return self._joined(other, JoinRequest(JoinKind.OUTER, functions, *options))

    def _joined(self, other: Stream[Any, Any] | Table[Any, Any], asked: JoinRequest) -> Stream[K, Any]:
        if not isinstance(other, Joining | Table):
            hint = "pass a stream or a table of the same builder"
            raise TopologyError(f"cannot join a stream to {other!r}", hint=hint, at=asked.at)
        if other._graph is not self._graph:
            raise TopologyError("cannot join handles of two builders", hint="use one StreamsBuilder", at=asked.at)
        name = join_name(self._graph, self._node, other, asked)
        return self._add(join_node(self._graph, self._node, other, name, asked))

    if TYPE_CHECKING:
        leftJoin = left_join
        outerJoin = outer_join
