"""The metadata of records as fields."""

from __future__ import annotations

import pyarrow as pa
import pytest

from operators.core.in_process import InProcess
from potok import StreamsBuilder
from potok.errors import TopologyError
from potok.expressions.columnar import function_of
from potok.expressions.expr import Column, StructExpr
from potok.topology.graph import Topology
from potok.topology.nodes import About, Annotate, MapValues, Sink, StreamSource

FIELDS = tuple((about.name, about) for about in About)


def annotated(value: object = "a bigint, b bigint") -> Topology:
    builder = StreamsBuilder("notes")
    builder.stream("in", value=value).to("unused")
    source = next(node for node in builder.build() if isinstance(node, StreamSource))
    notes = Annotate("notes", None, source, FIELDS)
    types = {"TIMESTAMP": pa.int64(), "PARTITION": pa.int32(), "OFFSET": pa.int64(), "a": pa.int64()}
    picked = tuple((name, Column(type_, "value", (name,))) for name, type_ in types.items())
    expr = StructExpr(pa.struct(list(types.items())), picked)
    mapped = MapValues("pick", None, notes, function_of(expr, "pick"))
    return Topology("notes", (source, notes, mapped, Sink("out", None, mapped, "out")))


def test_time_and_position_become_fields_in_addition_to_those_read() -> None:
    with InProcess(annotated(), partitions={"in": 2}) as driver:
        driver.send("in", {"a": 1, "b": 2}, "k", timestamp=5, partition=1)
        driver.send("in", {"a": 3, "b": 4}, "k", timestamp=7, partition=1)
        driver.run()
        assert [record.value for record in driver.read("out")] == [
            {"TIMESTAMP": 5, "PARTITION": 1, "OFFSET": 0, "a": 1},
            {"TIMESTAMP": 7, "PARTITION": 1, "OFFSET": 1, "a": 3},
        ]


def test_values_without_fields_cannot_be_given_any() -> None:
    with pytest.raises(TopologyError, match="typed values with fields"), InProcess(annotated(None)):
        pass
