"""Encode state as MessagePack without loss. Decoding produces plain data only and runs no code.

A cell starts with a letter for its outer tuple or list, because MessagePack has only one kind of array. Other tuples,
and types that MessagePack lacks, are extensions (`state/cell_types.py`); a cell with a composite extension starts
with a capital letter, and is decoded more slowly.
"""

from __future__ import annotations

import pickle
import struct
import threading
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import is_dataclass
from datetime import tzinfo
from enum import Enum
from functools import partial
from itertools import chain
from typing import Any

from msgpack import ExtType, Packer, UnpackException, unpackb
from msgspec.msgpack import Decoder, Encoder

from potok.errors import StateError
from potok.records.value import Value
from potok.state.cell_types import SPELL, TAG, in_order, read_array, read_extension, read_leaf

_VALUE, _TUPLE, _WITH_TUPLE, _WITH_TUPLES, _WITH_SET = b"v", b"t", b"p", b"l", b"s"
"""Any value; a tuple; pairs whose second is a tuple, a list of tuples or a set. Most cells are a time and a value."""

_SCALARS = frozenset((str, int, float, bool, bytes, type(None)))

_EXTENSION = 0xD4
_TAG = bytes((_EXTENSION, TAG))
"""The first bytes of a type tag. Other data may contain them; the cell is then only decoded more slowly."""

_ONLY_TUPLES = frozenset((tuple,))

_ARRAY = struct.Struct(">BI")
"""The header of an array: its type and its length."""

_encode = Encoder().encode


class StateNotData(StateError):
    """A value that is an object of the user's own class, a function, an open file."""

    def __init__(self, kind: type) -> None:
        super().__init__(
            f"a {kind.__module__}.{kind.__qualname__} is not data, and cannot be stored in state",
            hint=f"store dicts, lists, numbers, strings or dates: {_instead(kind)}",
        )


def _instead(kind: type) -> str:
    """Suggest what to return instead of an object of a class."""
    if issubclass(kind, Enum):
        return f"return x.value instead of x, and read it as {kind.__name__}(value)"
    if is_dataclass(kind):
        return "return dataclasses.asdict(x) instead of x"
    if issubclass(kind, tzinfo):
        return "return x.astimezone(timezone.utc) instead of x"
    if kind.__module__ == "numpy":
        return "return x.tolist() instead of x"
    for plain in (dict, list, tuple, set, str, int, float):
        if issubclass(kind, plain):
            return f"return {plain.__name__}(x) instead of x"
    return "return {**vars(x)} instead of x"


class NestedTooDeeply(StateError):
    """A value that is nested too deeply, or contains itself."""

    def __init__(self) -> None:
        super().__init__(
            "a value that contains itself, or is nested more than 1,000 levels deep, cannot be stored in state",
            hint="store a flat list or dict, and refer to its parts by key",
        )


class UnreadableCell(StateError):
    """A cell that `dump_state` did not write."""

    def __init__(self, why: str) -> None:
        super().__init__(
            f"a cell of the state cannot be read: {why}",
            hint="rebuild state of version 0.1; otherwise check who else writes to the store, and restore a backup",
        )


def _spell(value: Any) -> Any:
    spell = SPELL.get(type(value))
    if spell is None and isinstance(value, Value):
        spell = SPELL[Value]
    if spell is None:
        raise StateNotData(value if isinstance(value, type) else type(value))
    return spell(value)


class _Packers(threading.local):
    """Packers are not thread-safe, so each thread has its own."""

    def __init__(self) -> None:
        self.pack: Callable[[Any], bytes] = Packer(strict_types=True, default=_spell).pack
        self.careful: Callable[[Any], bytes] = Packer(
            strict_types=True, default=_spell, unicode_errors="surrogatepass"
        ).pack


_packers = _Packers()


def dump_state(value: Any) -> bytes:
    if type(value) is not tuple:
        return _dump(_VALUE, value)
    if len(value) != 2:
        return _dump(_TUPLE, list(value))
    kept = value[1]
    kind = type(kept)
    if kind in _SCALARS:
        letter, flat = _TUPLE, True
    elif kind is dict:
        letter, flat = _TUPLE, _SCALARS.issuperset(map(type, kept.values())) and _SCALARS.issuperset(map(type, kept))
    elif kind is tuple:
        letter, flat = _WITH_TUPLE, _SCALARS.issuperset(map(type, kept))
        value = value if flat else (value[0], list(kept))
    elif kind is list and kept and type(kept[0]) is tuple and _ONLY_TUPLES.issuperset(map(type, kept)):
        letter, flat = _WITH_TUPLES, _SCALARS.issuperset(map(type, chain.from_iterable(kept)))
        value = value if flat else (value[0], [*map(list, kept)])
    elif kind is set:
        letter, flat = _WITH_SET, _SCALARS.issuperset(map(type, kept))
        value = value[0], in_order(kept)
    else:
        letter, flat = _TUPLE, False
    if flat and type(value[0]) in _SCALARS:
        # For scalars in one container this encoder is faster; it would be wrong for other types.
        try:
            return letter + _encode(value)
        except (OverflowError, UnicodeEncodeError):
            pass
    return _dump(letter, list(value))


