"""Random values that are rich in the cases where Arrow and Python could part."""

from __future__ import annotations

import math
import random
import struct
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from typing import Any

from expressions.grammar import BASE, DAY, NOON

INTS = [0, 1, -1, 2, 3, 7, 2**53, 2**53 + 1, -(2**53) - 1, 2**62, 2**63 - 1, -(2**63), -(2**63) + 1, 3_037_000_500]
FLOATS = [0.0, -0.0, 1.0, 1.5, -2.0, 0.1, math.nan, math.inf, -math.inf, 1e308, 2.0**53, 2.0**63, 5e-324, 0.3, -7.5]
TEXTS = [
    "",
    "a",
    "ab",
    "aa,b",
    " a\x1cb\u3000",
    "Ab 1",
    "é",
    "ß",
    "ΑΣ",
    "ǆ",
    "a\u0301",
    "12",
    "١",
    "\u1680a\n",
    "ba a",
    ",",
]


class Rows:
    """Draws values; `missing` is how often something is None."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)
        self._missing = self._random.choice([0.0, 0.0, 0.1, 0.5])
        # Batches of tame numbers take the paths that are ruled in by the columns' bounds.
        self._tame = self._random.random() < 0.5

    def keys(self, count: int) -> list[str | None]:
        return [self._maybe(self.text()) for _ in range(count)]

    def values(self, count: int) -> list[dict[str, Any] | None]:
        return [self._maybe(self._value()) for _ in range(count)]

    def _maybe(self, value: Any) -> Any:
        return None if self._random.random() < self._missing else value

    def integer(self) -> int:
        pick = self._random.random()
        if self._tame or pick < 0.5:
            return self._random.randint(-12, 12)
        return self._random.choice(INTS) if pick < 0.8 else self._random.randint(-(2**63), 2**63 - 1)

    def number(self) -> float:
        pick = self._random.random()
        if self._tame or pick < 0.4:
            return self._random.choice([self._random.randint(-20, 20) / 4, self._random.uniform(-9, 9)])
        if pick < 0.8:
            return self._random.choice(FLOATS)
        return float(struct.unpack("d", self._random.randbytes(8))[0])

    def text(self) -> str:
        if self._random.random() < 0.5:
            return self._random.choice(TEXTS[:4] if self._tame else TEXTS)
        return "".join(
            self._random.choices("aAbB1 ,\t'" + ("" if self._tame else "ßé\x1c"), k=self._random.randint(0, 6))
        )

    def _list(self, part: Any) -> list[Any]:
        return [self._maybe(part()) for _ in range(self._random.randint(0, 3))]

    def _person(self) -> dict[str, Any]:
        return {"name": self._maybe(self.text()), "age": self._maybe(self.integer())}

    def _map(self, part: Any) -> dict[str, Any]:
        return {
            key: self._maybe(part()) for key in self._random.choice([["a"], ["a", "b"], ["b", "a"], [], ["a", "b"]])
        }

    def _instant(self) -> datetime:
        far = self._random.choice([datetime.min, datetime.max]).replace(tzinfo=UTC)
        near = BASE + timedelta(microseconds=self._random.randint(-(10**12), 10**12))
        return self._random.choice([BASE, near, near, near if self._tame else far])

    def _value(self) -> dict[str, Any]:
        small = struct.unpack("f", struct.pack("f", self._random.uniform(-9, 9)))[0]
        value = {
            "i": self.integer(),
            "j": self._random.choice([self._random.randint(-9, 9), 2**31 - 1, -(2**31)]),
            "f": self.number(),
            "g": self._random.choice([small, math.nan, math.inf, 0.0]),
            "s": self.text(),
            "t": self.text(),
            "b": self._random.random() < 0.5,
            "c": self._random.random() < 0.5,
            "raw": self._random.choice([b"", b"a", b"\xff"]),
            "d": Decimal(self._random.randint(-300, 300)) / 100,
            "at": self._instant(),
            "day": self._random.choice([DAY, DAY + timedelta(days=self._random.randint(-900, 900)), date.min]),
            "hour": self._random.choice([NOON, time.min, time(self._random.randint(0, 23), 59, 59, 999_000)]),
            "ints": self._list(self.integer),
            "words": self._list(self.text),
            "address": {"city": self._maybe(self.text()), "zip": self._maybe(self.integer())},
            "people": self._list(self._person),
            "m": self._map(self.integer),
            "w": self._map(self.number),
        }
        return {name: self._maybe(part) for name, part in value.items()}
