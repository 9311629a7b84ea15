"""Random programs, as the text that a user would write."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import TypeVar

from hypothesis import strategies as st

T = TypeVar("T")

HEADER = """\
from dataclasses import dataclass
import polars as pl
import pyarrow.compute as pc
from potok import (
    Processor, StreamsBuilder, hopping, list_store, milliseconds, seconds, session, sliding, tumbling, value_store
)

@dataclass
class Row:
    s: str
    a: int
    b: float | None = None
    n: int = 7
    tags: list[str] | None = None
    t: int | None = None


class Counting(Processor):
    seen = value_store(default=0)

    def process(self, key, value, ctx):
        self.seen.set(self.seen.get() + 1)
        ctx.forward([self.seen.get(), value])


class Alarming(Processor):
    times = list_store()

    def process(self, key, value, ctx):
        self.times.append(ctx.timestamp)
        ctx.schedule(at=ctx.timestamp + 4_000)

    def on_timer(self, key, at, ctx):
        ctx.forward(["alarm", at, len(self.times)])


ROW = "s string, a bigint, b double, n bigint, tags array<string>, t bigint"
builder = StreamsBuilder("program")
"""

DDL = "s string, a bigint, b double, n bigint, tags array<string>, t bigint"
VALUES = {
    "dynamic": "",
    "dataclass": ", value=Row",
    "ddl": f', value="{DDL}"',
    "strict ddl": f', value="{DDL.replace("bigint, b", "bigint not null, b")}"',
}
WINDOWS = [
    "tumbling(seconds(10))",
    "tumbling(seconds(10), grace=seconds(5))",
    "tumbling(seconds(10), grace=seconds(5), retention=seconds(20))",
    "tumbling(seconds(7), retention=0)",
    "tumbling(milliseconds(2500), grace=seconds(30), retention=seconds(30))",
    "hopping(seconds(10), seconds(5))",
    "hopping(seconds(10), seconds(4), grace=seconds(5), retention=seconds(20))",
    "hopping(milliseconds(2500), seconds(1), grace=seconds(30), retention=seconds(30))",
]
SESSIONS = [
    "session(seconds(5))",
    "session(milliseconds(2501), grace=seconds(5), retention=0)",
    "session(seconds(3), grace=seconds(30), retention=seconds(30))",
    "session(timeout=seconds(8), from_first=True, grace=seconds(5), retention=seconds(20))",
]
SLIDING_WINDOWS = [
    "sliding(seconds(5))",
    "sliding(milliseconds(2500), grace=seconds(5), retention=seconds(20))",
]
OPENED_WINDOWS = [
    'session(seconds(5), opens=lambda v: v["a"] > 3)',
    'session(seconds(5), opens=lambda k, v: v["a"] > 3, closes=lambda v: v["s"] == "x", grace=seconds(10))',
    'session(timeout=seconds(8), from_first=True, opens=lambda v: v["a"] % 2, grace=seconds(30))',
]


@dataclass(frozen=True)
class Topic:
    """A source topic of a program. `by_key` puts all records of a key into one partition."""

    name: str
    typed: bool
    key_type: str = "str"
    time_field: bool = False
    partitions: int = 1
    by_key: bool = False


@dataclass(frozen=True)
class Var:
    """A stream in the program: what its values look like and where they come from.

    `rekeyed` says that a step changed the key, `ties` that two records may have been made of one at the same place,
    `waited` that records may have been held back by a step.
    """

    name: str
    shape: str
    typed: bool
    topics: frozenset[str]
    rekeyed: bool = False
    ties: bool = False
    waited: bool = False


@dataclass
class Program:
    lines: list[str] = field(default_factory=list)
    topics: dict[str, Topic] = field(default_factory=dict)
    windowed: bool = False
    all_at_once: bool = False
    """Whether what it makes is promised only if all input is there from the beginning."""

    @property
    def text(self) -> str:
        return HEADER + "\n".join(self.lines) + "\n"

    def one_partition(self, topics: frozenset[str]) -> None:
        for name in topics:
            self.topics[name] = replace(self.topics[name], partitions=1)

    def by_key(self, topics: frozenset[str]) -> None:
        for name in topics:
            self.topics[name] = replace(self.topics[name], by_key=True)


class Writer:
    """Writes one program, line by line, with choices drawn by Hypothesis."""

    def __init__(self, draw: Callable[[st.SearchStrategy[object]], object]) -> None:
        self._draw = draw
        self.program = Program()
        self.count = 0
        self.streams: list[Var] = []
        self.used: set[str] = set()

    def pick(self, choices: Sequence[T]) -> T:
        return self._draw(st.sampled_from(choices))  # type: ignore[return-value]

    def chance(self, percent: int) -> bool:
        """Shrinks towards False."""
        return self._draw(st.integers(0, 99)) >= 100 - percent  # type: ignore[operator]

    def new(self, prefix: str) -> str:
        self.count += 1
        return f"{prefix}{self.count}"

    def line(self, text: str) -> None:
        self.program.lines.append(text)

    def add(self, verb: str, upstream: Var, **changes: object) -> Var:
        made = replace(upstream, name=self.new("s"), **changes)  # type: ignore[arg-type]
        self.line(f"{made.name} = {upstream.name}.{verb}")
        self.used.add(upstream.name)
        self.streams.append(made)
        return made

    def source(self, verb: str = "stream") -> str:
        kind = self.pick(list(VALUES))
        name = f"t{len(self.program.topics) + 1}"
        key_type = "int" if self.chance(15) else "str"
        timed = self.chance(25)
        partitions = self.pick([1, 2, 3])
        options = VALUES[kind] + (", key=int" if key_type == "int" else "") + (', timestamp="t"' if timed else "")
        self.program.topics[name] = Topic(name, kind != "dynamic", key_type, timed, partitions)
        variable = self.new("s" if verb == "stream" else "table")
        self.line(f'{variable} = builder.{verb}("{name}"{options})')
        if verb == "stream":
            self.streams.append(Var(variable, "row", kind != "dynamic", frozenset({name})))
        else:
            self.program.by_key(frozenset({name}))
        return variable