def _dump(letter: bytes, value: Any) -> bytes:
    try:
        data = _packers.pack(value)
    except UnicodeEncodeError:
        return letter.upper() + _packers.careful(_without_buffers(value))
    except ValueError as error:
        raise NestedTooDeeply from error
    if (0xC4 in data or 0xC5 in data or 0xC6 in data) and _has_buffer(value):
        # A packer encodes a bytearray or a memoryview as bytes without calling `default`.
        data = _packers.pack(_without_buffers(value))
    return (letter.upper() if _EXTENSION in data and _TAG in data else letter) + data


def _has_buffer(value: Any) -> bool:
    """Return whether a value contains a bytearray or a memoryview; keys and elements of sets cannot be one."""
    if isinstance(value, dict):
        value = value.values()
    elif type(value) not in (list, tuple, deque):
        return type(value) in (bytearray, memoryview)
    return not _SCALARS.issuperset(map(type, value)) and any(map(_has_buffer, value))


def _without_buffers(value: Any) -> Any:
    """Encode each bytearray as an extension. A memoryview is rejected, because its contents may change."""
    kind = type(value)
    if kind is list:
        return [_without_buffers(item) for item in value]
    if kind is dict:
        return {key: _without_buffers(item) for key, item in value.items()}
    if kind in _SCALARS or kind is ExtType:
        return value
    spelt = _spell(value)
    return [_without_buffers(item) for item in spelt] if type(spelt) is list else spelt


_READ_FAST: dict[int, Callable[[bytes], Any]] = {
    letter[0]: Decoder(type_, ext_hook=read_leaf).decode
    for letter, type_ in (
        (_VALUE, Any),
        (_TUPLE, tuple),
        (_WITH_TUPLE, tuple[Any, tuple[Any, ...]]),
        (_WITH_TUPLES, tuple[Any, list[tuple[Any, ...]]]),
        (_WITH_SET, tuple[Any, set[Any]]),
    )
}

_AS_WRITTEN: dict[bytes, Callable[[Any], Any]] = {
    _VALUE: lambda found: found,
    _TUPLE: tuple,
    _WITH_TUPLE: lambda found: (found[0], tuple(found[1])),
    _WITH_TUPLES: lambda found: (found[0], list(map(tuple, found[1]))),
    _WITH_SET: lambda found: (found[0], set(found[1])),
}

_read = partial(
    unpackb,
    list_hook=read_array,
    ext_hook=read_extension,
    strict_map_key=False,
    unicode_errors="surrogatepass",
    # Nothing writes MessagePack's own timestamps; read from damaged bytes, they are data like everything else.
    timestamp=3,
)

_UNREADABLE = (ValueError, TypeError, LookupError, ArithmeticError, struct.error, UnpackException)


_READ_MANY = Decoder(list[tuple[Any, ...]], ext_hook=read_leaf).decode


def load_states(cells: Sequence[bytes]) -> list[Any]:
    """Decode many cells: those that hold plain tuples as one MessagePack array, in a third of the time."""
    if {data[:1] for data in cells} == {_TUPLE}:
        try:
            found = _READ_MANY(_ARRAY.pack(0xDD, len(cells)) + b"".join([data[1:] for data in cells]))
        except (*_UNREADABLE, RecursionError):
            pass  # found again cell by cell
        else:
            return found
    return list(map(load_state, cells))


def load_state(data: bytes) -> Any:
    read = _READ_FAST.get(data[0]) if data else None
    if read is not None:
        try:
            return read(data[1:])
        except (*_UNREADABLE, RecursionError):
            pass  # a lone surrogate, or deep nesting
    return _load_slowly(data)


def _load_slowly(data: bytes) -> Any:
    as_written = _AS_WRITTEN.get(data[:1].lower())
    if as_written is None:
        raise UnreadableCell(f"it begins with {data[:1]!r}")
    try:
        return as_written(_read(data[1:]))
    except _UNREADABLE as error:
        raise UnreadableCell(str(error) or type(error).__name__) from error


class _DiscardingFile:
    """A file that discards what is written."""

    def write(self, data: bytes) -> int:
        return len(data)


class _Checker(pickle.Pickler):
    def reducer_override(self, obj: Any) -> Any:
        # Called only for types that pickle does not handle itself, so plain data costs nothing.
        if obj is _DiscardingFile:
            return NotImplemented
        spelt = _spell(obj)
        return _DiscardingFile, tuple(spelt[1:]) if type(spelt) is list else ()


def check_data(value: Any) -> None:
    """Raise if a value contains something other than data, at a third of the cost of encoding it.

    The output of the pickler is never read. If the check fails, `dump_state` decides, which descends further into
    values.
    """
    checker = _Checker(_DiscardingFile(), protocol=5)
    checker.fast = True
    checker.dump(value)
