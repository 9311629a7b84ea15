"""Whatever the functions of a program return, a record is a result or a dead letter, and the batch goes on."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from tests import hostile

from operators.core.in_process import InProcess
from potok import Processor, StreamsBuilder, list_store, map_store, value_store
from potok.topology.nodes.windows import tumbling_ms

RETURNED: list[Any] = []
"""What the functions of the program at work return, by number: generators and loops cannot travel as records."""


def odd(value: Any) -> Any:
    return RETURNED[value]


class Keeps(Processor):
    one, many, by = value_store(), list_store(), map_store()

    def process(self, key: Any, value: Any, ctx: Any) -> Any:
        store = value % 3
        if store == 0:
            self.one.set(odd(value))
        elif store == 1:
            self.many.append(odd(value))
        else:
            self.by[odd(value)] = odd(value)
        ctx.forward(odd(value), key=odd(value))
        return odd(value)


def mapped(b: StreamsBuilder) -> None:
    stream = b.stream("in")
    stream.map_values(odd).to("out")
    stream.map_values(odd).to("texts", value_format="text")
    stream.map_values(odd).group_by_key().count(name="n")


def typed(b: StreamsBuilder) -> None:
    stream = b.stream("in", value="bigint")
    for number, type_ in enumerate(
        ["a bigint, b array<string>", "string", "map<string, double>", "timestamp", "binary"]
    ):
        stream.map_values(odd, value=type_).to(f"out{number}")


def in_formats(b: StreamsBuilder) -> None:
    stream = b.stream("in").map_values(odd, value="a bigint, d timestamp, t string")
    for name in ("avro", "protobuf", "delimited", "sql_json"):
        stream.to(name, value_format=name)


def rekeyed(b: StreamsBuilder) -> None:
    stream = b.stream("in")
    stream.select_key(lambda v: odd(v)).to("keys")
    stream.map(lambda k, v: (odd(v), odd(v))).to("out")
    stream.group_by(lambda v: odd(v)).count(name="n")


def spread(b: StreamsBuilder) -> None:
    stream = b.stream("in")
    stream.flat_map_values(odd).to("out")
    stream.flat_map(lambda k, v: odd(v)).to("pairs")
    stream.filter(odd).to("some")


def folded(b: StreamsBuilder) -> None:
    grouped = b.stream("in").group_by_key()
    grouped.aggregate(list, lambda k, v, seen: odd(v), name="last").to_stream().to("out")
    grouped.reduce(lambda one, two: odd(two), name="one")
    grouped.windowed_by(tumbling_ms(10, 0, 100)).aggregate(list, lambda k, v, seen: odd(v), name="windows")


def summed(b: StreamsBuilder) -> None:
    grouped = b.stream("in").map_values(odd).group_by_key()
    grouped.sum(lambda v: v, name="sum")
    grouped.max(lambda v: v, name="max")


def joined(b: StreamsBuilder) -> None:
    stream, table = b.stream("in"), b.table("in2", name="t")
    stream.join(b.stream("in3"), lambda one, two: odd(one), within=1_000).to("both")
    stream.left_join(table, lambda one, two: odd(one)).to("looked")
    table.map_values(odd, name="m").to_stream().to("rows")
    table.join(b.table("in3b", name="u"), lambda one, two: odd(one), on=lambda k, v: odd(v), name="f")
    table.group_by(lambda k, v: (odd(v), odd(v)), pairs=True).count(name="g")


def processed(b: StreamsBuilder) -> None:
    b.stream("in").process(Keeps, name="p").to("out")


PROGRAMS: list[Callable[[StreamsBuilder], None]] = [
    mapped, typed, in_formats, rekeyed, spread, folded, summed, joined, processed,
]  # fmt: skip


@pytest.mark.parametrize("program", PROGRAMS)
@hostile.explored(3)
@given(returned=hostile.rows(20, 60))
def test_no_result_of_a_function_stops_a_batch(
    program: Callable[[StreamsBuilder], None], returned: hostile.Rows
) -> None:
    RETURNED[:] = [*hostile.ANY, *returned]
    builder = StreamsBuilder("q")
    program(builder)
    with InProcess(builder, shards=2) as driver:
        for number in range(len(RETURNED)):
            for topic in driver._topology.source_topics:
                driver.send(topic, number, f"k{number % 7}", timestamp=number)
        assert driver.run()
        for name in driver.tables.layouts():
            driver.table(name).all()
        for letter in driver.dead_letters():
            assert "potok/" not in letter.error
