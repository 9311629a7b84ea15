"""State as bytes: Python data, exactly as it was, and nothing that runs code when it is read."""

from __future__ import annotations

import io
import pickle
from typing import Any

from potok.errors import StateError

_DATA_CLASSES = {
    ("builtins", name) for name in ("set", "frozenset", "bytearray", "complex", "range", "slice")
} | {
    ("datetime", name) for name in ("date", "datetime", "time", "timedelta", "timezone")
} | {
    ("decimal", "Decimal"),
    ("fractions", "Fraction"),
    ("uuid", "UUID"),
    ("collections", "Counter"),
    ("collections", "OrderedDict"),
    ("collections", "deque"),
    ("potok.records.value", "Value"),
}  # fmt: skip


# The instruction that finds a class. Pickles of builtin data do without it, and skip the slower check.
_STACK_GLOBAL = pickle.STACK_GLOBAL


class StateNotData(StateError):
    """A value that is an object of the user's own class, a function, an open file."""

    def __init__(self, kind: type) -> None:
        super().__init__(
            f"a {kind.__module__}.{kind.__qualname__} is no data and cannot be kept",
            hint="keep dicts, lists, numbers, text or dates: return {**vars(x)} instead of x",
        )


class _DataPickler(pickle.Pickler):
    def reducer_override(self, obj: Any) -> Any:
        # Called only for what pickle does not know by itself, so plain data costs nothing.
        kind = obj if isinstance(obj, type) else type(obj)
        if (kind.__module__, kind.__qualname__) not in _DATA_CLASSES:
            raise StateNotData(kind)
        return NotImplemented


class _DataUnpickler(pickle.Unpickler):
    def find_class(self, module: str, name: str) -> Any:
        if (module, name) in _DATA_CLASSES:
            return super().find_class(module, name)
        raise StateError(f"state holds a {module}.{name}, which is not data", hint="the state was not written by Potok")


def dump_state(value: Any) -> bytes:
    try:
        data = pickle.dumps(value, 5)
    except Exception:  # noqa: BLE001 - to pickle an object may run code of the user's, and the check tells which it is
        return _dump_checked(value)
    return data if _STACK_GLOBAL not in data else _dump_checked(value)


def _dump_checked(value: Any) -> bytes:
    buffer = io.BytesIO()
    _DataPickler(buffer, protocol=5).dump(value)
    return buffer.getvalue()


class _Nowhere:
    """A file that forgets."""

    def write(self, data: bytes) -> int:
        return len(data)


def check_data(value: Any) -> None:
    """Raise if something in a value is no data, a third of the price of its bytes. Without a memo a value that holds
    itself is refused too, though it can be kept: who is refused asks `dump_state`."""
    pickler = _DataPickler(_Nowhere(), protocol=5)
    pickler.fast = True
    pickler.dump(value)


load_own_state = pickle.loads
"""For the kernels of a query that reads what it wrote itself, under a plan that is a pickle too: five times as fast."""


def load_state(data: bytes) -> Any:
    return _DataUnpickler(io.BytesIO(data)).load()
