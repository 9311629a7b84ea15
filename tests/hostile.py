"""Values and bytes that nobody should send, for tests of what comes of them.

`POTOK_EXAMPLES=2000 POTOK_SEED=7` tries more, and others, than the default, which is the same on every run.
"""

from __future__ import annotations

import dataclasses
import datetime as dt
import enum
import os
from collections.abc import Callable, Iterator, Mapping
from decimal import Decimal
from typing import Any, TypeVar

import numpy as np
import pyarrow as pa
from hypothesis import HealthCheck, Phase, seed, settings
from hypothesis import strategies as st

_SEED = os.environ.get("POTOK_SEED")
_Test = TypeVar("_Test", bound=Callable[..., None])


def explored(usual: int) -> Callable[[_Test], _Test]:
    """How many examples a test tries, and which."""

    def wrap(test: _Test) -> _Test:
        chosen = settings(
            max_examples=int(os.environ.get("POTOK_EXAMPLES", str(usual))),
            derandomize=_SEED is None,
            database=None,
            deadline=None,
            phases=[Phase.explicit, Phase.generate],
            suppress_health_check=list(HealthCheck),
            # An example may hold an object that cannot be printed.
            print_blob=False,
        )(test)
        return chosen if _SEED is None else seed(int(_SEED))(chosen)

    return wrap


class NoText:
    """An object that cannot be shown."""

    def __repr__(self) -> str:
        raise RuntimeError("there is no text of this")


class OddText(str):
    """Text that does not let itself be encoded."""

    def encode(self, *_: Any) -> bytes:
        raise RuntimeError("this text stays as it is")


class OddMapping(Mapping[str, Any]):
    """A mapping that has nothing where it says that it has something."""

    def __getitem__(self, name: str) -> Any:
        raise OSError(f"nobody knows {name}")

    def __iter__(self) -> Iterator[str]:
        return iter("ab")

    def __len__(self) -> int:
        return 2


class LostZone(dt.tzinfo):
    """A zone that cannot be found: orjson crashes the process at it."""

    def utcoffset(self, _: dt.datetime | None) -> dt.timedelta:
        raise ValueError("no such zone")


class Color(enum.Enum):
    RED = 1


@dataclasses.dataclass
class Holder:
    a: Any = 1


def _loops() -> tuple[list[Any], dict[str, Any]]:
    loop: list[Any] = []
    loop.append(loop)
    circle: dict[str, Any] = {}
    circle["a"] = circle
    return loop, circle


def _deep(depth: int) -> tuple[Any, Any]:
    items: Any = []
    members: Any = {}
    for _ in range(depth):
        items, members = [items], {"a": members}
    return items, members


EAST, WEST = dt.timezone(dt.timedelta(hours=5)), dt.timezone(dt.timedelta(hours=-5))
NUMBERS: list[Any] = [
    *(0, 1, True, -1, 2**31, 2**63, 2**64, -(10**400), 10**5000, -0.0, 1e308, float("nan"), float("inf")),
    *(
        Decimal("NaN"),
        Decimal("sNaN"),
        Decimal("Infinity"),
        Decimal("1E+999999"),
        Decimal("1E-999999"),
        Decimal(10) ** 60,
    ),
    *(np.int64(5), np.uint64(2**64 - 1), np.float32(1.5), np.float64("nan"), np.longdouble(1), np.complex64(1), 1 + 2j),
]
TEXTS: list[Any] = ["", "a", "\0", "\ud800", "a\udc80", "é" * 5, "a" * 70_000, OddText("z"), b"\xff", bytearray(b"x")]
INSTANTS: list[Any] = [
    *(dt.datetime.min, dt.datetime.max, dt.datetime.min.replace(tzinfo=EAST), dt.datetime.max.replace(tzinfo=WEST)),
    *(dt.datetime(2020, 1, 1, tzinfo=LostZone()), dt.time(1, tzinfo=LostZone()), dt.time(1, 2, 3, 4)),
    *(dt.date.min, dt.date.max, dt.timedelta(1), np.datetime64("NaT"), np.datetime64("2020")),
]
OTHERS: list[Any] = [
    *(None, [], {}, (), (1, 2), {1, "a"}, frozenset([b"x"]), range(3), memoryview(b"xy"), memoryview(np.arange(4))),
    *(NoText(), OddMapping(), LostZone(), Color.RED, Color, Holder(), Holder(NoText()), object(), Ellipsis, len),
    *(np.bool_(True), np.array([1, 2]), np.array([None]), pa.scalar(1), (number for number in range(3))),
    *({1: 2}, {None: 1}, {"\ud800": 1}, {(1,): 2}, {1.5: 1, "a": 2}, {b"x": 1}, {"a": {1: NoText()}}, [None], [[]]),
    *_loops(),
    *_deep(3_000),
    *({"key": "a", "start": start, "end": end} for start, end in [(1, 2), (2**70, 2), ("x", None), (None, 1.5)]),
]
ANY = [*NUMBERS, *TEXTS, *INSTANTS, *OTHERS]
NAMES = ["a", "b", "k", "t", "d", "p", "x", "m", 'b "c']


