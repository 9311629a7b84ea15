"""The windows of one key inside agents: they act as the value of the latest of them."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

from potok.duration import to_ms
from potok.faust.records.record import Record
from potok.faust.tables.errors import NOT_GIVEN
from potok.operators.agents.values import ABSENT, keep
from potok.operators.agents.windows import OneOfSeveralWindows

if TYPE_CHECKING:
    from potok.faust.tables.windowed import WindowedTable
    from potok.operators.agents.windows import WindowEntry

SECOND_MS = 1000

_put = object.__setattr__
"""Sets an attribute of the set itself: `__setattr__` sets that of the value."""


def _read(function: Callable[..., Any]) -> Any:
    """Return a method that calls that of the value."""
    return lambda self, *others: function(self._whole(), *map(_plain, others))


def _reflected(function: Callable[[Any, Any], Any]) -> Any:
    return lambda self, other: function(other, self._whole())


def _change(function: Callable[[Any, Any], Any]) -> Any:
    """Return a method that changes the value of each window."""
    return lambda self, other: self._apply(function, other)


def _plain(other: Any) -> Any:
    return other._whole() if isinstance(other, WindowSet) else other


class WindowSet:
    """The windows of one key, as of the current record. It acts as the value of the latest of them: attributes,
    items and arithmetic are those of that value. If windows overlap, methods are called on the value of each,
    and only methods change a value in place.
    """

    __slots__ = ("__dict__", "_entry", "_key", "_table")
    _table: WindowedTable
    _key: Any
    _entry: WindowEntry
    applied = False

    def __init__(self, table: WindowedTable, key: Any) -> None:
        _put(self, "_table", table)
        _put(self, "_key", key)

    @property
    def table(self) -> WindowedTable:
        return self._table

    @property
    def key(self) -> Any:
        return self._key

    def value(self, event: Any = None, *, default: Any = NOT_GIVEN) -> Any:
        """Return the value of the window that the table is relative to."""
        if event is not None:
            return self._at(round(event.message.timestamp * SECOND_MS), default)
        return self._at(self.table.open().instant_ms(), default)

    def _whole(self) -> Any:
        """Like `value`, for in-place changes."""
        return self._at(self.table.open().instant_ms())

    def current(self, event: Any = None) -> Any:
        """Return the value of the window of the current record."""
        at = self.table.open().timestamp_ms if event is None else round(event.message.timestamp * SECOND_MS)
        return self._at(at)

    def now(self) -> Any:
        """Return the value of the window of the current time."""
        return self._at(self.table.open().processing_time_ms)

    def delta(self, d: Any, event: Any = None) -> Any:
        """Return the value of the window that long before the one that the table is relative to."""
        at = self.table.open().instant_ms() if event is None else round(event.message.timestamp * SECOND_MS)
        return self._at(at - to_ms(d))

    def _at(self, at_ms: int, default: Any = NOT_GIVEN) -> Any:
        found = self.table.open()
        if default is NOT_GIVEN:
            return found.look_or_default(self.key, at_ms)
        value = found.look(self.key, at_ms)
        return default if value is ABSENT else value

    def each_window(self, change: Callable[[Any], Any]) -> None:
        """Change the values of all windows of the current record in place, one by one.

        >>> def add(stats):
        ...     stats.total += 1
        >>> hourly["user_001"].each_window(add)
        """
        self.table.open().each(self.key, change)

    def _apply(self, change: Callable[[Any, Any], Any], other: Any) -> WindowSet:
        found = self.table.open()
        given = other._whole() if isinstance(other, WindowSet) else other
        handed_out = found.handed_out(self.key)
        for start in found.starts(found.instant_ms()):
            entry = found.window(self.key, start, change=True)
            found.put(entry, change(found.default_of(entry, self.key), given))
        keep(handed_out)
        return Applied(self.table, self.key)

    __iadd__, __isub__, __imul__ = _change(operator.iadd), _change(operator.isub), _change(operator.imul)
    __itruediv__, __ifloordiv__ = _change(operator.itruediv), _change(operator.ifloordiv)
    __imod__, __ipow__ = _change(operator.imod), _change(operator.ipow)
    __ior__, __iand__, __ixor__ = _change(operator.ior), _change(operator.iand), _change(operator.ixor)

    __add__, __sub__, __mul__ = _read(operator.add), _read(operator.sub), _read(operator.mul)
    __truediv__, __floordiv__ = _read(operator.truediv), _read(operator.floordiv)
    __mod__, __pow__ = _read(operator.mod), _read(operator.pow)
    __or__, __and__, __xor__ = _read(operator.or_), _read(operator.and_), _read(operator.xor)
    __radd__, __rsub__, __rmul__ = _reflected(operator.add), _reflected(operator.sub), _reflected(operator.mul)
    __rtruediv__, __rfloordiv__ = _reflected(operator.truediv), _reflected(operator.floordiv)
    __rmod__, __rpow__ = _reflected(operator.mod), _reflected(operator.pow)
    __ror__, __rand__, __rxor__ = _reflected(operator.or_), _reflected(operator.and_), _reflected(operator.xor)
    __lt__, __le__, __gt__, __ge__ = _read(operator.lt), _read(operator.le), _read(operator.gt), _read(operator.ge)
    __neg__, __abs__, __round__ = _read(operator.neg), _read(abs), _read(round)
    __bool__, __int__, __float__, __str__ = _read(bool), _read(int), _read(float), _read(str)
    __len__, __contains__, __format__ = _read(len), _read(operator.contains), _read(format)

    def __iter__(self) -> Iterator[Any]:
        return iter(self._whole())

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any:
            if name in _OWN:
                raise AttributeError(name)
            value = self._whole()
            found = getattr(value, name)
            table = self.table.open()
            if table.tumbling or getattr(found, "__self__", None) is not value:
                return found
            return lambda *given, **named: table.each(self.key, lambda each: getattr(each, name)(*given, **named))

    if not TYPE_CHECKING:

        def __setattr__(self, name: str, value: Any) -> None:
            setattr(self._alone(), name, value)

    def __getitem__(self, item: Any) -> Any:
        return self._whole()[item]

    def __setitem__(self, item: Any, value: Any) -> None:
        self._alone()[item] = value

    def __delitem__(self, item: Any) -> None:
        del self._alone()[item]

    def _alone(self) -> Any:
        """Return the value, if its window is the only one selected: `a.b += 1` then sets b in that one."""
        if not self.table.open().tumbling:
            raise OneOfSeveralWindows(self.table.name)
        return self._whole()

    def __eq__(self, other: object) -> bool:
        return bool(self.value() == (other.value() if isinstance(other, WindowSet) else other))

    def __hash__(self) -> int:
        return hash(self.key)

    def __repr__(self) -> str:
        return f"<WindowSet {self.key!r}: {self.value()!r}>"


class HeldSet(WindowSet):
    """A window set that shares the `__dict__` of a record while it is processed, so that changes of its fields need no
    indirection.
    """

    __slots__ = ()
    __setattr__ = object.__setattr__

    def value(self, event: Any = None, *, default: Any = NOT_GIVEN) -> Any:
        return self._entry.value if event is None else super().value(event, default=default)

    def _let_go(self) -> None:
        self.__dict__ = {}
        self.__class__ = WindowSet  # type: ignore[assignment]


class Applied(WindowSet):
    """The right side of `table[key] += 1`: the change has already been applied to each window."""

    __slots__ = ()
    applied = True


_OWN = frozenset(dir(WindowSet))

holdable: dict[type, bool] = {}


def can_be_held(value: Any) -> bool:
    """Whether a value is a record with only fields, none of which has the name of a window method."""
    kind = type(value)
    known = holdable.get(kind)
    if known is None:
        known = isinstance(value, Record) and _OWN.isdisjoint(value.__dict__) and _is_plain(kind)
        holdable[kind] = known
    return known


def _is_plain(kind: type) -> bool:
    """Whether setting an attribute of an object only changes its `__dict__`."""
    names = {name for each in kind.__mro__[:-1] for name in vars(each)} - {"__dict__", "__weakref__"}
    return getattr(kind, "__setattr__", None) is _put and not any(_takes(getattr(kind, name)) for name in names)


def _takes(attribute: Any) -> bool:
    """Whether an attribute of a class intercepts assignments."""
    return attribute.fset is not None if isinstance(attribute, property) else hasattr(attribute, "__set__")
