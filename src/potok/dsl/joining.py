"""Joins of a stream, with another stream and with a table."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from potok.dsl.graph_builder import calling_location
from potok.dsl.handle import Handle, Selector, UnnamedState, selector
from potok.dsl.history import history_of, kept_history_ms
from potok.dsl.serdes import schema_of
from potok.dsl.table import GlobalTable, Table
from potok.duration import Duration, to_ms
from potok.errors import Location, TopologyError
from potok.expressions.function import JOINER, Function
from potok.records.schemas.schema import Schema
from potok.topology.nodes import HistoryLookup, JoinKind, JoinWindow, LookupKey, Node, StreamJoin, TableLookup

if TYPE_CHECKING:
    from potok.dsl.stream import Stream

Within = Duration | tuple[Duration, Duration]
"""How far apart two records may be: one duration for both directions, or how much earlier and how much later."""

Both = Selector
"""A joiner or, for a global table, first the key to look up."""

Joiner = Callable[..., Any]
"""A function of the left and the right value, or of the key and both."""


class JoinWithoutWindow(TopologyError):
    """A stream-stream join was asked for without saying how far apart."""

    def __init__(self, left: str, right: str, at: Location | None) -> None:
        super().__init__(
            f'cannot join stream "{left}" to stream "{right}" without a window',
            hint="pass within=, for example within=minutes(5), or turn one side into a table",
            at=at,
        )


@dataclass(frozen=True, slots=True)
class _Options:
    """What a join was told beside its sides."""

    joiner: Joiner | None
    within: Within | None
    grace: Duration | None
    on: Selector | None
    key: object
    value: object
    wait_for_table: bool
    name: str
    at: Location | None


class Joining(Handle):
    """What a stream can be joined with."""

    def _add(self, node: Node) -> Stream:
        raise NotImplementedError

    def join(
        self,
        other: Stream | Table,
        *functions: Both,
        joiner: Joiner | None = None,
        within: Within | None = None,
        grace: Duration | None = None,
        on: Selector | None = None,
        key: object = None,
        value: object = None,
        wait_for_table: bool = False,
        name: str = "",
    ) -> Stream:
        """Put the records of this stream together with those of another, or with the rows of a table.

        With a stream, each pair of records comes out once that have the same key and are `within` so much of each
        other, whichever came first. Its time is the later of the two. Records that come so late that all they could
        meet lies behind are dead letters.

        >>> paid = orders.join(payments, lambda order, payment: {**order, **payment}, within="10 minutes")

        With a table, each record comes out with the row of its key, and under its own key; without a row it does not
        come out. The row is the one at hand, after the changes of the same batch, or, of a table with a `history`, the
        one as of the record's time, as far as it is known: the result depends on what came first. With `grace=`, a
        record waits until the table's stream time, too, has come so far past the record's time, and meets the row as
        of its time: then the order does not matter. A record or a row that comes later than the grace counts as if it
        had the earliest time that is not too late.

        >>> known = clicks.join(users, lambda click, user: {**click, "country": user["country"]})
        >>> priced = orders.join(products, "product_id", lambda order, product: order["n"] * product["price"])

        A record without a key is a dead letter.

        Args:
            other: A stream, a table, or a global table.
            functions: The joiner: called with left and right value, or with the key and both. Without one, the value
                is `{"left": ..., "right": ...}`. For a global table, first the key to look up: a field of the value, or
                a function of the value, or of key and value.
            joiner: The joiner by name instead of by position.
            within: For streams: how far apart. A pair `(before, after)`: the other record may be so much earlier, and
                so much later, than the one of this stream.
            grace: For streams: how much later than that records are still accepted. For tables: how long records wait.
            on: For tables: the key to look up, where it is not the record's own. A record that names no key meets no
                row.
            key: The type of the key that `on` gives, if it cannot be found by tracing.
            value: The type of the results, if it cannot be found by tracing and they should be typed.
            wait_for_table: Read nothing of this stream before the table's topics have been read as far as they
                reached when the query was started.
            name: Names the step and its state.
        """
        options = _Options(joiner, within, grace, on, key, value, wait_for_table, name, calling_location())
        return self._joined(other, functions, JoinKind.INNER, options)

    def left_join(
        self,
        other: Stream | Table,
        *functions: Both,
        joiner: Joiner | None = None,
        within: Within | None = None,
        grace: Duration | None = None,
        on: Selector | None = None,
        key: object = None,
        value: object = None,
        wait_for_table: bool = False,
        name: str = "",
    ) -> Stream:
        """Like `join`, and the records of this stream that meet nothing, with None on the right.

        With a stream, those come out once, when no record that they could meet can come any more.
        """
        options = _Options(joiner, within, grace, on, key, value, wait_for_table, name, calling_location())
        return self._joined(other, functions, JoinKind.LEFT, options)

    def outer_join(
        self,
        other: Stream,
        *functions: Both,
        joiner: Joiner | None = None,
        within: Within | None = None,
        grace: Duration | None = None,
        value: object = None,
        name: str = "",
    ) -> Stream:
        """Like `left_join`, and the records of the other stream that meet nothing, with None on the left."""
        at = calling_location()
        if isinstance(other, Table):
            hint = "use left_join, or make a table of this stream: stream.to_table().outer_join(table)"
            raise TopologyError("a stream has no outer join with a table", hint=hint, at=at)
        options = _Options(joiner, within, grace, None, None, value, False, name, at)
        return self._joined(other, functions, JoinKind.OUTER, options)

    def _joined(self, other: Stream | Table, functions: tuple[Both, ...], how: JoinKind, options: _Options) -> Stream:
        if not isinstance(other, Joining | Table):
            hint = "pass a stream or a table of the same builder"
            raise TopologyError(f"cannot join a stream to {other!r}", hint=hint, at=options.at)
        if other._graph is not self._graph:
            raise TopologyError("cannot join what two builders made", hint="use one StreamsBuilder", at=options.at)
        verb = "join" if how is JoinKind.INNER else f"{how}_join"
        name = self._join_name(other, options.name, verb)
        schema = schema_of(options.value, options.at)
        if isinstance(other, Table):
            return self._with_table(other, functions, how, name, schema, options)
        return self._with_stream(other, functions, how, name, schema, options)

    def _join_name(self, other: Handle, given: str, verb: str) -> str:
        derived = f"{verb}.{other.node.name}"
        if not given and self._graph.is_counted(other.node.name):
            raise UnnamedState(f"{self._node.name}.{derived}", calling_location())
        return self._state_name(given, derived)

    def _with_stream(
        self,
        other: Joining,
        functions: tuple[Both, ...],
        how: JoinKind,
        name: str,
        schema: Schema | None,
        options: _Options,
    ) -> Stream:
        if options.within is None:
            raise JoinWithoutWindow(self._node.name, other.node.name, options.at)
        if options.on is not None or options.wait_for_table:
            hint = "give the streams the same key first: stream.select_key(...)"
            raise TopologyError("on= and wait_for_table= are for joins with a table", hint=hint, at=options.at)
        joiner = _joiner(functions, options)
        window = _window(options)
        return self._add(StreamJoin(name, options.at, self._node, other.node, how, window, joiner, schema))

    def _with_table(
        self,
        other: Table,
        functions: tuple[Both, ...],
        how: JoinKind,
        name: str,
        schema: Schema | None,
        options: _Options,
    ) -> Stream:
        if options.within is not None:
            hint = "leave within= out, or pass grace= to meet the row as of the record's time"
            raise TopologyError("a join with a table has no window", hint=hint, at=options.at)
        on = options.on
        if isinstance(other, GlobalTable) and on is None:
            on, functions = _first(functions, other.node.name, options.at)
        joiner = _joiner(functions, options)
        stream = self._node
        if on is not None:
            stream = LookupKey(f"{name}.on", options.at, stream, selector(on), schema_of(options.key, options.at))
            self._graph.add(stream)
        gate = options.wait_for_table
        history_ms = kept_history_ms(other.node)
        if options.grace is None and history_ms is None:
            return self._add(TableLookup(name, options.at, stream, other.node, how, joiner, schema, gate))
        grace_ms = None if options.grace is None else _not_negative(to_ms(options.grace), "grace", options.at)
        table = history_of(self._graph, other.node, name, options.at)
        times = grace_ms, history_ms
        return self._add(HistoryLookup(name, options.at, stream, table, how, *times, joiner, schema, gate))


def _first(functions: tuple[Both, ...], table: str, at: Location | None) -> tuple[Selector, tuple[Both, ...]]:
    if not functions:
        hint = 'say by which key: stream.join(products, "product_id", lambda order, product: ...)'
        raise TopologyError(f'a join with the global table "{table}" needs the key to look up', hint=hint, at=at)
    return functions[0], functions[1:]


def _joiner(functions: tuple[Both, ...], options: _Options) -> Function | None:
    given = functions if options.joiner is None else (*functions, options.joiner)
    if not given:
        return None
    if len(given) > 1 or isinstance(given[0], str):
        hint = "pass lambda left, right: ...; the key to look up in a table is on="
        raise TopologyError("a join takes one joiner, a function of both values", hint=hint, at=options.at)
    return Function.of(given[0], (2, 3), JOINER)


def _window(options: _Options) -> JoinWindow:
    within = options.within
    assert within is not None
    before, after = within if isinstance(within, tuple) else (within, within)
    return JoinWindow(
        _not_negative(to_ms(before), "within", options.at),
        _not_negative(to_ms(after), "within", options.at),
        _not_negative(to_ms(options.grace or 0), "grace", options.at),
    )


def _not_negative(time_ms: int, what: str, at: Location | None) -> int:
    if time_ms < 0:
        raise TopologyError(f"{what}= cannot be negative", hint=f"write {what}=minutes(5)", at=at)
    return time_ms