def drawn(items: list[Any]) -> st.SearchStrategy[Any]:
    """One of these. Hypothesis would print what it samples from, and some of it cannot be printed."""
    return st.integers(0, len(items) - 1).map(lambda index: items[index])


class Rows(list[Any]):
    """Objects that are not printed when a test fails: `POTOK_SEED` and the number of examples find them again."""

    def __repr__(self) -> str:
        return f"{len(self)} objects"


def rows(least: int, most: int) -> st.SearchStrategy[Rows]:
    return st.lists(objects(), min_size=least, max_size=most).map(Rows)


def objects() -> st.SearchStrategy[Any]:
    """Python objects of all kinds, in lists and dicts now and then."""
    return st.recursive(
        drawn(ANY),
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(NAMES), inner, max_size=3),
        max_leaves=4,
    )


BYTES = [
    *(b"", b"\0", b"\xff" * 9, b"\x80" * 20, b"\xff" * 10 + b"\x01", b"\0" * 6, b"\0\0\0\0\1\2", b"\xfe" + b"\xff" * 8),
    *(b"[" * 100_000, b'{"a":' * 100_000, b'"\\ud800"', b'"\\udc00"', b"\xc3\x28", b"\xed\xa0\x80", b"NaN", b"null"),
    *(b"1" * 5_000, b"-" + b"9" * 5_000, b"1e5000", b"1e-5000", b"1e999999999999", b'{"a":' + b"1" * 5_000 + b"}"),
    *(b'{"p":1e1000000}', b'{"p":"1e9999"}', b'{"p":1E-999999999999999999}', b'{"a":1.' + b"1" * 5_000 + b"}"),
    b'{"k":1e99999999999999999999,"t":1e400,"p":1e400,"d":1e400}',
    *(b",,,", b'"a","b', b'"' * 7, b"1e400,1e400,1e400,1e400", b"9" * 5_000 + b",1,1,1", b"1,1,1e999999999,1"),
    *(b"1,99999999999999999999,1,9999999999999999", b"\0" * 8, b"\xff" * 16, b"a\x7f" + b"\xff" * 7),
    *(b"\x0a\xff\xff\xff\xff\x0f", b"\x0b" * 200, b"\x0a\x02\x0a\x00" * 50),
]


@st.composite
def damaged(draw: st.DrawFn, whole: bytes) -> bytes:
    """These bytes, changed, cut or longer in a few places."""
    data = bytearray(whole)
    for _ in range(draw(st.integers(1, 3))):
        place = draw(st.integers(0, len(data)))
        change = draw(st.sampled_from(["put", "insert", "remove", "cut"]))
        byte = draw(st.integers(0, 255))
        if change == "insert" or not data:
            data.insert(place, byte)
        elif change == "cut":
            del data[place:]
        elif change == "put":
            data[place % len(data)] = byte
        else:
            del data[place % len(data)]
    return bytes(data)
